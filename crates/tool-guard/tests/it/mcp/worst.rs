//! Lines of a megabyte that take as much as lines of a megabyte can: memory is a multiple of their length. What
//! takes time by the square of its parts has no answer within the client's minute; `cargo lab worst` measures time.
use super::{
    client::{Client, ledger},
    memory::most_mb,
};
use serde_json::json;
use std::fs;

const BYTES: usize = 1 << 20;

/// The most that the guard has in memory without such a line, and for each byte of one.
const AT_REST_MB: usize = 40;
const FOR_EACH_BYTE: usize = 16;

/// Fails if the guard ever had more in memory than a line of this length may take.
fn is_bounded(client: &Client, line: usize) {
    let most = usize::try_from(most_mb(client.id())).unwrap();
    assert!(most <= AT_REST_MB + FOR_EACH_BYTE * line / 1_000_000, "{most} MB for {line} bytes");
}

/// So many parts that it is as long as wanted.
fn many(part: impl Fn(usize) -> String) -> String {
    let parts = BYTES / (part(BYTES / 8).len() + 1);
    (0..parts).map(part).collect::<Vec<_>>().join(",")
}

fn same(part: &str) -> String {
    many(|_| part.to_owned())
}

fn deep(open: &str, close: &str) -> String {
    let depth = BYTES / (open.len() + close.len());
    format!("{}1{}", open.repeat(depth), close.repeat(depth))
}

fn text(letters: &str) -> String {
    format!(
        r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#,
        letters.repeat(BYTES / letters.len())
    )
}

/// The server answers the first line with the one that it is given.
fn answered(answer: &str) -> Client {
    let file = ledger().with_extension("answer");
    fs::write(&file, format!("{answer}\n")).unwrap();
    let script = format!("read -r line; cat '{}'; cat >/dev/null", file.display());
    Client::script(&["--log", "off"], &script)
}

#[test]
fn the_memory_for_an_answer_is_a_multiple_of_its_length() {
    let results = [
        text("a"),
        text(r"\n"),
        text(r"\u0041"),
        format!(r#"{{"isError":true,"content":[{}]}}"#, same("{}")),
        format!(r#"{{"isError":true,"content":[{}]}}"#, same(r#"{"text":"a"}"#)),
        format!("{{{}}}", many(|n| format!(r#""m{n}":1"#))),
        format!("{{{}}}", same(r#""m":1"#)),
        format!(r#"{{"x":{}}}"#, deep("[", "]")),
        format!(r#"{{"x":{}}}"#, deep(r#"{"a":"#, "}")),
        format!("[{}]", same("NaN")),
        format!(r#"{{"_meta":{{{}}}}}"#, same(r#""tool-reliability/guard":1"#)),
        format!(r#"{{"x":{}}}"#, deep(r#"{"_meta":{"tool-reliability/guard":"#, "}}")),
    ];
    for result in results {
        let mut client = answered(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#));
        client.call(1, "pay", json!({}));
        let line = client.line();
        assert!(line.starts_with(br#"{"jsonrpc":"2.0","id":1"#), "{}", &result[..50]);
        is_bounded(&client, result.len());
    }
}

#[test]
fn the_memory_for_a_batch_is_a_multiple_of_its_length() {
    let hundred_thousand: Vec<_> =
        (2..100_002).map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)).collect();
    let progress = |n: usize| {
        format!(r#"{{"method":"notifications/progress","params":{{"progressToken":{n}}}}}"#)
    };
    for parts in [
        hundred_thousand.join(","),
        same("1"),
        deep("[", "]"),
        same(r#"{"id":2,"x":NaN}"#),
        many(progress),
    ] {
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let mut client = answered(&format!("[{parts},{answer}]"));
        client.call(1, "pay", json!({}));
        while client.line() != format!("{answer}\n").as_bytes() {}
        is_bounded(&client, parts.len());
    }
}

#[test]
fn the_memory_for_a_list_of_tools_is_a_multiple_of_its_length() {
    for tools in [
        many(|n| format!(r#"{{"name":"t{n}"}}"#)),
        many(|n| format!(r#"{{"name":"t","annotations":{{"readOnlyHint":{}}}}}"#, n % 2 == 0)),
        same("7"),
    ] {
        let mut client = answered(&format!(r#"{{"id":1,"result":{{"tools":[{tools}]}}}}"#));
        client.request(1, "tools/list", json!({}));
        assert!(client.line().len() > BYTES / 2);
        is_bounded(&client, tools.len());
    }
}

#[test]
fn the_memory_for_a_call_is_a_multiple_of_its_length() {
    let call = |arguments: &str, more: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"pay","arguments":{arguments}{more}}}}}"#
        )
    };
    let backwards = many(|n| format!(r#""m{}":1"#, BYTES - n));
    for line in [
        call(&format!("{{{backwards}}}"), ""),
        call(&format!("{{{backwards}}}"), r#","_meta":{"idempotencyKey":"k"}"#),
        call(&format!("[{}]", deep("[", "]")), ""),
        call(&format!(r#"{{"a":[{}]}}"#, many(|n| format!("1e{}", n % 300))), ""),
        call(&format!("{{{}}}", many(|n| format!(r#""m{n}":"http://a.b/{n}""#))), ""),
        call("{}", &format!(r#","_meta":{{"idempotencyKey":"{}"}}"#, "k".repeat(BYTES))),
        format!("[{}]", many(|n| format!(r#"{{"id":{n},"method":"tools/call"}}"#))),
        format!(r#"{{{},"method":"ping"}}"#, many(|n| format!(r#""m{n}":1"#))),
    ] {
        let mut client = answered(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        client.send_raw(format!("{line}\n").as_bytes());
        assert!(!client.line().is_empty());
        is_bounded(&client, line.len());
    }
}
