//! Payments that agree in the params that say what is wanted are one payment, whatever their ids.
use super::client::{BIN, Client, ledger, text};
use serde_json::{Value, json};
use std::{fs, path::PathBuf, process::Command};

/// Pays, and declines the card `declined`.
const SERVER: &str = r#"while read -r line; do
id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
case "$line" in
*tools/call*)
    echo pay >> "$LEDGER"
    sleep 0.1
    case "$line" in
    *declined*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"card declined"}],"isError":true,"_meta":{"tool-reliability/error":{"ran":"yes","retriable":false}}}}';;
    *) echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"paid"}]}}';;
    esac;;
esac
done"#;

fn catalog() -> PathBuf {
    let catalog = ledger().with_extension("toml");
    fs::write(
        &catalog,
        "[tools.pay]\nkeys = { identity = [\"/order/number\"], volatile = [\"/memo\"] }\n",
    )
    .unwrap();
    catalog
}

/// A payment of an order, under another id of the model's each time.
fn pay(client: &mut Client, id: u32, rest: &[(&str, &str)]) {
    request(
        client,
        id,
        rest,
        json!({ "claudecode/toolUseId": format!("toolu_01A09q90qw90lq9178{id:05}c") }),
    );
}

fn request(client: &mut Client, id: u32, rest: &[(&str, &str)], meta: Value) {
    let mut arguments = json!({ "order": { "number": "42" } });
    for (name, value) in rest {
        arguments[name] = (*value).into();
    }
    let params = json!({ "name": "pay", "arguments": arguments, "_meta": meta });
    client.request(id, "tools/call", params);
}

fn told(client: &mut Client, id: u32) -> String {
    text(&client.answer(id))
}

#[test]
fn a_payment_that_is_dispatched_twice_or_asked_again_is_made_once() {
    let catalog = catalog();
    let mut client = Client::script(&["--catalog", catalog.to_str().unwrap()], SERVER);
    pay(&mut client, 1, &[("cents", "5")]);
    pay(&mut client, 2, &[("cents", "5"), ("memo", "again")]);
    assert_eq!([told(&mut client, 1), told(&mut client, 2)], ["paid", "paid"]);
    pay(&mut client, 3, &[("cents", "5"), ("memo", "and again")]);
    assert_eq!(told(&mut client, 3), "paid");
    // Without the params that say what is wanted, its own id recognizes a call.
    client.call(4, "pay", json!({ "cents": "5" }));
    client.call(5, "pay", json!({ "cents": "5", "order": { "number": null } }));
    assert_eq!([told(&mut client, 4), told(&mut client, 5)], ["paid", "paid"]);
    assert_eq!(client.executions("pay"), 3);
}

#[test]
fn another_amount_for_the_same_order_is_a_conflict_that_says_what_differs() {
    let catalog = catalog();
    for records in [&["--records", "memory"][..], &[]] {
        let options = [&["--catalog", catalog.to_str().unwrap()], records].concat();
        let mut client = Client::script(&options, SERVER);
        pay(&mut client, 1, &[("cents", "5")]);
        // The memo does not count.
        pay(&mut client, 2, &[("cents", "6"), ("memo", "again")]);
        let running = told(&mut client, 2);
        assert!(
            running.contains(
                "A call for the same thing with other arguments (cents) is running [record "
            ),
            "{running}"
        );
        assert_eq!(told(&mut client, 1), "paid");
        pay(&mut client, 3, &[("cents", "6"), ("to", "Ada")]);
        let answer = client.answer(3);
        let said = text(&answer);
        assert!(said.contains("with other arguments (cents, to) is done [record "), "{said}");
        assert!(said.contains("]; this one did not run"), "{said}");
        let error = &answer["result"]["_meta"]["tool-reliability/error"];
        assert_eq!((&error["code"], &error["ran"]), (&json!("idempotency_conflict"), &json!("no")));
        // A key of the caller's own says that it is meant.
        request(&mut client, 4, &[("cents", "6")], json!({ "idempotencyKey": "second" }));
        assert_eq!(told(&mut client, 4), "paid");
        assert_eq!(client.executions("pay"), 2);
    }
}

