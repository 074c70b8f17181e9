//! A payment runs at most once per call, whatever happens to its answer.
use super::client::{Client, HANGS, ledger, text, until};
use serde_json::json;
use std::fs;

fn pay(then: &str, options: &[&str]) -> (String, usize) {
    let mut client = Client::guarded(options);
    client.list_tools();
    let answer = client.ask(1, "charge_card", json!({ "order": "o-1", "then": then }));
    let said =
        if answer.get("error").is_some() { answer["error"].to_string() } else { text(&answer) };
    (said, client.executions("charge_card"))
}

#[test]
fn a_server_that_crashes_after_paying_has_paid_once() {
    let (said, executions) = pay("crash", &[]);
    assert_eq!(executions, 1);
    assert!(said.contains("ended before it answered") && said.contains("may have run"), "{said}");
}

#[test]
fn a_server_that_hangs_after_paying_has_paid_once() {
    let (said, executions) = pay("hang", &["--timeout", HANGS]);
    assert_eq!(executions, 1);
    assert!(said.contains("Tool timeout after 2s") && said.contains("may have run"), "{said}");
}

#[test]
fn a_payment_that_is_answered_with_a_timeout_ran_once() {
    let (said, executions) = pay("error", &[]);
    assert_eq!(executions, 1);
    assert!(said.contains("Request timed out"), "{said}");
}

#[test]
fn two_intended_payments_run_twice() {
    let mut client = Client::guarded(&[]);
    for id in 1..=2 {
        client.call(id, "charge_card", json!({ "order": "same" }));
        assert_eq!(text(&client.answer(id)), "charged order same");
    }
    assert_eq!(client.executions("charge_card same"), 2);
}

/// Such names say how an envelope travels; the arguments of a tool may have them with a meaning of their own.
#[test]
fn payments_differ_in_arguments_of_any_name_unless_the_catalog_leaves_them_out() {
    let catalog = ledger().with_extension("toml");
    for (keys, is_same) in
        [(None, false), (Some("volatile = [\"/x\"]"), false), (Some("keep_volatile = false"), true)]
    {
        let keys = keys.map(|keys| format!("keys = {{ {keys} }}\n")).unwrap_or_default();
        let tools = format!("[tools.charge_card]\neffect = \"mutating\"\n{keys}");
        fs::write(&catalog, tools).unwrap();
        for name in ["clientTs", "retryCount", "traceparent", "tracestate", "baggage"] {
            let mut client = Client::guarded(&["--catalog", catalog.to_str().unwrap()]);
            let meta = json!({ "idempotencyKey": "k" });
            let mut pay = |id: u32, value: &str| {
                let arguments = json!({ "order": "o-1", name: value });
                let params =
                    json!({ "name": "charge_card", "arguments": arguments, "_meta": meta });
                client.ask_for(id, "tools/call", params)
            };
            pay(1, "a");
            let answer = pay(2, "b");
            let code = &answer["result"]["_meta"]["tool-reliability/error"]["code"];
            assert_eq!(*code == "idempotency_conflict", !is_same, "{name} {keys}: {answer}");
            assert_eq!(client.executions("charge_card"), 1);
        }
    }
    fs::remove_file(catalog).unwrap();
}

#[test]
fn a_payment_after_a_cancelled_one_runs_only_as_a_call_that_is_meant() {
    let mut client = Client::guarded(&[]);
    client.call(1, "charge_card", json!({ "order": "o-1", "then": "hang" }));
    until("it has paid", || (client.executions("charge_card") == 1).then_some(()));
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }));
    let answer = client.ask(2, "charge_card", json!({ "order": "o-1", "then": "hang" }));
    assert_eq!(answer["result"]["_meta"]["tool-reliability/error"]["code"], "outcome_unknown");
    // It reached the server, and no answer came: what the guard does not know it does not repeat.
    let said = text(&answer);
    for part in [
        "was sent before, and its outcome is unknown, since it was cancelled before its answer came",
        "this one did not run",
        "calls equal to it are refused for another 10 min: ask the user",
        "if charge_card changes nothing, the user can declare that to the guard",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // The model is not told how to lift the guard.
    assert!(!["--catalog", "records", "idempotencyKey"].iter().any(|way| said.contains(way)));
    assert_eq!(client.executions("charge_card"), 1);
    keyed(&mut client, 3, "meant", json!({ "order": "o-1", "then": "hang" }));
    until("it has paid", || (client.executions("charge_card") == 2).then_some(()));
}

