//! Lines for people, and the summary with which every log ends.
use super::client::{Client, HANGS, ledger, text, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

/// Records of which nothing is said at the first start.
const MEMORY: [&str; 2] = ["--records", "memory"];

/// The summary among JSON lines.
fn summary(log: &str) -> Value {
    let events = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let all: Vec<_> = events.filter(|event| event["event"] == "summary").collect();
    assert_eq!(all.len(), 1, "{log}");
    let mut summary = all[0].clone();
    assert_eq!(summary["level"], "info");
    assert!(log.lines().last().unwrap().contains("\"summary\""), "nothing follows it: {log}");
    let members = summary.as_object_mut().unwrap();
    members.retain(|name, _| !["timestamp", "level", "event"].contains(&&**name));
    summary
}

fn counts(numbers: [u64; 7], by: &str) -> Value {
    let [calls, retried, retries, replayed, refused, unknown, unfinished] = numbers;
    json!({
        "calls": calls, "retried": retried, "retries": retries, "replayed": replayed,
        "refused": refused, "refusedBy": by, "unknown": unknown, "unfinished": unfinished, "unrecorded": 0,
    })
}

fn pay(client: &mut Client, id: u32, key: &str, arguments: Value) {
    let meta = json!({ "idempotencyKey": key });
    let params = json!({ "name": "charge_card", "arguments": arguments, "_meta": meta });
    client.request(id, "tools/call", params);
}

/// A read that is retried, a payment that is replayed, and one that never ends.
fn busy(options: &[&str]) -> Client {
    let mut client = Client::guarded(&[options, &["--timeout", HANGS], &MEMORY].concat());
    client.list_tools();
    client.ask(1, "read_file", json!({ "path": "a" }));
    for id in 2..=3 {
        pay(&mut client, id, "k1", json!({ "order": "o" }));
        assert_eq!(text(&client.answer(id)), "charged order o");
    }
    pay(&mut client, 4, "k2", json!({ "order": "p", "then": "hang" }));
    client.answer(4);
    for (id, order) in [(5, "p"), (6, "other")] {
        let hangs = json!({ "order": order, "then": "hang" });
        pay(&mut client, id, "k2", hangs);
        client.answer(id);
    }
    client
}

#[test]
fn the_summary_counts_what_became_of_the_calls() {
    let mut client = busy(&[]);
    client.signal(Signal::TERM);
    assert_eq!(client.wait().code(), Some(143));
    let by = "idempotency_conflict=1 outcome_unknown=1";
    assert_eq!(summary(&client.stderr()), counts([6, 1, 1, 1, 2, 1, 0], by));
}

#[test]
fn a_person_reads_what_the_guard_did() {
    let mut client = busy(&["--log", "human"]);
    client.signal(Signal::TERM);
    client.wait();
    let log = client.stderr();
    for line in [
        "Z retry     read_file: attempt 1 failed (",
        "Z recovered read_file: succeeded at attempt 2, after ",
        "Z replayed  charge_card: recorded answer\n",
        "Z failed    charge_card: timeout: Tool timeout after 2s (",
        "Z refused   charge_card: outcome_unknown: ",
        "Z refused   charge_card: idempotency_conflict: ",
        "Z summary   6 calls, 1 retried (1 retry), 1 replayed, 2 refused \
         (idempotency_conflict=1, outcome_unknown=1), 1 left unknown\n",
    ] {
        assert!(log.contains(line), "{line}: {log}");
    }
    assert!(!log.contains(['{', '\u{1b}']), "neither JSON nor colors: {log}");
    assert_eq!(log.lines().count(), 7, "{log}");
}

#[test]
fn calls_that_a_signal_cuts_off_are_unknown() {
    let mut client = Client::guarded(&MEMORY);
    client.list_tools();
    client.call(1, "charge_card", json!({ "order": "o", "then": "hang" }));
    until("it has paid", || (client.executions("charge_card") == 1).then_some(()));
    client.signal(Signal::TERM);
    client.wait();
    assert_eq!(summary(&client.stderr()), counts([1, 0, 0, 0, 0, 1, 1], ""));
}

#[test]
fn the_summary_comes_also_when_the_server_ends_and_goes_to_the_log_s_file() {
    let file = ledger();
    let options = ["--log-file", file.to_str().unwrap()];
    let mut client = Client::script(&options, "read -r line; exit 3");
    client.ask(1, "any", json!({}));
    assert_eq!(client.wait().code(), Some(3));
    let log = fs::read_to_string(&file).unwrap();
    assert_eq!(summary(&log), counts([1, 0, 0, 0, 0, 1, 0], ""));
    assert!(!client.stderr().contains("summary"));
    fs::remove_file(file).unwrap();
}

#[test]
fn where_nothing_is_logged_or_looked_at_there_is_no_summary() {
    for options in [["--log", "off"], ["--mode", "off"]] {
        let mut client = Client::script(&[options, MEMORY].concat(), "read -r line; exit 3");
        client.call(1, "any", json!({}));
        client.wait();
        assert_eq!(client.stderr(), "", "{options:?}");
    }
}

/// A failure of the call's own run is no replay, though its record keeps it.
#[test]
fn refusals_of_calls_with_ids_are_counted_as_refusals() {
    const SERVER: &str = r#"while read -r line; do
id=$(printf %s "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
case "$line" in
*tools/list*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"search","annotations":{"readOnlyHint":true}}]}}';;
*tools/call*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"HTTP 503"}],"isError":true}}';;
esac
done"#;
    let mut client = Client::script(&["--log", "info", "--records", "memory"], SERVER);
    client.list_tools();
    for id in 1..=4 {
        let meta = json!({ "claudecode/toolUseId": format!("toolu_01A09q90qw90lq9178{id:05}c") });
        let params = json!({ "name": "search", "arguments": { "q": id }, "_meta": meta });
        client.request(id, "tools/call", params);
        client.answer(id);
    }
    client.signal(Signal::TERM);
    client.wait();
    let summary = summary(&client.stderr());
    assert_eq!(summary["replayed"], 0, "{summary}");
    assert!(summary["refused"].as_u64() > Some(0), "{summary}");
}
