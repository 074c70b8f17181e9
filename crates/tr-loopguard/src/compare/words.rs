//! The words of a text, without those that change each time.
use std::ops::Range;

/// The names of values that change each time.
static VOLATILE: Names<18> = Names::new([
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
]);

/// The units of time in [`VOLATILE`] names and after numbers.
const UNITS: [&str; 22] = [
    "ns", "us", "µs", "ms", "s", "sec", "secs", "second", "seconds", "m", "min", "mins", "minute",
    "minutes", "h", "hr", "hrs", "hour", "hours", "d", "day", "days",
];

/// The words of a text that count; separators do not count.
pub(crate) struct Words<'t> {
    text: &'t str,
    at: usize,
    volatile: &'t [Box<str>],
}

impl<'t> Words<'t> {
    pub(crate) const fn new(text: &'t str, volatile: &'t [Box<str>]) -> Self {
        Self { text, at: 0, volatile }
    }

    fn word(&mut self) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        let start = self.start()?;
        let mut end = start;
        while let Some(byte) = bytes.get(end) {
            end += match byte {
                _ if IS_WORD[usize::from(*byte)] => 1,
                b':' if self.is_within_clock(start, end) => 1,
                _ if byte.is_ascii() => break,
                _ => match self.char_at(end).filter(|c| !c.is_whitespace()) {
                    Some(c) => c.len_utf8(),
                    None => break,
                },
            };
        }
        self.at = end;
        Some(start..end)
    }

    /// Where the next word starts.
    fn start(&self) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut at = self.at;
        loop {
            let byte = *bytes.get(at)?;
            if byte.is_ascii() {
                // Within a JSON string a line ends with an escaped letter.
                let is_escape =
                    || matches!(byte, b'n' | b'r' | b't') && at > 0 && bytes[at - 1] == b'\\';
                if IS_WORD[usize::from(byte)] && !is_escape() {
                    return Some(at);
                }
                at += 1;
            } else {
                let c = self.char_at(at)?;
                if !c.is_whitespace() {
                    return Some(at);
                }
                at += c.len_utf8();
            }
        }
    }

    fn char_at(&self, at: usize) -> Option<char> {
        self.text[at..].chars().next()
    }

    /// Whether a colon at `at` is between two digits, the first of them not before `start`.
    fn is_within_clock(&self, start: usize, at: usize) -> bool {
        let follows_digit = at > start && self.text.as_bytes()[at - 1].is_ascii_digit();
        follows_digit && self.starts_with_digit(at + 1)
    }

    fn starts_with_digit(&self, at: usize) -> bool {
        self.text.as_bytes().get(at).is_some_and(u8::is_ascii_digit)
    }

    /// Skips the value after a name, if there is one.
    fn skip_value(&mut self) -> bool {
        let rest = &self.text[self.at..];
        // Quotes are escaped where a response has JSON in a string.
        let value = rest.trim_start_matches(['"', '\\', '\'', ' ']);
        let Some(value) = value.strip_prefix([':', '=']) else { return false };
        let value = value.trim_start_matches(['\\', ' ']);
        let ends_word = |c: char| c.is_whitespace() || matches!(c, ',' | '}' | ']' | '\\');
        let end = match value.chars().next() {
            Some('{' | '[') => return false,
            Some(quote @ ('"' | '\'')) => value[1..].find([quote, '\n']).map(|end| end + 2),
            _ => value.find(ends_word),
        };
        let len = end.unwrap_or(value.len());
        self.at = self.text.len() - value.len() + len;
        true
    }

    fn is_volatile(&self, word: &str) -> bool {
        VOLATILE.have(word) || self.volatile.iter().any(|known| known.eq_ignore_ascii_case(word))
    }

    /// Whether a unit of time follows the number; skips it then.
    fn steps_over_unit(&mut self) -> bool {
        let before = self.at;
        let has_unit = self.text[before..].starts_with(' ')
            && self.word().is_some_and(|next| {
                let word = &self.text[next.clone()];
                next.start == before + 1 && UNITS.iter().any(|unit| word.eq_ignore_ascii_case(unit))
            });
        if !has_unit {
            self.at = before;
        }
        has_unit
    }
}

