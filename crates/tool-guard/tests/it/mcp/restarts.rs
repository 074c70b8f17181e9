//! A server that crashes and is started again.
use super::client::{BIN, Client, text};
use serde_json::{Value, json};
use std::{fs, process::Command};

/// A server that notes each line of the client's behind the number of its start. `crash` ends it while it is the
/// first, `die` always.
const SHOP: &str = r#"echo start >>"$LEDGER"; n=$(grep -c '^start$' "$LEDGER"); version=${VERSION:-1}
    [ "$n" -gt 1 ] && version=${LATER:-$version}
    while read -r line; do
        echo "$n $line" >>"$LEDGER"
        id=$(printf %s "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
        case "$line" in
        *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"shop","version":"'$version'"}}';;
        *'"tools/list"'*) result='{"tools":[{"name":"read","annotations":{"readOnlyHint":true}},{"name":"pay"}]}';;
        *'"die"'*) exit 3;;
        *'"crash"'*) [ "$n" = 1 ] && exit 3; result='{"content":[{"type":"text","text":"again"}]}';;
        *) result='{"content":[{"type":"text","text":"ok"}]}';;
        esac
        [ -z "$id" ] || echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$result}"
    done"#;

/// A client that has listed the tools of [`SHOP`].
fn open(options: &[&str]) -> Client {
    let options = [&["--restart", "crash"], options].concat();
    let mut client = Client::script(&options, SHOP);
    let info = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info });
    client.ask_for(0, "initialize", params);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    client.ask_for(1, "tools/list", json!({}));
    client
}

/// What each server was sent, by the number of its start.
fn sent(client: &Client, start: u32) -> Vec<Value> {
    let heard = fs::read_to_string(client.ledger()).unwrap();
    let prefix = format!("{start} ");
    let lines = heard.lines().filter_map(|line| line.strip_prefix(&prefix));
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_read_in_flight_is_repeated_and_the_client_is_told() {
    let mut client = open(&[]);
    client.call(2, "read", json!({ "then": "crash" }));
    let changed = client.receive();
    assert_eq!(changed["method"], "notifications/tools/list_changed", "{changed}");
    let answer = client.answer(2);
    let said = answer["result"]["content"].to_string();
    assert!(said.contains("again") && said.contains("was started again"), "{answer}");
    assert!(!client.ask(3, "read", json!({})).to_string().contains("started again"));

    // The handshake is the client's own, byte for byte, and comes first.
    let (first, second) = (sent(&client, 1), sent(&client, 2));
    assert_eq!(first[..2], second[..2]);
    assert_eq!(second[1]["method"], "notifications/initialized");
    assert_eq!(second[2]["params"]["name"], "read");
}

#[test]
fn a_payment_in_flight_is_never_sent_again() {
    let mut client = open(&[]);
    let answer = client.ask(2, "pay", json!({ "then": "crash" }));
    assert!(text(&answer).contains("may have run"), "{answer}");
    // Others wait for the server, and are made once.
    let answer = client.ask(3, "pay", json!({ "order": 2 }));
    assert!(answer["result"]["content"][0]["text"] == "ok", "{answer}");
    let payments = |start| {
        let calls = sent(&client, start).into_iter();
        calls.filter(|line| line["method"] == "tools/call").collect::<Vec<_>>()
    };
    assert_eq!((payments(1).len(), payments(2).len()), (1, 1));
    assert_eq!(payments(2)[0]["params"]["arguments"]["order"], 2);
}

#[test]
fn a_server_of_another_version_stays_down() {
    let mut command = Command::new(BIN);
    let ledger = crate::mcp::client::ledger();
    command
        .args(["mcp", "--restart", "crash", "--", "sh", "-c", SHOP])
        .env("LEDGER", &ledger)
        .env("LATER", "2");
    let mut client = Client::start(command, ledger);
    let info = json!({ "name": "test", "version": "1" });
    client.ask_for(0, "initialize", json!({ "capabilities": {}, "clientInfo": info }));
    assert!(text(&client.ask(2, "pay", json!({ "then": "crash" }))).contains("may have run"));
    assert_ne!(client.wait().code(), Some(0));
    assert_eq!(sent(&client, 2).len(), 1, "only the handshake");
    assert!(sent(&client, 3).is_empty());
}

#[test]
fn a_server_that_ends_well_is_not_started_again() {
    let script = "read line; exit 0";
    let mut client = Client::script(&["--restart", "crash"], script);
    assert!(text(&client.ask(1, "any", json!({}))).contains("may have run"));
    assert_eq!(client.wait().code(), Some(0));
}

#[test]
fn only_a_guard_that_acts_starts_servers_again() {
    let output = Command::new(BIN)
        .args(["mcp", "--mode", "observe", "--restart", "crash", "--", "true"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("--restart crash needs --mode enforce"), "{said}");
    assert_eq!(output.status.code(), Some(1));
}
