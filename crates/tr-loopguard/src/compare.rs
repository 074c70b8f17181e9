//! Compares responses by their words, without the values that always change.
mod words;

pub(crate) use words::Words;

use std::{
    hash::{BuildHasher as _, Hasher, RandomState},
    ops::Range,
    sync::LazyLock,
};
use words::Names;

/// Servers choose the hashed text, so each process has its own key.
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// Of a longer response, the two ends of this length are compared, and the total length.
const MAX_END: usize = 64 * 1024;

/// A longer response is not a status message.
const MAX_STATUS: usize = 1024;

/// The states of a job that has not ended, in job queues, CI systems, batch schedulers, clusters
/// and MCP's tasks. Such a word counts only alone, as a value or in a cell: a "working tree" is not
/// pending.
static PENDING: Names<24> = Names::new([
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

/// The suffix of a state of one step of several.
const IN_PROGRESS: &[u8] = b"_in_progress";

/// The words that also count within a sentence.
static SAID: Names<7> =
    Names::new(["still", "pending", "queued", "running", "waiting", "inprogress", "processing"]);

/// A response, for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compared {
    /// Equal for equal responses.
    pub(crate) hash: u64,
    /// Whether it says that a job has not ended.
    pub(crate) pending: bool,
}

impl Compared {
    /// Reads a response. Values under the names in `volatile` do not count either; at most 128 KiB
    /// of the response are read.
    pub(crate) fn read(text: &str, volatile: &[Box<str>]) -> Self {
        let mut hasher = Blocks::new(HASHER.build_hasher());
        let is_status = text.len() <= MAX_STATUS;
        // A text of several lines is not one sentence.
        let is_sentence = is_status && !text.contains('\n') && !text.contains("\\n");
        let mut pending = false;
        let (head, tail) = ends(text);
        for part in [head, tail] {
            for word in Words::new(part, volatile) {
                hasher.word(part[word.clone()].as_bytes());
                pending |= is_status && !pending && is_pending(part, &word, is_sentence);
            }
        }
        if !tail.is_empty() {
            hasher.word(&text.len().to_le_bytes());
        }
        Self { hash: hasher.finish(), pending }
    }
}

/// Hashes words in blocks: a hasher takes long to take a few bytes.
struct Blocks<H> {
    hasher: H,
    block: [u8; 512],
    len: usize,
}

impl<H: Hasher> Blocks<H> {
    const fn new(hasher: H) -> Self {
        Self { hasher, block: [0; 512], len: 0 }
    }

    /// Takes a word, with an end that no text has.
    fn word(&mut self, word: &[u8]) {
        let end = self.len + word.len();
        if let Some(room) = self.block.get_mut(self.len..=end) {
            let (place, last) = room.split_at_mut(word.len());
            place.copy_from_slice(word);
            last[0] = 0xff;
            self.len = end + 1;
            return;
        }
        self.hasher.write(&self.block[..self.len]);
        self.len = 0;
        if word.len() < self.block.len() {
            return self.word(word);
        }
        self.hasher.write(word);
        self.hasher.write(&[0xff]);
    }

    fn finish(mut self) -> u64 {
        self.hasher.write(&self.block[..self.len]);
        self.hasher.finish()
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

/// Whether the word at `at` says that a job has not ended.
fn is_pending(text: &str, at: &Range<usize>, is_sentence: bool) -> bool {
    let word = &text[at.clone()];
    let is_in_progress = || {
        let end = word.len().checked_sub(IN_PROGRESS.len()).map(|at| &word.as_bytes()[at..]);
        end.is_some_and(|end| end.eq_ignore_ascii_case(IN_PROGRESS))
    };
    (is_sentence && SAID.have(word))
        || ((PENDING.have(word) || is_in_progress())
            && stands_alone(&text[..at.start], &text[at.end..]))
}

/// Whether the word between these two is a value or a cell, and not part of a sentence.
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
    fn words_across_blocks_count() {
        let words = |len: usize, last: &str| format!("{} {last}", "w ".repeat(len));
        let long = |len: usize, last: &str| format!("{}{last} b", "w".repeat(len));
        for len in (250..260).chain(505..520).chain([5_000]) {
            for text in [words, long] {
                assert_eq!(hash(&text(len, "a")), hash(&text(len, "a")), "{len}");
                assert_ne!(hash(&text(len, "a")), hash(&text(len, "b")), "{len}");
                assert_ne!(hash(&text(len, "a")), hash(&text(len + 1, "a")), "{len}");
            }
        }
        assert_ne!(hash("ab c"), hash("a bc"));
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
            // The output of a clean repository, and of test runs.
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
