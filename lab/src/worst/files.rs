//! Sessions for `tool-guard session`: one that is plain, and those that take the longest.

use super::{
    Case, Input,
    lines::{deep, many},
};

/// Records of their own, each small. The first is plain.
pub(super) const RECORDS: [Case; 9] = [
    Case::file("an ordinary session", |bytes| chain(bytes, plain)),
    Case::file("small records", |bytes| {
        chain(bytes, |n| (["assistant", "user"][n % 2], r#""so""#.to_owned()))
    }),
    Case::file("uses without results", |bytes| {
        chain(bytes, |n| ("assistant", format!("[{}]", tool_use(&format!("t{n}"), ""))))
    }),
    Case::file("results without uses", |bytes| {
        chain(bytes, |n| ("user", format!("[{}]", tool_result(&format!("t{n}"), "a"))))
    }),
    Case::file("one id for all uses", |bytes| {
        chain(bytes, |n| match n % 2 {
            1 => ("assistant", format!("[{}]", tool_use("t", ""))),
            _ => ("user", format!("[{}]", tool_result("t", "a"))),
        })
    }),
    Case::file("unknown members", |bytes| {
        chain(bytes, |n| {
            ("assistant", format!("[{}]", tool_use(&format!("t{n}"), r#","new":{"a":1}"#)))
        })
    }),
    Case::file("thinking blocks", |bytes| {
        chain(bytes, |n| match n % 2 {
            1 => {
                let signed = format!(r#"{{"type":"thinking","thinking":"so","signature":"s{n}"}}"#);
                ("assistant", format!("[{signed}]"))
            }
            _ => ("user", r#""go on""#.to_owned()),
        })
    }),
    Case::file("unknown roles", |bytes| chain(bytes, |_| ("wizard", r#""so""#.to_owned()))),
    Case::file("unknown blocks", |bytes| {
        chain(bytes, |_| ("user", r#"[{"type":"spell"}]"#.to_owned()))
    }),
];

/// One message that is as large as the file.
pub(super) const BLOCKS: [Case; 13] = [
    Case::file("a message of uses, and their results", |bytes| {
        both(bytes, |n, _| tool_result(&format!("t{n:06}"), "a"))
    }),
    Case::file("the same, results backwards", |bytes| {
        both(bytes, |n, count| tool_result(&format!("t{:06}", count + 1 - n), "a"))
    }),
    Case::file("a message of uses without results", |bytes| {
        one(&many(bytes, |n| tool_use(&format!("t{n:06}"), "")))
    }),
    Case::file("a message of uses with one id", |bytes| one(&same(bytes, &tool_use("t", "")))),
    Case::file("a message of results without uses", |bytes| {
        one(&many(bytes, |n| tool_result(&format!("t{n:06}"), "a")))
    }),
    Case::file("a message of uses with unknown members", |bytes| {
        one(&many(bytes, |n| tool_use(&format!("t{n}"), r#","new":1"#)))
    }),
    Case::file("a message of thoughts", |bytes| {
        one(&same(bytes, r#"{"type":"thinking","thinking":"a"}"#))
    }),
    Case::file("a message of unknown blocks", |bytes| one(&same(bytes, r#"{"type":"spell"}"#))),
    Case::file("a message of numbers", |bytes| one(&same(bytes, "1"))),
    Case::file("a message of empty objects", |bytes| one(&same(bytes, "{}"))),
    Case::file("a use with many members", |bytes| {
        one(&tool_use("t", &format!(",{}", many(bytes, |n| format!(r#""m{n}":1"#)))))
    }),
    Case::file("a use with a deep input", |bytes| {
        let input = deep(bytes, "[", "]");
        one(&format!(r#"{{"type":"tool_use","id":"t","name":"a","input":{{"a":{input}}}}}"#))
    }),
    Case::file("a text of escapes", |bytes| {
        one(&format!(r#"{{"type":"text","text":"{}"}}"#, r"\u0041".repeat(bytes / 6)))
    }),
];

/// Records that name one another.
pub(super) const LINKS: [Case; 6] = [
    Case::file("records that share an id", |bytes| linked(bytes, |_| (1, None))),
    Case::file("records that follow the first", |bytes| {
        linked(bytes, |n| (n, (n > 1).then_some(1)))
    }),
    Case::file("records that follow themselves", |bytes| linked(bytes, |n| (n, Some(n)))),
    Case::file("records that follow the next", |bytes| linked(bytes, |n| (n, Some(n + 1)))),
    Case::file("records that follow half their number", |bytes| {
        linked(bytes, |n| (n, (n > 1).then_some(n / 2)))
    }),
    Case::file("records that follow none", |bytes| linked(bytes, |n| (n, None))),
];

/// Files that are hardly sessions.
pub(super) const SHAPES: [Case; 17] = [
    Case::file("empty objects, each on a line", |bytes| after(&"{}\n".repeat(bytes / 3))),
    Case::file("numbers, each on a line", |bytes| after(&"1\n".repeat(bytes / 2))),
    Case::file("letters, each on a line", |bytes| after(&"x\n".repeat(bytes / 2))),
    Case::file("empty lines", |bytes| after(&"\n".repeat(bytes))),
    Case::file("open braces", |bytes| after(&"{\n".repeat(bytes / 2))),
    Case::file("open braces on one line", |bytes| after(&r#"{"a":"#.repeat(bytes / 5))),
    Case::file("one line without an end", |bytes| after(&"x".repeat(bytes))),
    Case::file("deep lists on one line", |bytes| after(&deep(bytes, "[", "]"))),
    Case::file("records on one line", |bytes| after(&r#"{"type":"x"}"#.repeat(bytes / 12))),
    Case::file("bytes that are no UTF-8", |bytes| {
        let Input::File(name, mut file) = after(&"x".repeat(bytes)) else { unreachable!() };
        let from = file.len() - bytes;
        file[from..].fill(0xff);
        Input::File(name, file)
    }),
    Case::file("zeros", |bytes| after(&"\0".repeat(bytes))),
    Case::file("a list of uses without results", |bytes| list(&many(bytes, openai))),
    Case::file("a list of empty objects", |bytes| list(&same(bytes, "{}"))),
    Case::file("a list of unknown roles", |bytes| {
        list(&same(bytes, r#"{"role":"wizard","content":"a"}"#))
    }),
    Case::file("a list of one id", |bytes| list(&same(bytes, &openai(1)))),
    Case::file("a list of results without uses", |bytes| {
        list(&many(bytes, |n| format!(r#"{{"role":"tool","tool_call_id":"t{n}","content":"a"}}"#)))
    }),
    Case::file("deep lists", |bytes| list(&deep(bytes, "[", "]"))),
];

fn text(number: usize, sentences: usize) -> String {
    format!("Line {number} says \\\"so\\\" and more of it.\\n").repeat(sentences)
}

fn uuid(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}

fn same(bytes: usize, part: &str) -> String {
    many(bytes, |_| part.to_owned())
}

/// A record of Claude Code's.
fn record(number: usize, parent: Option<usize>, role: &str, content: &str) -> String {
    let parent = parent.map_or_else(|| "null".to_owned(), |it| format!("\"{}\"", uuid(it)));
    let id = if role == "assistant" { format!(r#""id":"msg_{number}","#) } else { String::new() };
    let message = format!(r#"{{{id}"role":"{role}","content":{content}}}"#);
    let uuid = uuid(number);
    format!(
        r#"{{"parentUuid":{parent},"isSidechain":false,"userType":"external","cwd":"/work","sessionId":"s-1","version":"2.0.0","type":"{role}","message":{message},"uuid":"{uuid}","timestamp":"2026-01-01T00:00:00Z"}}"#
    ) + "\n"
}

fn lines(lines: String) -> Input {
    Input::File("session.jsonl", lines.into_bytes())
}

/// Records in a chain, up to a size.
fn chain(bytes: usize, content: impl Fn(usize) -> (&'static str, String)) -> Input {
    let mut all = String::new();
    for number in 1.. {
        let (role, content) = content(number);
        all += &record(number, (number > 1).then(|| number - 1), role, &content);
        if all.len() >= bytes && number % 12 == 0 {
            break;
        }
    }
    lines(all)
}

fn linked(bytes: usize, ids: impl Fn(usize) -> (usize, Option<usize>)) -> Input {
    let mut all = String::new();
    for number in 1.. {
        let (own, parent) = ids(number);
        all += &record(own, parent, ["user", "assistant"][number % 2], r#""so""#);
        if all.len() >= bytes {
            break;
        }
    }
    lines(all)
}

fn tool_use(id: &str, more: &str) -> String {
    format!(r#"{{"type":"tool_use","id":"{id}","name":"read","input":{{"path":"a"}}{more}}}"#)
}

fn tool_result(id: &str, content: &str) -> String {
    format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"{content}"}}"#)
}

/// A call of OpenAI's.
fn openai(n: usize) -> String {
    format!(
        r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"t{n}","type":"function","function":{{"name":"a","arguments":"{{}}"}}}}]}}"#
    )
}

/// Turns of a text, five calls with their results, and an answer.
fn plain(number: usize) -> (&'static str, String) {
    let words = |sentences| format!(r#"{{"type":"text","text":"{}"}}"#, text(number, sentences));
    match number % 12 {
        1 => ("user", format!("[{}]", words(2))),
        0 => ("assistant", format!("[{}]", words(12))),
        at if at % 2 == 0 => {
            let id = format!("toolu_{number:010}");
            ("assistant", format!("[{},{}]", words(3), tool_use(&id, "")))
        }
        _ => {
            let id = format!("toolu_{:010}", number - 1);
            ("user", format!("[{}]", tool_result(&id, &text(number - 1, 15))))
        }
    }
}

fn first() -> String {
    record(1, None, "user", r#""go""#)
}

/// A message of uses, and one of results.
fn both(bytes: usize, result: impl Fn(usize, usize) -> String) -> Input {
    let used = |n: usize| tool_use(&format!("t{n:06}"), "");
    let count = bytes / 2 / (used(1).len() + 1);
    let join = |parts: Vec<String>| format!("[{}]", parts.join(","));
    let uses = record(2, Some(1), "assistant", &join((1..=count).map(used).collect()));
    let results = (1..=count).map(|n| result(n, count)).collect();
    lines(first() + &uses + &record(3, Some(2), "user", &join(results)))
}

fn one(blocks: &str) -> Input {
    lines(first() + &record(2, Some(1), "assistant", &format!("[{blocks}]")))
}

fn after(rest: &str) -> Input {
    lines(first() + rest + "\n")
}

fn list(content: &str) -> Input {
    Input::File("session.json", format!("[{content}]").into_bytes())
}