#[test]
fn after_a_failure_the_corrected_payment_runs_and_the_same_one_does_not() {
    let catalog = catalog();
    for records in [&["--records", "memory"][..], &[]] {
        let options = [&["--catalog", catalog.to_str().unwrap()], records].concat();
        let mut client = Client::script(&options, SERVER);
        for id in 1..=2 {
            pay(&mut client, id, &[("card", "declined")]);
            assert!(told(&mut client, id).contains("card declined"));
        }
        assert_eq!(client.executions("pay"), 1);
        pay(&mut client, 3, &[("card", "good")]);
        let said = told(&mut client, 3);
        assert!(said.contains("paid"), "{said}");
        assert!(
            said.contains(
                "[CORRECTED] A call for the same thing with other arguments (card) failed"
            ),
            "{said}"
        );
        pay(&mut client, 4, &[("card", "declined")]);
        assert!(told(&mut client, 4).contains("with other arguments (card) is done"));
        assert_eq!(client.executions("pay"), 2);
    }
}

#[test]
fn an_answer_that_may_not_have_been_read_is_given_again_where_that_is_declared() {
    let catalog = ledger().with_extension("toml");
    fs::write(&catalog, "[tools.pay]\nkeys = { late = \"60s\" }\n").unwrap();
    let mut client = Client::script(&["--catalog", catalog.to_str().unwrap()], SERVER);
    for id in 1..=3 {
        pay(&mut client, id, &[]);
        let said = told(&mut client, id);
        assert_eq!(said.contains("[REPEATED] An equal call succeeded 0 s ago"), id > 1, "{said}");
        assert!(said.contains("paid"), "{said}");
    }
    // Without an id, too; another call runs, and so does one that its caller declares.
    client.call(4, "pay", json!({ "order": { "number": "42" } }));
    assert!(told(&mut client, 4).contains("[REPEATED]"));
    pay(&mut client, 5, &[("cents", "6")]);
    request(&mut client, 6, &[], json!({ "idempotencyKey": "meant" }));
    assert_eq!([told(&mut client, 5), told(&mut client, 6)], ["paid", "paid"]);
    assert_eq!(client.executions("pay"), 3);
}

#[test]
fn derived_keys_hold_for_calls_with_ids_and_reads_are_made_each_time() {
    let mut client = Client::script(&["--derive-keys", "session"], SERVER);
    for id in 1..=2 {
        pay(&mut client, id, &[]);
    }
    assert_eq!([told(&mut client, 1), told(&mut client, 2)], ["paid", "paid"]);
    assert_eq!(client.executions("pay"), 1);
    let catalog = ledger().with_extension("toml");
    fs::write(&catalog, "[tools.pay]\neffect = \"read_only\"\n").unwrap();
    let options = ["--derive-keys", "session", "--catalog", catalog.to_str().unwrap()];
    let mut client = Client::script(&options, SERVER);
    for id in 1..=2 {
        pay(&mut client, id, &[]);
        assert_eq!(told(&mut client, id), "paid");
    }
    assert_eq!(client.executions("pay"), 2);
}

/// A request key that a model writes for each try makes no other call of one whose outcome is unknown.
#[test]
fn a_call_of_unknown_outcome_bars_one_that_differs_in_its_request_key() {
    let hangs = r#"while read -r line; do case "$line" in *tools/call*) echo pay >> "$LEDGER";; esac; done"#;
    let ask = |client: &mut Client, id: u32, key: &str| {
        let meta = json!({ "claudecode/toolUseId": format!("toolu_01A09q90qw90lq9178{id:05}c") });
        let arguments = json!({ "cents": 5, "idempotency_key": key, "memo": null });
        client.request(
            id,
            "tools/call",
            json!({ "name": "pay", "arguments": arguments, "_meta": meta }),
        );
        text(&client.answer(id))
    };
    let ledger = ledger();
    let guard = || {
        let mut command = Command::new(BIN);
        command.args(["mcp", "--timeout", "500ms", "--", "sh", "-c", hangs]);
        // A conversation that outlives the guard.
        command.env("LEDGER", &ledger).env("CLAUDE_PROJECT_DIR", "/project");
        Client::start(command, ledger.clone())
    };
    let mut first = guard();
    assert!(ask(&mut first, 1, "a").contains("may have run"));
    let said = ask(&mut first, 2, "b");
    assert!(said.contains("was sent before, and its outcome is unknown"), "{said}");
    // Another guard reads it in the store.
    let mut second = guard();
    let said = ask(&mut second, 3, "c");
    assert!(said.contains("was sent before, and its outcome is unknown"), "{said}");
    assert_eq!(first.executions("pay"), 1);
}
