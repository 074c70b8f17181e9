//! What is retried, and what a retry does to ids, progress and loops.
use super::client::{Client, ledger, text, until};
use serde_json::json;
use std::fs;

#[test]
fn a_read_is_retried_once_the_tools_were_listed() {
    let mut client = Client::guarded(&[]);
    let said = text(&client.ask(1, "read_file", json!({ "path": "before" })));
    assert!(said.starts_with("read ECONNRESET\n[MAY HAVE RUN]"), "{said}");
    assert_eq!(client.executions("read_file before"), 1);

    client.list_tools();
    let answer = client.ask("2", "read_file", json!({ "path": "after" }));
    assert_eq!((text(&answer).as_str(), answer["id"].as_str()), ("contents of after", Some("2")));
    assert_eq!(client.executions("read_file after"), 2);
}

#[test]
fn progress_keeps_a_slow_call_alive() {
    // Longer in all than the timeout, and in single steps far shorter, whatever else runs here.
    let mut client = Client::guarded(&["--timeout", "2s"]);
    client.list_tools();
    let params = json!({
        "name": "slow", "arguments": { "ms": 3000, "steps": 30 }, "_meta": { "progressToken": "t" },
    });
    client.request(1, "tools/call", params);
    for step in 1..=30 {
        let note = client.receive();
        assert_eq!(
            (&note["params"]["progressToken"], &note["params"]["progress"]),
            (&json!("t"), &json!(step))
        );
    }
    assert_eq!(text(&client.answer(1)), "done");
}

#[test]
fn progress_does_not_keep_it_alive_for_ever() {
    let mut client = Client::guarded(&["--timeout", "2s", "--max-timeout", "3s"]);
    client.list_tools();
    let params = json!({
        "name": "slow", "arguments": { "ms": 60_000, "steps": 600 }, "_meta": { "progressToken": 7 },
    });
    assert!(text(&client.ask_for(1, "tools/call", params)).contains("Tool timeout after 3s"));
    // The server goes on for a minute; nobody hears of it.
    assert!(client.is_quiet());
}

#[test]
fn a_loop_of_malformed_calls_ends_at_the_third() {
    let mut client = Client::guarded(&[]);
    client.list_tools();
    client.call(1, "read_file", json!({}));
    assert_eq!(text(&client.answer(1)), "Missing required parameter: path\n[NON-RETRYABLE]");
    client.call(2, "read_file", json!({}));
    let loop_message =
        "[LOOP DETECTED] Tool \"read_file\" failed 2 times with identical arguments.";
    assert!(text(&client.answer(2)).contains(loop_message));
    let third = client.ask(3, "read_file", json!({}));
    assert!(text(&third).contains(loop_message));
    assert_eq!(third["result"]["_meta"]["tool-reliability/error"]["ran"], "no");
    assert_eq!(client.executions("read_file"), 2);
}

#[test]
fn a_cancelled_call_is_not_answered_and_not_repeated() {
    let mut client = Client::guarded(&[]);
    client.call(1, "slow", json!({ "ms": 100 }));
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }));
    // The demonstration's server ignores cancellations: without a guard its answer would come.
    assert_eq!(text(&client.answer(1)), "done");
    client.call(2, "charge_card", json!({ "order": "o", "then": "hang" }));
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } }));
    assert!(client.is_quiet());
    until("the payment is made", || (client.executions("charge_card") > 0).then_some(()));
    assert_eq!(client.executions("charge_card"), 1);
}

#[test]
fn what_the_server_says_of_a_cancelled_call_is_heard() {
    let mut client = Client::guarded(&[]);
    let params = json!({
        "name": "slow", "arguments": { "ms": 300, "steps": 3 }, "_meta": { "progressToken": "t" },
    });
    client.request(1, "tools/call", params);
    assert_eq!(client.receive()["params"]["progress"], 1);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }));
    for step in 2..=3 {
        assert_eq!(client.receive()["params"]["progress"], step);
    }
    assert_eq!(text(&client.answer(1)), "done");
}

/// The server's part: the first call of each tool is reset by the peer.
const RESETS: &str = r#"
    while read -r line; do
        id=$(printf %s "$line" | sed 's/.*"id":\([^,}]*\).*/\1/')
        name=$(printf %s "$line" | sed 's/.*"name":"\([a-z]*\)".*/\1/')
        case "$line" in
            *tools/list*)
                printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"plain"},{"name":"harm","annotations":{"destructiveHint":true}}]}}\n' "$id" ;;
            *tools/call*)
                echo "$name" >>"$LEDGER"
                if [ "$(grep -c "$name" "$LEDGER")" = 1 ]; then
                    printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"read ECONNRESET"}}\n' "$id"
                else
                    printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"there"}]}}\n' "$id"
                fi ;;
        esac
    done"#;

#[test]
fn a_catalog_says_what_all_other_tools_do_but_not_over_the_server_s_own_warning() {
    let catalog = ledger().with_extension("catalog.toml");
    fs::write(&catalog, "undeclared_effect = \"read_only\"\n").unwrap();
    for (options, plain) in [(&["--catalog", catalog.to_str().unwrap()][..], 2), (&[], 1)] {
        let mut client = Client::script(options, RESETS);
        client.list_tools();
        for (id, tool, times) in [(1, "plain", plain), (2, "harm", 1)] {
            let answer = client.ask(id, tool, json!({}));
            assert_eq!(client.executions(tool), times, "{tool} {options:?}: {answer}");
            assert_eq!(answer.get("error").is_none(), times == 2, "{answer}");
        }
    }
    fs::remove_file(catalog).unwrap();
}

/// Fails as the tool's name says: in a result, or as an error of JSON-RPC.
const DOWN: &str = r#"
    while read -r line; do
        id=$(printf %s "$line" | sed 's/.*"id":\([^,}]*\).*/\1/')
        case "$line" in
            *'"reports"'*) tool=reports end='"result":{"isError":true,"content":[{"type":"text","text":"Service unavailable (503)"}]}' ;;
            *) tool=errs end='"error":{"code":-32050,"message":"Service unavailable (503)"}' ;;
        esac
        echo "$tool" >> "$LEDGER"
        echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$end}"
    done"#;

#[test]
fn eh_1_5_a_catalog_s_classification_by_status_decides_what_is_retried() {
    let catalog = ledger().with_extension("status.toml");
    for (entry, runs) in [
        ("\"502\" = \"permanent\"", [4, 4]),
        ("\"503\" = \"permanent\"", [1, 1]),
        ("service_unavailable = \"permanent\"", [1, 1]),
        ("\"-32050\" = \"permanent\"", [4, 1]),
    ] {
        let tool = format!(
            "effect = \"read_only\"\nclassification = {{ {entry} }}\nretry = {{ base_ms = 1 }}\n"
        );
        fs::write(&catalog, format!("[tools.reports]\n{tool}[tools.errs]\n{tool}")).unwrap();
        let mut client = Client::script(&["--catalog", catalog.to_str().unwrap()], DOWN);
        for (id, tool) in [(1, "reports"), (2, "errs")] {
            client.call(id, tool, json!({}));
            assert!(client.answer(id).to_string().contains("Service unavailable (503)"));
        }
        assert_eq!(["reports", "errs"].map(|tool| client.executions(tool)), runs, "{entry}");
    }
    fs::remove_file(catalog).unwrap();
}
