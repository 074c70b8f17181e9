//! The names of values that change each time and of states, which a word may spell in several ways.

/// The units of time in volatile names and after numbers.
pub(super) const UNITS: [&str; 22] = [
    "ns", "us", "µs", "ms", "s", "sec", "secs", "second", "seconds", "m", "min", "mins", "minute",
    "minutes", "h", "hr", "hrs", "hour", "hours", "d", "day", "days",
];

/// The names of values that change each time.
pub(super) static VOLATILE: Names<18> = Names::new([
    "timestamp",
    "ts",
    "time",
    "date",
    "datetime",
    "now",
    "elapsed",
    "duration",
    "took",
    "latency",
    "uptime",
    "age",
    "nonce",
    "requestid",
    "traceid",
    "spanid",
    "correlationid",
    "traceparent",
])
.with_units();

/// The states of a job that has not ended, in job queues, CI systems, batch schedulers, clusters
/// and MCP's tasks, and [`STILL`]. Such a word counts only alone, as a value or in a cell: a
/// "working tree" is not pending.
pub(super) static PENDING: Names<25> = Names::new([
    STILL,
    "pending",
    "queued",
    "scheduled",
    "submitted",
    "runnable",
    "provisioning",
    "initializing",
    "podinitializing",
    "creating",
    "containercreating",
    "starting",
    "restarting",
    "running",
    "inprogress",
    "progressing",
    "processing",
    "building",
    "deploying",
    "updating",
    "deleting",
    "stopping",
    "terminating",
    "working",
    "waiting",
]);

/// It counts only within a sentence.
pub(super) const STILL: &str = "still";

/// The words that also count within a sentence.
pub(super) const SAID: [&str; 7] =
    [STILL, "pending", "queued", "running", "waiting", "inprogress", "processing"];

/// The beginnings of all names, so that one look is enough for most words.
pub(super) static NAMES: Beginnings = VOLATILE.beginnings.or(&PENDING.beginnings);

/// A set of lower-case names of two letters or more.
pub(super) struct Names<const N: usize> {
    pub(super) names: [&'static str; N],
    /// Whether a unit of time may follow a name.
    have_units: bool,
    beginnings: Beginnings,
}

impl<const N: usize> Names<N> {
    const fn new(names: [&'static str; N]) -> Self {
        Self { names, have_units: false, beginnings: Beginnings::of(&names) }
    }

    /// With a unit of time after a name, too.
    const fn with_units(mut self) -> Self {
        self.have_units = true;
        self
    }

    /// The name that `word` is, in any spelling: `requestId`, `request_id`, `elapsed_ms`,
    /// `duration-s`.
    #[inline(never)]
    pub(super) fn find(&self, word: &[u8]) -> Option<&'static str> {
        if !self.beginnings.include(word) || !word.iter().any(u8::is_ascii_alphabetic) {
            return None;
        }
        let (letters, len) = letters(word)?;
        let is_word = |name: &&&str| {
            let rest = letters[..len].strip_prefix(name.as_bytes());
            letters[0] == name.as_bytes()[0] && rest.is_some_and(|rest| self.may_follow(rest))
        };
        self.names.iter().find(is_word).copied()
    }

    fn may_follow(&self, rest: &[u8]) -> bool {
        let is_unit = |unit: &&str| unit.as_bytes() == rest;
        rest.is_empty() || (self.have_units && UNITS.iter().any(is_unit))
    }
}

/// No name is longer, with its unit.
const LONGEST: usize = 24;

/// The letters of a word in lower case; `None` if it is too long for a name, or has a digit or a
/// letter that is in no name.
fn letters(word: &[u8]) -> Option<([u8; LONGEST], usize)> {
    let (mut letters, mut len, mut at) = ([0; LONGEST], 0, 0);
    while let Some(byte) = word.get(at) {
        if byte.is_ascii_alphabetic() {
            *letters.get_mut(len)? = byte.to_ascii_lowercase();
            (len, at) = (len + 1, at + 1);
        } else if byte.is_ascii() {
            at += 1;
            if byte.is_ascii_digit() {
                return None;
            }
        } else {
            let c = str::from_utf8(&word[at..]).ok()?.chars().next()?;
            at += c.len_utf8();
            if c == 'µ' {
                len += c.encode_utf8(letters.get_mut(len..len + c.len_utf8())?).len();
            } else if c.is_alphanumeric() {
                return None;
            }
        }
    }
    Some((letters, len))
}

/// How the names of a set begin. Most words are no names, which their first three bytes show.
pub(super) struct Beginnings {
    /// For each two [kinds](KIND) of bytes a bit for each kind that may come third.
    thirds: [[u32; 32]; 32],
}

impl Beginnings {
    const fn of(names: &[&str]) -> Self {
        // A name may be spelled with bytes that are no letters; what follows them is not looked at.
        let (mut thirds, mut at) = ([[0; 32]; 32], 0);
        thirds[OTHER as usize] = [u32::MAX; 32];
        while at < names.len() {
            let name = names[at].as_bytes();
            let (first, second) = (kind(name[0]), kind(name[1]));
            thirds[first][OTHER as usize] = u32::MAX;
            thirds[first][second] |= match name.len() {
                2 => u32::MAX,
                _ => 1 << kind(name[2]) | 1 << OTHER,
            };
            at += 1;
        }
        Self { thirds }
    }

    const fn or(&self, other: &Self) -> Self {
        let (mut thirds, mut at) = (self.thirds, 0);
        while at < 32 * 32 {
            thirds[at / 32][at % 32] |= other.thirds[at / 32][at % 32];
            at += 1;
        }
        Self { thirds }
    }

    /// Whether one of the names may be spelled as `word` is.
    #[inline]
    pub(super) fn include(&self, word: &[u8]) -> bool {
        let [first, second, rest @ ..] = word else { return false };
        let thirds = self.thirds[kind(*first)][kind(*second)];
        if thirds == 0 {
            return false;
        }
        let third = rest.first().map_or(END, |third| KIND[usize::from(*third)]);
        thirds & 1 << third != 0
    }
}

/// No byte, 26 letters, a digit, or another byte.
static KIND: [u8; 256] = {
    let (mut kinds, mut at) = ([OTHER; 256], 0);
    while at < 256 {
        let byte = at as u8;
        match byte.to_ascii_lowercase() {
            0 => kinds[at] = END,
            letter @ b'a'..=b'z' => kinds[at] = letter - b'a' + 1,
            b'0'..=b'9' => kinds[at] = DIGIT,
            _ => {}
        }
        at += 1;
    }
    kinds
};

const END: u8 = 0;
const DIGIT: u8 = 27;
const OTHER: u8 = 28;

const fn kind(byte: u8) -> usize {
    KIND[byte as usize] as usize
}