impl Iterator for Words<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        loop {
            let found = self.word()?;
            let word = &self.text[found.clone()];
            let skipped = if word.as_bytes()[0].is_ascii_digit() {
                is_moment(word)
                    || is_uuid(word)
                    || is_span(word)
                    || (is_number(word) && self.steps_over_unit())
            } else {
                is_uuid(word) || (self.is_volatile(word) && self.skip_value())
            };
            if !skipped {
                return Some(found);
            }
        }
    }
}

/// The ASCII characters of words: dots and dashes join numbers and identifiers. All other
/// characters except white space belong to words.
static IS_WORD: [bool; 256] = {
    let (mut is_word, mut at) = ([false; 256], 0);
    while at < 128 {
        let byte = at as u8;
        is_word[at] = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'.');
        at += 1;
    }
    is_word
};

/// A set of lower-case names of two letters or more.
pub(super) struct Names<const N: usize> {
    names: [&'static str; N],
    /// For each first letter of a name a bit for its second, since most words begin with neither.
    pairs: [u32; 26],
}

impl<const N: usize> Names<N> {
    pub(super) const fn new(names: [&'static str; N]) -> Self {
        let (mut pairs, mut at) = ([0; 26], 0);
        while at < N {
            let name = names[at].as_bytes();
            pairs[place(name[0])] |= 1 << place(name[1]);
            at += 1;
        }
        Self { names, pairs }
    }

    /// Whether `word` is one of them in any spelling.
    pub(super) fn have(&self, word: &str) -> bool {
        match word.as_bytes() {
            [first, second, ..] if first.is_ascii_alphabetic() && second.is_ascii_alphabetic() => {
                self.begin_with(*first, *second) && self.spell(word)
            }
            [b'0'..=b'9', ..] => false,
            _ => self.spell(word),
        }
    }

    /// Whether one of them begins with these letters.
    const fn begin_with(&self, first: u8, second: u8) -> bool {
        self.pairs[place(first)] & 1 << place(second) != 0
    }

    #[cold]
    fn spell(&self, word: &str) -> bool {
        self.names.iter().any(|name| is_named(word, name))
    }

    fn contains(&self, name: &str) -> bool {
        self.names.contains(&name)
    }
}

/// The place of a letter in the alphabet.
const fn place(letter: u8) -> usize {
    (letter.to_ascii_lowercase() - b'a') as usize
}

/// Whether `word` is `name` in any spelling: `requestId`, `request_id`, `elapsed_ms`, `duration-s`.
fn is_named(word: &str, name: &str) -> bool {
    if word.len() < name.len() {
        return false;
    }
    let word = word.trim_end_matches(['.', ':', '-']);
    let mut rest = word.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase());
    if !name.chars().all(|c| rest.next() == Some(c)) {
        return false;
    }
    let is_rest = |known: &str| rest.clone().eq(known.chars());
    is_rest("") || (VOLATILE.contains(name) && UNITS.iter().any(|unit| is_rest(unit)))
}

fn is_number(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// `2026-11-22T10:00:00.5Z`, `2026-11-22`, `10:00:00`, `1:02:03.4`; not `2026-11-22-001.csv`.
fn is_moment(word: &str) -> bool {
    let after = |form: &str| {
        let is_like = |(form, byte): (u8, u8)| match form {
            b'0' => byte.is_ascii_digit(),
            _ => form == byte,
        };
        let found = word.len() >= form.len() && form.bytes().zip(word.bytes()).all(is_like);
        found.then(|| word[form.len()..].trim_end_matches('.'))
    };
    let is_time = |c: char| c.is_ascii_digit() || matches!(c, ':' | '.' | '+' | '-' | 'T' | 'Z');
    let is_date = after("0000-00-00").is_some_and(|rest| {
        rest.is_empty() || (rest.starts_with('T') && rest.chars().all(is_time))
    });
    let is_clock = |form: &str| after(form).is_some_and(|rest| rest.chars().all(is_time));
    is_date || is_clock("00:00:00") || is_clock("0:00:00")
}

fn is_uuid(word: &str) -> bool {
    word.len() == 36
        && word.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// `12ms`, `3.4s`, `1h5m`.
fn is_span(word: &str) -> bool {
    let mut rest = word.trim_end_matches(['.', ':']);
    while !rest.is_empty() {
        let unit = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let end = unit.find(|c: char| c.is_ascii_digit()).unwrap_or(unit.len());
        if unit.len() == rest.len() || !UNITS.contains(&&unit[..end]) {
            return false;
        }
        rest = &unit[end..];
    }
    true
}
