//! What of an answer is compared with the answer before: everything but what always changes.
use std::{
    hash::{DefaultHasher, Hash, Hasher},
    ops::Range,
};

/// Of a longer answer its two ends of this length are compared, and its length.
const MAX_END: usize = 64 * 1024;

/// A longer answer is no status, whatever words are in it.
const MAX_STATUS: usize = 1024;

/// The names of values that are new each time they are asked for.
const VOLATILE: [&str; 18] = [
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
];

/// Units in which [`VOLATILE`] names, and numbers, measure time.
const UNITS: [&str; 22] = [
    "ns", "us", "µs", "ms", "s", "sec", "secs", "second", "seconds", "m", "min", "mins", "minute",
    "minutes", "h", "hr", "hrs", "hour", "hours", "d", "day", "days",
];

/// What job queues, CI systems, batch schedulers, clusters and MCP's tasks call a job that has not
/// ended. Such a word stands alone, as a value or in a cell: a working tree is at rest.
const PENDING: [&str; 24] = [
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
];

/// How they say so of one step of several.
const IN_PROGRESS: &[u8] = b"_in_progress";

/// Those that say so in the middle of a sentence, too.
const SAID: [&str; 7] =
    ["still", "pending", "queued", "running", "waiting", "inprogress", "processing"];

/// An answer, for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compared {
    /// Equal for equal answers.
    pub(crate) hash: u64,
    /// It says that something is under way.
    pub(crate) pending: bool,
}

impl Compared {
    /// Reads an answer. Values under the names in `volatile` do not count either; of the answer at
    /// most 128 KiB are read.
    pub(crate) fn read(text: &str, volatile: &[Box<str>]) -> Self {
        let mut hasher = DefaultHasher::new();
        let is_status = text.len() <= MAX_STATUS;
        // Of several lines, none is taken for a sentence about the whole.
        let is_sentence = is_status && !text.contains('\n') && !text.contains("\\n");
        let mut pending = false;
        let (head, tail) = ends(text);
        for part in [head, tail] {
            for word in Words::new(part, volatile) {
                part[word.clone()].hash(&mut hasher);
                pending |= is_status && !pending && is_pending(part, &word, is_sentence);
            }
        }
        if !tail.is_empty() {
            text.len().hash(&mut hasher);
        }
        Self { hash: hasher.finish(), pending }
    }
}

/// The text in one piece or, if it is long, its two ends.
fn ends(text: &str) -> (&str, &str) {
    if text.len() <= 2 * MAX_END {
        return (text, "");
    }
    let mut head = MAX_END;
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    let mut tail = text.len() - MAX_END;
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    (&text[..head], &text[tail..])
}

