//! What is a loop to the guard, and what only looks like one.
use crate::client::{Client, ledger, text};
use serde_json::{Value, json};
use std::fs;

/// Calls `echo` so often, and counts answers that are warnings and refusals.
fn echo(client: &mut Client, times: u32, arguments: &Value) -> (usize, usize) {
    let (mut warned, mut refused) = (0, 0);
    for id in 1..=times {
        client.call(id, "echo", arguments.clone());
        let answer = text(&client.answer(id));
        warned += usize::from(answer.contains("[LOOP WARNING]"));
        refused += usize::from(answer.starts_with("[LOOP DETECTED]"));
    }
    (warned, refused)
}

#[test]
fn a_quiet_build_polled_60_times_is_no_loop() {
    let catalog = ledger().with_extension("toml");
    fs::write(&catalog, "[tools.echo]\neffect = \"read_only\"\nloops = { poll = true }\n").unwrap();
    let mut client = Client::guarded(&["--catalog", catalog.to_str().unwrap()]);
    assert_eq!(echo(&mut client, 60, &json!({ "text": "" })), (0, 0));
    fs::remove_file(catalog).unwrap();
    // Nor where nobody declares it, and the answers say that it goes on.
    let mut client = Client::guarded(&[]);
    client.list_tools();
    assert_eq!(echo(&mut client, 60, &json!({ "text": "Process still running." })), (0, 0));
}

#[test]
fn the_same_answer_again_and_again_is_one() {
    let mut client = Client::guarded(&[]);
    client.list_tools();
    assert_eq!(echo(&mut client, 25, &json!({ "text": "a.rs" })), (11, 5));
    let mut client = Client::guarded(&["--loops", "failures"]);
    assert_eq!(echo(&mut client, 25, &json!({ "text": "a.rs" })), (0, 0));
}

/// Answers by the name of the tool: `edit` succeeds, `test` fails, `book` is called wrongly.
const SERVER: &str = r#"
    while read -r line; do
        id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        case "$line" in
            *'"edit"'*) end='"result":{"content":[{"type":"text","text":"edited"}]}' ;;
            *'"test"'*) end='"result":{"content":[{"type":"text","text":"1 test failed"}],"isError":true}' ;;
            *) end='"error":{"code":-32602,"message":"Missing required parameter: to"}' ;;
        esac
        echo "$line" >> "$LEDGER"
        echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$end}"
    done"#;

#[test]
fn a_test_that_fails_after_each_edit_is_none() {
    let mut client = Client::script(&[], SERVER);
    for round in 0..8 {
        client.call(2 * round, "edit", json!({ "new": round }));
        assert_eq!(text(&client.answer(2 * round)), "edited");
        client.call(2 * round + 1, "test", json!({}));
        assert_eq!(text(&client.answer(2 * round + 1)), "1 test failed");
    }
}

#[test]
fn a_call_that_the_server_s_schema_refuses_is_one() {
    let mut client = Client::script(&[], SERVER);
    for id in 1..=3 {
        client.call(id, "book", json!({}));
        let answer = client.answer(id).to_string();
        assert_eq!(answer.contains("[LOOP DETECTED]"), id > 1, "{answer}");
    }
    assert_eq!(client.executions(""), 2);
}

/// The server never hears of a call that fails the schema that its user declares.
#[test]
fn a_call_that_the_catalogue_s_schema_refuses_is_one_and_never_reaches_the_server() {
    let catalog = ledger().with_extension("schema.toml");
    let schema = r#"{ required = ["to"], properties = { to = { type = "string" }, seats = { type = "integer" } } }"#;
    fs::write(&catalog, format!("[tools.book]\ninput_schema = {schema}\n")).unwrap();
    let mut client = Client::script(&["--catalog", catalog.to_str().unwrap()], SERVER);
    for id in 1..=3 {
        client.call(id, "book", json!({ "seats": "two" }));
        let answer = client.answer(id);
        let said = text(&answer);
        assert_eq!(answer["result"]["isError"], true);
        assert_eq!(answer["result"]["_meta"]["tool-reliability/error"]["ran"], "no");
        if id < 3 {
            let faults = "Missing required parameter: to; Expected integer but received string at /seats\n[NON-RETRYABLE]";
            assert!(said.starts_with(faults), "{said}");
        }
        assert_eq!(said.contains("[LOOP DETECTED]"), id > 1, "{said}");
    }
    client.call(4, "book", json!({ "to": "LIS", "seats": 2 }));
    assert!(client.answer(4)["error"]["message"].is_string());
    fs::remove_file(catalog).unwrap();
    assert_eq!(client.executions(""), 1);
}
