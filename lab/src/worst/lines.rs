//! Lines for `tool-guard mcp`: those that are plain, and those that take the longest.

use super::{Case, Input};

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":{},"_meta":{"idempotencyKey":"k"}}}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const KEY: &str = r#","_meta":{"idempotencyKey":"k"}"#;
/// What ends an input of many lines or members.
const LAST: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

/// What a server answers. The first is plain.
pub(super) const ANSWERS: [Case; 19] = [
    Case::mcp("an ordinary answer", |bytes| result(&plain(bytes))),
    Case::mcp("one long text", |bytes| result(&text(bytes, "a"))),
    Case::mcp("a text of escapes", |bytes| result(&text(bytes, r"\u0041"))),
    Case::mcp("a text of line ends", |bytes| result(&text(bytes, r"\n"))),
    Case::mcp("a failure's empty parts", |bytes| failure(&same(bytes, "{}"))),
    Case::mcp("a failure's small texts", |bytes| {
        failure(&same(bytes, r#"{"type":"text","text":"a"}"#))
    }),
    Case::mcp("a failure's text of escapes", |bytes| {
        failure(&format!(r#"{{"type":"text","text":"{}"}}"#, r"\u0041".repeat(bytes / 6)))
    }),
    Case::mcp("a failure's text of secrets", |bytes| {
        let text = "password=a://b:c@d ".repeat(bytes / 19);
        failure(&format!(r#"{{"type":"text","text":"{text}"}}"#))
    }),
    Case::mcp("many members", |bytes| {
        result(&format!("{{{}}}", many(bytes, |n| format!(r#""m{n}":1"#))))
    }),
    Case::mcp("one member many times", |bytes| result(&format!("{{{}}}", same(bytes, r#""m":1"#)))),
    Case::mcp("deep lists", |bytes| result(&format!(r#"{{"x":{}}}"#, deep(bytes, "[", "]")))),
    Case::mcp("deep objects", |bytes| {
        result(&format!(r#"{{"x":{}}}"#, deep(bytes, r#"{"a":"#, "}")))
    }),
    Case::mcp("no JSON", |bytes| result(&format!("[{}]", same(bytes, "NaN")))),
    Case::mcp("the guard's mark, often", |bytes| {
        let marks = same(bytes, r#""tool-reliability/guard":1"#);
        result(&format!(r#"{{"_meta":{{{marks}}}}}"#))
    }),
    Case::mcp("the guard's mark, deep", |bytes| {
        let marks = deep(bytes, r#"{"_meta":{"tool-reliability/guard":"#, "}}");
        result(&format!(r#"{{"x":{marks}}}"#))
    }),
    Case::mcp("no UTF-8", |bytes| {
        let Input::Answer(asked, mut line) = result(&text(bytes, "a")) else { unreachable!() };
        let end = line.len() - 20;
        line[60..end].fill(0xff);
        Input::Answer(asked, line)
    }),
    Case::mcp("a list of many tools", |bytes| {
        tools(&many(bytes, |n| format!(r#"{{"name":"t{n}"}}"#)))
    }),
    Case::mcp("a list of one tool many times", |bytes| {
        tools(&many(bytes, |n| {
            format!(r#"{{"name":"t","annotations":{{"readOnlyHint":{}}}}}"#, n % 2 == 0)
        }))
    }),
    Case::mcp("a list of numbers", |bytes| tools(&same(bytes, "7"))),
];

/// What a server says in many messages, in a batch or line by line. The first is plain.
pub(super) const MESSAGES: [Case; 13] = [
    Case::mcp("ordinary notices, each on a line", |bytes| lines(&many_lines(bytes, notice))),
    Case::mcp("ordinary notices in a batch", |bytes| batch(&many(bytes, notice))),
    Case::mcp("a batch of numbers", |bytes| batch(&same(bytes, "1"))),
    Case::mcp("a batch of empty objects", |bytes| batch(&same(bytes, "{}"))),
    Case::mcp("a batch of answers", |bytes| {
        batch(&many(bytes, |n| format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, n + 1)))
    }),
    Case::mcp("a batch of progress", |bytes| batch(&many(bytes, progress))),
    Case::mcp("a batch of no JSON", |bytes| batch(&same(bytes, r#"{"id":2,"x":NaN}"#))),
    Case::mcp("a batch of deep lists", |bytes| batch(&deep(bytes, "[", "]"))),
    Case::mcp("empty objects, each on a line", |bytes| lines(&"{}\n".repeat(bytes / 3))),
    Case::mcp("empty lines", |bytes| lines(&"\n".repeat(bytes))),
    Case::mcp("letters, each on a line", |bytes| lines(&"x\n".repeat(bytes / 2))),
    Case::mcp("small objects, each on a line", |bytes| lines(&"{\"\":1}\n".repeat(bytes / 7))),
    Case::mcp("progress, each on a line", |bytes| lines(&many_lines(bytes, progress))),
];

/// What a client sends. The first is plain.
pub(super) const SENT: [Case; 9] = [
    Case::mcp("a call with ordinary arguments", |bytes| call(&plain(bytes), KEY)),
    Case::mcp("a call with many arguments, backwards", |bytes| call(&backwards(bytes), KEY)),
    Case::mcp("the same without a key", |bytes| call(&backwards(bytes), "")),
    Case::mcp("a call with deep lists", |bytes| {
        call(&format!(r#"{{"a":{}}}"#, deep(bytes, "[", "]")), KEY)
    }),
    Case::mcp("a call with numbers", |bytes| {
        call(&format!(r#"{{"a":[{}]}}"#, many(bytes, |n| format!("1e{}", n % 300))), KEY)
    }),
    Case::mcp("a call with addresses", |bytes| {
        let addresses = many(bytes, |n| format!(r#""m{n}":"http://a.b/{n}""#));
        call(&format!("{{{addresses}}}"), KEY)
    }),
    Case::mcp("a call with a long key", |bytes| {
        call("{}", &format!(r#","_meta":{{"idempotencyKey":"{}"}}"#, "k".repeat(bytes)))
    }),
    Case::mcp("a request with many members", |bytes| {
        let members = many(bytes, |n| format!(r#""m{n}":1"#));
        sent(format!(r#"{{{members},"method":"ping","id":1}}"#))
    }),
    Case::mcp("a batch of calls", |bytes| {
        sent(format!("[{}]", many(bytes, |n| format!(r#"{{"id":{n},"method":"tools/call"}}"#))))
    }),
];

/// So many parts that it is as long as wanted.
pub(super) fn many(bytes: usize, part: impl Fn(usize) -> String) -> String {
    joined(bytes, ',', part)
}

fn many_lines(bytes: usize, part: impl Fn(usize) -> String) -> String {
    joined(bytes, '\n', part) + "\n"
}

fn joined(bytes: usize, between: char, part: impl Fn(usize) -> String) -> String {
    let mut all = String::with_capacity(bytes + 1024);
    for n in 1.. {
        all += &part(n);
        if all.len() >= bytes {
            break;
        }
        all.push(between);
    }
    all
}

fn same(bytes: usize, part: &str) -> String {
    many(bytes, |_| part.to_owned())
}

pub(super) fn deep(bytes: usize, open: &str, close: &str) -> String {
    let depth = bytes / (open.len() + close.len());
    format!("{}1{}", open.repeat(depth), close.repeat(depth))
}

/// What a tool that lists files answers: rows, as text and as data.
fn plain(bytes: usize) -> String {
    let mut text = String::new();
    for n in 0..bytes / 2 / 80 {
        text += &format!(
            r#"{{\"name\":\"src/module_{n}.rs\",\"size\":{},\"is_folder\":false}}\n"#,
            n * 37
        );
    }
    let rows = many(bytes / 2, |n| {
        let size = n * 37;
        format!(
            r#"{{"name":"src/module_{n}.rs","size":{size},"is_folder":false,"tags":["a","b"]}}"#
        )
    });
    format!(
        r#"{{"content":[{{"type":"text","text":"{text}"}}],"structuredContent":{{"rows":[{rows}]}}}}"#
    )
}

fn text(bytes: usize, letters: &str) -> String {
    format!(
        r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#,
        letters.repeat(bytes / letters.len())
    )
}

fn notice(n: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","logger":"files","data":"read src/module_{n}.rs, {} bytes"}}}}"#,
        n * 37
    )
}

fn progress(n: usize) -> String {
    format!(r#"{{"method":"notifications/progress","params":{{"progressToken":{n}}}}}"#)
}

fn backwards(bytes: usize) -> String {
    format!("{{{}}}", many(bytes, |n| format!(r#""m{}":1"#, 90_000_000 - n)))
}

fn result(result: &str) -> Input {
    let line = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
    Input::Answer(CALL, line.into_bytes())
}

fn failure(parts: &str) -> Input {
    result(&format!(r#"{{"isError":true,"content":[{parts}]}}"#))
}

fn batch(parts: &str) -> Input {
    Input::Answer(CALL, format!("[{parts},{LAST}]").into_bytes())
}

fn lines(lines: &str) -> Input {
    Input::Answer(CALL, format!("{lines}{LAST}").into_bytes())
}

fn tools(tools: &str) -> Input {
    let line = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{tools}]}}}}"#);
    Input::Answer(LIST, line.into_bytes())
}

fn call(arguments: &str, more: &str) -> Input {
    sent(format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"pay","arguments":{arguments}{more}}}}}"#
    ))
}

fn sent(line: String) -> Input {
    Input::Sent(line.into_bytes())
}
