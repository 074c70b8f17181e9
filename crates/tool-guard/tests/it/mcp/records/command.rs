//! `tool-guard records`: what a person sees of the records, and settles.
use super::{Shop, code, codex, paid, pay};
use crate::{
    mcp::client::{BIN, HANGS, text, until},
    operator::by_token,
};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt as _, process::Command};

/// What `tool-guard records` says, and its exit code.
pub(super) fn records(shop: &Shop, args: &[&str]) -> (String, Option<i32>) {
    let mut command = Command::new(BIN);
    command.args(["records", "--records"]).arg(&shop.records).args(args);
    command.env("XDG_STATE_HOME", shop.state());
    if ["settle", "forget"].contains(&args[0]) {
        by_token(&mut command, &shop.state());
    }
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (String::from_utf8(said).unwrap(), output.status.code())
}

/// A shop with a payment of unknown outcome, and the record's ID.
pub(super) fn unknown_payment(meta: &Value) -> (Shop, String) {
    let shop = Shop::new();
    let mut client = shop.open(&[]);
    pay(&mut client, 1, meta, json!({ "order": "o-1", "then": "hang" }));
    until("it has paid", || (shop.paid() == 1).then_some(()));
    client.signal(Signal::KILL);
    client.wait();
    // The ledger goes with its client.
    let (listed, code) = records(&shop, &["list", "--unknown"]);
    assert_eq!(code, Some(0), "{listed}");
    assert!(listed.contains("unknown") && listed.contains("charge_card"), "{listed}");
    (shop, listed[..12].to_owned())
}

