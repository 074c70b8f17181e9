//! What counts in a response, and that the words are those of the model.
mod model;
mod properties;

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
        (r#"[{"text":"{\"time\":\"a\",\"n\":1}"}]"#, r#"[{"text":"{\"time\":\"b\",\"n\":1}"}]"#),
        ("2026-11-22T10:00:00Z no change", "2026-11-22T10:01:00Z no change"),
        ("[10:00:00] no change", "[10:00:59] no change"),
        ("done in 12ms", "done in 13ms"),
        // Within a JSON string lines end with an escaped letter.
        (r#""checked\n10:00:00 idle""#, r#""checked\n10:00:59 idle""#),
        (r#""{\"a\":\"x\\n10:00:00\"}""#, r#""{\"a\":\"x\\n10:00:59\"}""#),
        ("api-0 1/1 Running 0 5m30s", "api-0 1/1 Running 0 1h2m3s"),
        ("Up 59 minutes", "Up 2 hours"),
        ("done in 12 seconds", "done in 13 seconds"),
        ("job 6f9619ff-8b86-d011-b42d-00cf4fc964ff", "job 7f9619ff-8b86-d011-b42d-00cf4fc964fe"),
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
