//! Payments that were given up and whose server still works: a person settles them, and the answer comes.
use super::{Shop, code, command::records, kill, paid, pay, unrecorded};
use crate::mcp::client::{Client, text, until};
use serde_json::{Value, json};
use std::fs;

const META: &str = "idempotencyKey";

/// A payment that its guard gave up, and the record's ID.
fn given_up(shop: &Shop) -> (Client, String) {
    let mut client = unrecorded::open(shop, &["--timeout", "500ms"]);
    pay(&mut client, 1, &json!({ META: "k" }), json!({ "order": "o-1" }));
    assert_eq!(code(&client.answer(1)), "timeout");
    let listed = records(shop, &["list", "--unknown"]).0;
    until("it has paid", || (shop.paid() == 1).then_some(()));
    (client, listed[..12].to_owned())
}

fn event(client: &mut Client, name: &str) -> Value {
    let log = client.log_until(|log| log.contains(name));
    serde_json::from_str(log.lines().last().unwrap()).unwrap()
}

#[test]
fn a_call_that_may_still_run_is_not_settled_as_not_run() {
    let shop = Shop::new();
    let (mut client, id) = given_up(&shop);
    let (said, code) = records(&shop, &["settle", &id, "did-not-run"]);
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("may still run") && said.contains("--force"), "{said}");
    let (shown, _) = records(&shop, &["show", &id]);
    assert!(shown.contains("It may still run") && shown.contains("--force"), "{shown}");
    // With its guard the server has ended, too.
    super::kill(&mut client);
    let (shown, _) = records(&shop, &["show", &id]);
    assert!(!shown.contains("still run") && !shown.contains("--force"), "{shown}");
    assert_eq!(records(&shop, &["settle", &id, "did-not-run"]).1, Some(0));
}

#[test]
fn the_answer_to_a_call_that_was_settled_as_not_run_is_recorded() {
    let shop = Shop::new();
    let go = shop.ledger.with_extension("go");
    let (mut client, id) = given_up(&shop);
    assert_eq!(records(&shop, &["settle", &id, "did-not-run", "--force"]).1, Some(0));
    fs::write(&go, "result").unwrap();
    let event = event(&mut client, "settlement_corrected");
    assert_eq!((&event["level"], &event["record"]), (&json!("warn"), &json!(id)));
    pay(&mut client, 2, &json!({ META: "k" }), json!({ "order": "o-1" }));
    assert_eq!((text(&client.answer(2)), shop.paid()), ("paid".into(), 1));
    fs::remove_file(go).unwrap();
}

#[test]
fn the_answer_to_a_call_that_was_settled_as_not_run_and_repeated_is_an_error_in_the_log() {
    let shop = Shop::new();
    let go = shop.ledger.with_extension("go");
    let (mut client, id) = given_up(&shop);
    assert_eq!(records(&shop, &["settle", &id, "did-not-run", "--force"]).1, Some(0));
    pay(&mut client, 2, &json!({ META: "k" }), json!({ "order": "o-1" }));
    assert_eq!(code(&client.answer(2)), "timeout");
    fs::write(&go, "result").unwrap();
    let event = event(&mut client, "may_have_run_twice");
    assert_eq!((&event["level"], &event["record"]), (&json!("error"), &json!(id)));
    until("it has paid twice", || (shop.paid() == 2).then_some(()));
    fs::remove_file(go).unwrap();
}

/// The refused call itself did not run; the one that did is named as the earlier one.
#[test]
fn a_repeat_refused_by_a_locked_file_is_not_said_to_have_run_itself() {
    let shop = Shop::new();
    let meta = json!({ "idempotencyKey": "k" });
    let order = json!({ "order": "o-1", "then": "hang" });
    let mut client = shop.open(&[]);
    pay(&mut client, 1, &meta, order.clone());
    until("it has paid", || (shop.paid() == 1).then_some(()));
    kill(&mut client);
    let mut client = shop.open(&[]);
    client.list_tools();
    let other = rusqlite::Connection::open(&shop.records).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let answer = paid(&mut client, 1, &meta, order);
    assert_eq!(code(&answer), "store_unavailable", "{answer}");
    let said = text(&answer);
    assert!(said.starts_with("the call was not run, because it could not be recorded; an earlier call with its key may have run: "), "{said}");
    assert!(said.contains("check first whether the earlier call ran"), "{said}");
    assert!(!said.contains("it may have run;") && !said.contains("retry is safe"), "{said}");
}