#[test]
fn a_person_settles_what_nobody_knows_while_no_guard_runs_or_one_does() {
    let meta = codex("call_7", "t");
    let (shop, id) = unknown_payment(&meta);
    let (shown, _) = records(&shop, &["show", &id]);
    assert!(shown.contains("call_7") && shown.contains(&format!("settle {id} done")), "{shown}");
    let mut client = shop.open(&[]);
    let order = json!({ "order": "o-1", "then": "hang" });
    assert_eq!(code(&paid(&mut client, 1, &meta, order.clone())), "outcome_unknown");
    let (said, code) = records(&shop, &["settle", &id, "done"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(text(&paid(&mut client, 2, &meta, order)).contains("has ended"));
    assert_eq!(records(&shop, &["settle", &id, "done"]).1, Some(0));
    assert_eq!(records(&shop, &["settle", &id, "did-not-run"]).1, Some(3));
    assert_eq!(records(&shop, &["forget", &id]).1, Some(0));
    assert_eq!(records(&shop, &["show", &id]).1, Some(4));
    assert_eq!(records(&shop, &["list"]).0, "no records\n");
}

/// Who has to look at the tool's own side finds there what the record names.
#[test]
fn a_record_shows_server_client_and_the_params_that_the_catalog_allows() {
    let shop = Shop::new();
    let catalog = shop.ledger.with_extension("toml");
    fs::write(&catalog, "[tools.charge_card.records]\nshow = [\"/order\", \"/no/such\"]\n")
        .unwrap();
    let mut client = shop.open(&["--catalog", catalog.to_str().unwrap()]);
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {},
                        "clientInfo": { "name": "shop\nagent", "version": "7" } });
    client.request(9, "initialize", hello);
    client.answer(9);
    let order = json!({ "order": "o-1\nowner: x", "then": "hang", "card": "4111" });
    pay(&mut client, 1, &codex("call_7", "t"), order);
    until("it has paid", || (shop.paid() == 1).then_some(()));
    let guard = client.id().to_string();
    client.signal(Signal::KILL);
    client.wait();
    let (listed, _) = records(&shop, &["list", "--unknown"]);
    let (shown, _) = records(&shop, &["show", &listed[..12]]);
    let row = |name: &str| {
        let line = shown.lines().find(|line| line.split(' ').next() == Some(name));
        line.map(|line| line[name.len()..].trim().to_owned())
    };
    assert_eq!(row("server").as_deref(), Some("tool-guard __serve"), "{shown}");
    assert_eq!(row("guard"), Some(format!("process {guard}")), "{shown}");
    assert_eq!(row("client").as_deref(), Some("shop\\nagent/7"), "{shown}");
    assert_eq!(row("/order").as_deref(), Some("\"o-1\\nowner: x\""), "{shown}");
    assert!(!shown.contains("4111"), "{shown}");
    let (json, _) = records(&shop, &["show", &listed[..12], "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["request"]["about"]["client"], "shop\\nagent/7", "{json}");
    fs::remove_file(catalog).unwrap();
}

#[test]
fn a_person_s_answer_is_given_again_and_what_did_not_run_runs() {
    let meta = json!({ "idempotencyKey": "k" });
    let (shop, id) = unknown_payment(&meta);
    let answer = shop.ledger.with_extension("answer");
    let file = answer.to_str().unwrap();
    fs::write(&answer, r#"{"content":[],"content":[]}"#).unwrap();
    let (said, code) = records(&shop, &["settle", &id, "done", "--answer", file]);
    assert!(said.contains("duplicate member name") && code == Some(2), "{said}");
    // As editors write it.
    let pretty = json!({ "content": [{ "type": "text", "text": "paid by hand" }] });
    fs::write(&answer, format!("{pretty:#}\n")).unwrap();
    assert_eq!(records(&shop, &["settle", &id, "did-not-run", "--answer", file]).1, Some(2));
    assert_eq!(records(&shop, &["settle", &id, "done", "--answer", file]).1, Some(0));
    fs::write(&answer, "[]").unwrap();
    assert_eq!(records(&shop, &["settle", &id, "done", "--answer", file]).1, Some(2));
    fs::remove_file(answer).unwrap();
    let mut client = shop.open(&[]);
    let order = json!({ "order": "o-1", "then": "hang" });
    assert_eq!(text(&paid(&mut client, 1, &meta, order)), "paid by hand");

    let (shop, id) = unknown_payment(&meta);
    assert_eq!(records(&shop, &["settle", &id, "did-not-run"]).1, Some(0));
    let mut client = shop.open(&[]);
    pay(&mut client, 1, &meta, json!({ "order": "o-1", "then": "hang" }));
    until("it pays", || (shop.paid() == 1).then_some(()));
}

#[test]
fn records_with_the_same_beginning_are_named_and_left_alone() {
    let (shop, id) = unknown_payment(&json!({ "idempotencyKey": "k" }));
    let beginning = &id[..6];
    let twin = format!("{beginning}{}", "0".repeat(58));
    let file = rusqlite::Connection::open(&shop.records).unwrap();
    let columns = "digest, mutating, state, epoch, owner, version, runs, claimed_at, changed_at, \
                   until, unknown_ttl, tool, session, notes, body, holder";
    let copy = format!("INSERT INTO calls (key, {columns}) SELECT x'{twin}', {columns} FROM calls");
    assert_eq!(file.execute(&copy, []).unwrap(), 1);
    for order in
        [vec!["show", beginning], vec!["settle", beginning, "done"], vec!["forget", beginning]]
    {
        let (said, code) = records(&shop, &order);
        let named = format!("several records have IDs that begin with {beginning}: ");
        assert!(said.contains(&named) && code == Some(4), "{said}");
        assert!(said.contains(&id) && said.contains(&twin[..12]), "{said}");
    }
    assert_eq!(records(&shop, &["settle", &id, "done"]).1, Some(0));
    let (listed, _) = records(&shop, &["list", "--unknown"]);
    assert!(listed.starts_with(&twin[..12]) && listed.lines().count() == 1, "{listed}");
}

#[test]
fn a_long_key_is_shortened_for_people_and_whole_in_json() {
    let shop = Shop::new();
    let key = format!("{}\u{1b}end", "k".repeat(5_000));
    let mut client = shop.open(&[]);
    paid(&mut client, 1, &json!({ "idempotencyKey": key }), json!({ "order": "o-1" }));
    let (listed, _) = records(&shop, &["list"]);
    assert!(listed.len() < 200 && listed.ends_with("k…\n"), "{listed}");
    let (listed, _) = records(&shop, &["list", "--json"]);
    let record: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(record["idempotencyKey"], json!(key));
}

/// A damaged record ends no list, bars its call, and is forgotten by force.
#[test]
fn a_record_that_cannot_be_read_is_listed_and_forgotten_by_force() {
    let meta = codex("call_7", "t");
    let (shop, id) = unknown_payment(&meta);
    let mut client = shop.open(&[]);
    pay(&mut client, 1, &json!({ "idempotencyKey": "k" }), json!({ "order": "o-2" }));
    assert!(text(&client.answer(1)).contains("o-2"));
    let file = rusqlite::Connection::open(&shop.records).unwrap();
    let long_ago = "UPDATE calls SET state = 'torn', until = 7 WHERE state <> 'done'";
    assert_eq!(file.execute(long_ago, []).unwrap(), 1);
    let forget = format!(" forget {id} --force (a repeat then runs)");
    for list in [&["list"][..], &["list", "--unknown"]] {
        let (said, code) = records(&shop, list);
        let is_all = list.len() == 1;
        assert_eq!(said.contains("  done  "), is_all, "{said}");
        assert!(said.contains(&format!("{id}  unreadable")) && code == Some(6), "{said}");
        assert!(said.contains("unknown state `torn`") && said.contains(&forget), "{said}");
    }
    let (said, _) = records(&shop, &["list", "--json"]);
    let read = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let damaged: Vec<_> = read.filter(|record| record["state"] == "unreadable").collect();
    assert_eq!((damaged.len(), &damaged[0]["tool"]), (1, &json!("charge_card")), "{said}");

    for act in [&["show", &id][..], &["settle", &id, "done"], &["forget", &id]] {
        let (said, code) = records(&shop, act);
        assert!(said.contains(&forget) && code == Some(6), "{said}");
    }
    let order = json!({ "order": "o-1", "then": "hang" });
    assert_eq!(code(&paid(&mut client, 2, &meta, order.clone())), "record_unreadable");
    assert_eq!(records(&shop, &["forget", &id, "--force"]).1, Some(0));
    assert_eq!(records(&shop, &["list"]).1, Some(0));
    let before = shop.paid();
    pay(&mut client, 3, &meta, order);
    until("it pays", || (shop.paid() == before + 1).then_some(()));
}

/// In the guard that sent the call and in the next one.
#[test]
fn a_record_that_cannot_be_read_bars_the_equals_of_its_call() {
    let shop = Shop::new();
    let order = json!({ "order": "o-1", "then": "hang" });
    let meta = |call: &str| codex(call, "t");
    let mut first = shop.open(&["--timeout", HANGS]);
    assert_eq!(code(&paid(&mut first, 1, &meta("call_1"), order.clone())), "timeout");
    let id = records(&shop, &["list", "--unknown"]).0[..12].to_owned();
    let file = rusqlite::Connection::open(&shop.records).unwrap();
    let set =
        |what: &str| file.execute(&format!("UPDATE calls SET {what} WHERE state <> 'done'"), []);
    assert_eq!(set("state = 'torn', until = 7"), Ok(1));
    let mut next = shop.open(&["--timeout", HANGS]);
    for client in [&mut first, &mut next] {
        pay(client, 2, &meta("call_2"), order.clone());
        let answer = client.answer(2);
        assert_eq!(code(&answer), "outcome_unknown", "{answer}");
        let said = text(&answer);
        assert!(said.contains("its record cannot be read: that earlier call may have"), "{said}");
        assert!(said.contains(&format!("[record {id}: ask the user]")), "{said}");
    }
    assert_eq!(shop.paid(), 1);
    pay(&mut next, 3, &meta("call_3"), json!({ "order": "o-2" }));
    assert!(text(&next.answer(3)).contains("o-2"), "another order");
    // As long as one of unknown outcome.
    assert_eq!(set("changed_at = changed_at - 660000"), Ok(1));
    assert_eq!(code(&paid(&mut next, 4, &meta("call_4"), order.clone())), "timeout");
    assert_eq!(records(&shop, &["forget", &id, "--force"]).1, Some(0));
    pay(&mut first, 5, &meta("call_1"), order);
    assert_eq!(code(&first.answer(5)), "outcome_unknown", "that of the other guard");
    assert_eq!(shop.paid(), 3);
}

/// Doctor's advice is followed after such a call.
#[test]
fn a_call_of_unknown_outcome_from_before_its_identity_was_declared_still_bars() {
    for declared in ["identity = ['/order']", "identity = ['/order']\nvolatile = ['/memo']"] {
        let shop = Shop::new();
        let order = json!({ "order": "o-1", "memo": "mine", "then": "hang" });
        let meta = |call: &str| codex(call, "t");
        let mut first = shop.open(&["--timeout", HANGS]);
        assert_eq!(code(&paid(&mut first, 1, &meta("call_1"), order.clone())), "timeout");
        let id = records(&shop, &["list", "--unknown"]).0[..12].to_owned();
        first.kill();
        let file = rusqlite::Connection::open(&shop.records).unwrap();
        file.execute("UPDATE calls SET changed_at = changed_at - 660000", []).unwrap();
        let catalog = shop.records.with_extension("toml");
        fs::write(&catalog, format!("[tools.charge_card.keys]\n{declared}")).unwrap();
        let mut next = shop.open(&["--timeout", HANGS, "--catalog", catalog.to_str().unwrap()]);
        let answer = paid(&mut next, 2, &meta("call_2"), order.clone());
        assert_eq!(code(&answer), "outcome_unknown", "{declared}: {answer}");
        assert!(text(&answer).contains(&id), "{declared}: {answer}");
        assert_eq!(records(&shop, &["settle", &id, "done"]).1, Some(0));
        for call in ["call_3", "call_4"] {
            let answer = paid(&mut next, 3, &meta(call), order.clone());
            assert_eq!(code(&answer), "answer_not_kept", "{declared}: {answer}");
        }
        assert_eq!(shop.paid(), 1, "{declared}");
    }
}

#[test]
fn records_are_read_while_another_process_keeps_the_file_locked() {
    let (shop, id) = unknown_payment(&json!({ "idempotencyKey": "k" }));
    let other = rusqlite::Connection::open(&shop.records).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for args in [&["list"][..], &["list", "--unknown"], &["show", &id]] {
        let (said, code) = records(&shop, args);
        assert!(said.contains(&id) && code == Some(0), "{said}");
    }
    let (said, code) = records(&shop, &["settle", &id, "done"]);
    assert!(said.contains("locked") && code == Some(1), "{said}");
    drop(other);
    fs::write(&shop.records, "no database").unwrap();
    let (said, code) = records(&shop, &["list"]);
    assert!(said.contains("cannot be read") && !said.contains("kept") && code == Some(1), "{said}");
}

#[test]
fn records_say_what_is_wrong_with_what_they_are_asked() {
    let shop = Shop::new();
    let (said, code) = records(&shop, &["list"]);
    assert!(said.contains("there are no records") && code == Some(1), "{said}");
    fs::create_dir_all(shop.records.parent().unwrap()).unwrap();
    // As a guard leaves it that is killed before it has written anything.
    fs::write(&shop.records, "").unwrap();
    let (said, code) = records(&shop, &["show", "abcdef"]);
    assert!(said.contains("no record has the ID abcdef") && code == Some(4), "{said}");
    assert_eq!(records(&shop, &["show", "ab"]).1, Some(4));
}

/// The guard that gave it up keeps in memory that it bars its equals, and looks once more.
#[test]
fn a_payment_settled_from_outside_frees_its_equals_in_a_guard_that_runs() {
    let shop = Shop::new();
    let order = json!({ "order": "o-1", "then": "hang" });
    let id = |call: &str| codex(call, "t");
    let mut client = shop.open(&["--timeout", HANGS]);
    assert_eq!(code(&paid(&mut client, 1, &id("call_1"), order.clone())), "timeout");
    let said = text(&paid(&mut client, 2, &id("call_2"), order.clone()));
    let record = records(&shop, &["list", "--unknown"]).0[..12].to_owned();
    assert!(said.contains(&format!("[record {record}: ask the user]")), "{said}");
    let (said, code_of) = records(&shop, &["settle", &record, "did-not-run", "--force"]);
    assert_eq!(code_of, Some(0), "{said}");
    pay(&mut client, 3, &id("call_3"), order.clone());
    until("it has paid", || (shop.paid() == 2).then_some(()));
    // The next one bars in turn.
    assert_eq!(code(&client.answer(3)), "timeout");
    assert_eq!(code(&paid(&mut client, 4, &id("call_4"), order)), "outcome_unknown");
    assert_eq!(shop.paid(), 2);
}

/// The model asks again, under another id, and learns what a person has found out; it asks once more for a second one.
#[test]
fn a_payment_settled_as_done_is_told_once_to_who_asks_for_an_equal_one() {
    for is_killed in [false, true] {
        let shop = Shop::new();
        let (hangs, order) = (json!({ "order": "o-1", "then": "hang" }), |id| codex(id, "t"));
        let mut client = shop.open(&["--timeout", HANGS]);
        pay(&mut client, 1, &order("call_1"), hangs.clone());
        until("it has paid", || (shop.paid() == 1).then_some(()));
        if is_killed {
            client.signal(Signal::KILL);
            client.wait();
        } else {
            assert_eq!(code(&client.answer(1)), "timeout");
        }
        let record = records(&shop, &["list", "--unknown"]).0[..12].to_owned();
        let (said, code_of) = records(&shop, &["settle", &record, "done", "--force"]);
        assert_eq!(code_of, Some(0), "{said}");
        if is_killed {
            client = shop.open(&["--timeout", HANGS]);
        }
        let before = shop.paid();
        let told = paid(&mut client, 2, &order("call_2"), hangs.clone());
        assert_eq!(code(&told), "answer_not_kept", "{told}");
        assert!(text(&told).contains("it has run since"), "{told}");
        assert_eq!(shop.paid(), before);
        pay(&mut client, 3, &order("call_3"), hangs);
        until("it has paid the second one", || (shop.paid() == before + 1).then_some(()));
    }
}

#[test]
fn what_is_encrypted_is_settled_with_its_key_and_not_without() {
    let shop = Shop::new();
    let key = shop.ledger.with_extension("key");
    fs::write(&key, "0".repeat(64)).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let with_key = ["--records-key-file", key.to_str().unwrap()];
    let (meta, order) = (json!({ "idempotencyKey": "k" }), json!({ "order": "o", "then": "hang" }));
    let mut client = shop.open(&with_key);
    pay(&mut client, 1, &meta, order.clone());
    until("it has paid", || (shop.paid() == 1).then_some(()));
    client.signal(Signal::KILL);
    client.wait();
    let list = [&["list", "--unknown"][..], &with_key].concat();
    let id = records(&shop, &list).0[..12].to_owned();
    for how in ["done", "did-not-run"] {
        let (said, code) = records(&shop, &["settle", &id, how]);
        assert!(said.contains("--records-key-file") && code == Some(1), "{said}");
    }
    assert_eq!(records(&shop, &["list"]).1, Some(1));
    let listed = records(&shop, &list).0;
    assert!(listed.starts_with(&id), "nothing was written: {listed}");
    let settle = [&["settle", &id, "did-not-run"][..], &with_key].concat();
    assert_eq!(records(&shop, &settle).1, Some(0));
    let mut client = shop.open(&with_key);
    pay(&mut client, 1, &meta, order);
    until("it pays", || (shop.paid() == 1).then_some(()));
    fs::remove_file(key).unwrap();
}

#[test]
fn a_call_whose_equal_still_runs_is_told_to_ask_again() {
    let shop = Shop::new();
    let config = shop.ledger.with_extension("toml");
    fs::write(&config, "[idempotency]\nmax_wait_ms = 100\n").unwrap();
    let mut client = shop.open(&["--config", config.to_str().unwrap()]);
    let (meta, order) = (json!({ "idempotencyKey": "k" }), json!({ "order": "o", "then": "hang" }));
    pay(&mut client, 1, &meta, order.clone());
    until("it has paid", || (shop.paid() == 1).then_some(()));
    let answer = paid(&mut client, 2, &meta, order);
    let error = &answer["result"]["_meta"]["tool-reliability/error"];
    assert_eq!(
        (&error["code"], &error["retriable"]),
        (&json!("idempotency_in_flight"), &json!(true))
    );
    let said = text(&answer);
    assert!(said.contains("the first call still runs; this one was not made"), "{said}");
    assert!(!said.contains("do not repeat") && !said.contains("settle"), "{said}");
    fs::remove_file(config).unwrap();
}