/// The words of a text that count. What stands between them does not.
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
        let mut from = self.at;
        let start = loop {
            let start = from + self.text[from..].find(is_word)?;
            // Within a JSON string a line ends with an escaped letter.
            let is_escape = self.text[..start].ends_with('\\')
                && self.text[start..].starts_with(['n', 'r', 't']);
            if !is_escape {
                break start;
            }
            from = start + 1;
        };
        let mut end = start;
        let mut before = ' ';
        for c in self.text[start..].chars() {
            let next = end + c.len_utf8();
            let in_clock = c == ':' && before.is_ascii_digit() && self.starts_with_digit(next);
            if !is_word(c) && !in_clock {
                break;
            }
            (end, before) = (next, c);
        }
        self.at = end;
        Some(start..end)
    }

    fn starts_with_digit(&self, at: usize) -> bool {
        self.text.as_bytes().get(at).is_some_and(u8::is_ascii_digit)
    }

    /// Steps over the value that the name before it has, if it has one.
    fn skip_value(&mut self) -> bool {
        let rest = &self.text[self.at..];
        // Quotes stand escaped where an answer has JSON in a string.
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
        is_one_of(word, &VOLATILE)
            || self.volatile.iter().any(|known| known.eq_ignore_ascii_case(word))
    }

    /// Whether the number before is one of seconds or minutes.
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
            let skipped = if word.starts_with(|c: char| c.is_ascii_digit()) {
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

/// Dots and dashes hold numbers and identifiers together.
fn is_word(c: char) -> bool {
    c.is_alphanumeric()
        || matches!(c, '_' | '-' | '+' | '.')
        || (!c.is_ascii() && !c.is_whitespace())
}

/// Whether the word at `at` says that something is under way.
fn is_pending(text: &str, at: &Range<usize>, is_sentence: bool) -> bool {
    let word = &text[at.clone()];
    let is_in_progress = || {
        let end = word.len().checked_sub(IN_PROGRESS.len()).map(|at| &word.as_bytes()[at..]);
        end.is_some_and(|end| end.eq_ignore_ascii_case(IN_PROGRESS))
    };
    (is_sentence && is_one_of(word, &SAID))
        || ((is_one_of(word, &PENDING) || is_in_progress())
            && stands_alone(&text[..at.start], &text[at.end..]))
}

/// Whether what stands between these two is a value or a cell, and no part of a sentence.
fn stands_alone(before: &str, after: &str) -> bool {
    let opens = ['"', '\'', ':', '=', '[', '(', '{', ',', '|', '\t', '\n'];
    let closes = ['"', '\'', '\\', ']', ')', '}', ',', ';', '|', '\t', '\n', '\r'];
    let is_opened = before.is_empty()
        || before.ends_with(opens)
        || ["  ", ": ", "= ", "| ", "\\n", "\\t"].iter().any(|end| before.ends_with(end));
    let is_closed = after.is_empty()
        || after.starts_with(closes)
        || ["  ", " |", " ("].iter().any(|start| after.starts_with(start));
    is_opened && is_closed
}

/// Whether `word` is one of these names in any spelling.
fn is_one_of(word: &str, names: &[&str]) -> bool {
    // The first letter tells most words from most names.
    let first = word.bytes().find(u8::is_ascii_alphanumeric).map(|first| first.to_ascii_lowercase());
    names.iter().any(|name| name.bytes().next() == first && is_named(word, name))
}

/// Whether `word` is `name` in any spelling: `requestId`, `request_id`, `elapsed_ms`, `duration-s`.
fn is_named(word: &str, name: &str) -> bool {
    let word = word.trim_end_matches(['.', ':', '-']);
    let mut rest = word.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase());
    if !name.chars().all(|c| rest.next() == Some(c)) {
        return false;
    }
    let rest: String = rest.take(8).collect();
    rest.is_empty() || (VOLATILE.contains(&name) && UNITS.contains(&rest.as_str()))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(text: &str) -> u64 {
        Compared::read(text, &[]).hash
    }

    #[test]
    fn what_always_changes_does_not_count() {
        for (one, other) in [
            (
                r#"{"state":"idle","timestamp":1763778608}"#,
                r#"{"state":"idle","timestamp":1763778668}"#,
            ),
            (r#"{"requestId":"a1","n":1}"#, r#"{"requestId":"b2","n":1}"#),
            (r#"{"n":1,"elapsed_ms":12}"#, r#"{"n":1,"elapsed_ms":13}"#),
            ("{'time': '1 Nov 10:00', 'n': 1}", "{'time': '2 Nov 10:01', 'n': 1}"),
            ("2026-11-22T10:00:00.5+01:00 idle", "2026-11-22T10:00:01.5+01:00 idle"),
            (
                r#"[{"text":"{\"time\":\"a\",\"n\":1}"}]"#,
                r#"[{"text":"{\"time\":\"b\",\"n\":1}"}]"#,
            ),
            ("2026-11-22T10:00:00Z no change", "2026-11-22T10:01:00Z no change"),
            ("[10:00:00] no change", "[10:00:59] no change"),
            ("done in 12ms", "done in 13ms"),
            // Within a JSON string lines end with an escaped letter.
            (r#""checked\n10:00:00 idle""#, r#""checked\n10:00:59 idle""#),
            (r#""{\"a\":\"x\\n10:00:00\"}""#, r#""{\"a\":\"x\\n10:00:59\"}""#),
            ("api-0 1/1 Running 0 5m30s", "api-0 1/1 Running 0 1h2m3s"),
            ("Up 59 minutes", "Up 2 hours"),
            ("done in 12 seconds", "done in 13 seconds"),
            (
                "job 6f9619ff-8b86-d011-b42d-00cf4fc964ff",
                "job 7f9619ff-8b86-d011-b42d-00cf4fc964fe",
            ),
        ] {
            assert_eq!(hash(one), hash(other), "{one}");
        }
    }

    #[test]
    fn everything_else_counts() {
        for (one, other) in [
            ("34 %", "35 %"),
            ("processed 1050 rows", "processed 1051 rows"),
            (r#"{"rows":10}"#, r#"{"rows":11}"#),
            (r#"{"time":{"zone":1}}"#, r#"{"time":{"zone":2}}"#),
            // A log's line, a date that is part of a name, and a quote that never ends.
            ("time=10:00 level=INFO msg=\"row 50\"", "time=10:00 level=INFO msg=\"row 51\""),
            ("time: 10:00 rows: 50", "time: 10:00 rows: 51"),
            ("2026-11-22-001.csv", "2026-11-22-002.csv"),
            ("10:00:00-a", "10:00:00-b"),
            ("time: \"10\nrow 50", "time: \"10\nrow 51"),
            ("compiling a.c", "compiling b.c"),
            ("v1.2.3", "v1.2.4"),
            ("", "nothing"),
            ("é", "è"),
        ] {
            assert_ne!(hash(one), hash(other), "{one}");
        }
        let cursor = ["cursor".into()];
        let read = |text| Compared::read(text, &cursor).hash;
        assert_eq!(read(r#"{"cursor":"a","n":1}"#), read(r#"{"cursor":"b","n":1}"#));
    }

    #[test]
    fn of_a_long_answer_the_ends_count() {
        let long = |start: &str, end: &str| format!("{start} {} {end}", "é ".repeat(200_000));
        assert_eq!(hash(&long("a", "b")), hash(&long("a", "b")));
        assert_ne!(hash(&long("a", "b")), hash(&long("a", "c")));
        assert_ne!(hash(&long("a", "b")), hash(&long("c", "b")));
    }

    #[test]
    fn a_status_says_that_something_is_under_way() {
        for text in [
            r#"{"status":"in_progress","conclusion":null}"#,
            "Process still running.",
            r#"[{"text":"{\"state\":\"QUEUED\"}"}]"#,
            r#"{"task":{"status":"working"}}"#,
            r#""NAME    READY   STATUS    AGE\napi-0   0/1     Pending   3s""#,
            r#""build\tqueued\t0\ntest\tqueued\t0""#,
            r#""StackStatus: CREATE_IN_PROGRESS\nStackName: a""#,
            r#""NAME    READY   STATUS              AGE\napi-0   0/1     ContainerCreating   3s""#,
        ] {
            assert!(Compared::read(text, &[]).pending, "{text}");
        }
        for text in [
            "",
            "ok",
            r#"{"status":"completed"}"#,
            "distill the runningback",
            // What every clean repository says, and every run of tests.
            r#""On branch main\nnothing to commit, working tree clean""#,
            "nothing to commit, working tree clean",
            r#""running 12 tests\ntest a ... FAILED""#,
            r#""  3 passing\n  2 pending\n  1 failing""#,
            r#""make: *** Waiting for unfinished jobs....\nmake: *** [a] Error 1""#,
        ] {
            assert!(!Compared::read(text, &[]).pending, "{text}");
        }
        assert!(!Compared::read(&"a running text ".repeat(100), &[]).pending);
    }
}