/// As in `printf … | tool-guard mcp …`: the claim of the last call is not on the disk yet.
#[test]
fn the_last_call_before_the_end_of_the_input_reaches_the_server() {
    for _ in 0..3 {
        let answers = r#"while read -r line; do echo paid >>"$LEDGER"; printf '{"id":1,"result":{}}\n'; done"#;
        let mut client = Client::script(&[], answers);
        keyed(&mut client, 1, "k", json!({ "order": "o-1" }));
        client.close();
        assert_eq!(client.answer(1), json!({ "id": 1, "result": {} }));
        assert_eq!(client.executions("paid"), 1);
        assert_eq!(client.wait().code(), Some(0));
    }
}

fn keyed(client: &mut Client, id: u32, key: &str, arguments: serde_json::Value) {
    let params = json!({ "name": "charge_card", "arguments": arguments, "_meta": { "idempotencyKey": key } });
    client.request(id, "tools/call", params);
}

#[test]
fn one_key_pays_once_and_every_call_is_answered() {
    let mut client = Client::guarded(&[]);
    let order = json!({ "order": "o-1" });
    keyed(&mut client, 1, "k", order.clone());
    keyed(&mut client, 2, "k", order.clone());
    let (first, second) = (client.answer(1), client.answer(2));
    keyed(&mut client, 3, "k", order);
    let third = client.answer(3);
    assert_eq!(client.executions("charge_card"), 1);
    assert_eq!((&first["result"], &first["result"]), (&second["result"], &third["result"]));
    keyed(&mut client, 4, "k", json!({ "order": "another" }));
    assert!(text(&client.answer(4)).contains("other params"));
    keyed(&mut client, 5, "k2", json!({ "order": "o-1" }));
    client.answer(5);
    assert_eq!(client.executions("charge_card"), 2);
}

#[test]
fn a_keyed_payment_whose_end_nobody_knows_is_not_repeated() {
    let mut client = Client::guarded(&["--timeout", HANGS]);
    client.list_tools();
    let order = json!({ "order": "o-1", "then": "hang" });
    keyed(&mut client, 1, "k", order.clone());
    assert!(text(&client.answer(1)).contains("may have run"));
    keyed(&mut client, 2, "k", order);
    let answer = client.answer(2);
    assert_eq!(answer["result"]["_meta"]["tool-reliability/error"]["code"], "outcome_unknown");
    assert_eq!(client.executions("charge_card"), 1);
}

#[test]
fn keys_are_derived_only_as_asked_for() {
    for (from, executions) in [("off", 2), ("session", 1)] {
        let mut client = Client::guarded(&["--derive-keys", from]);
        for id in 1..=2 {
            client.call(id, "charge_card", json!({ "order": "same" }));
            assert_eq!(text(&client.answer(id)), "charged order same", "{from}");
        }
        assert_eq!(client.executions("charge_card same"), executions, "{from}");
    }
}

#[test]
fn a_payment_that_nobody_knows_the_end_of_is_not_repeated() {
    for from in ["off", "session"] {
        let mut client = Client::guarded(&["--timeout", HANGS, "--derive-keys", from]);
        client.list_tools();
        for id in 1..=2 {
            client.call(id, "charge_card", json!({ "order": "o-1", "then": "hang" }));
            let said = text(&client.answer(id));
            assert!(said.contains("may have run"), "{from}: {said}");
        }
        assert_eq!(client.executions("charge_card"), 1, "{from}");
    }
}
