//! What the guard's records take of memory.
use super::client::{Client, text};
use serde_json::json;
use std::fs;
use tr_testkit::rounds;

/// The server's part: an answer of 2 MB to each call, and what else stands in its result.
fn large(beside: &str) -> String {
    const SERVER: &str = r#"
    body=$(head -c 2000000 /dev/zero | tr '\0' x)
    while read -r line; do
        echo run >>"$LEDGER"
        id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\),.*/\1/')
        printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]BESIDE}}\n' "$id" "$body"
    done"#;
    SERVER.replace("BESIDE", beside)
}

/// The most that a process had in memory so far, in MB.
pub(crate) fn most_mb(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1000
}

/// Of a hundred, half are more than it may keep.
#[test]
fn a_thousand_large_answers_are_not_all_kept() {
    let told = are_bounded("");
    assert!(told.contains("has ended, and its answer was not kept"), "{}", told.len());
}

/// Of a failure a record keeps how it begins.
#[test]
fn a_thousand_large_failures_are_not_all_kept() {
    let told = are_bounded(r#","isError":true"#);
    assert!(told.starts_with("xxx") && told.len() < 2_000, "{}", told.len());
    assert!(told.contains("[shortened: the record keeps no more of 200"), "{told}");
}

/// What a call is told that comes again, after a thousand.
fn are_bounded(beside: &str) -> String {
    let mut client = Client::script(&[], &large(beside));
    let pay = |client: &mut Client, id: u32| {
        let meta = json!({ "idempotencyKey": id.to_string() });
        client.request(
            id,
            "tools/call",
            json!({ "name": "pay", "arguments": { "n": id }, "_meta": meta }),
        );
    };
    let calls = u32::try_from(rounds(100, 1_000)).unwrap();
    for id in 1..=calls {
        pay(&mut client, id);
        let line = client.line();
        assert!(line.len() > 2_000_000 && line.starts_with(b"{\"jsonrpc\":\"2.0\",\"id\""));
    }
    let most = most_mb(client.id());
    println!("{calls} keyed answers of 2 MB: at most {most} MB");
    assert!(most < 150, "{most} MB");
    // None of them runs again.
    let meta = json!({ "idempotencyKey": "7" });
    client.request(
        1001,
        "tools/call",
        json!({ "name": "pay", "arguments": { "n": 7 }, "_meta": meta }),
    );
    let told = text(&client.answer(1001)).to_owned();
    assert_eq!(client.executions("run"), usize::try_from(calls).unwrap());
    told
}
