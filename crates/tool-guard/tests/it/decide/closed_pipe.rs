//! Commands whose reader has gone (`| head`) end as if all had been read.
use super::host::{Folder, GUARD, Host, STRONG, pay};
use crate::operator::by_token;
use serde_json::{Value, json};
use std::{
    io::pipe,
    process::{Command, Stdio},
};

/// Runs a command into a pipe that nobody reads: its exit code, and what it reported.
fn unread(command: &mut Command, folder: &Folder) -> (Option<i32>, String) {
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    command.env("HOME", folder.path("")).env("XDG_STATE_HOME", folder.path("state"));
    let ended = command.stdin(Stdio::null()).stdout(writer).output().unwrap();
    (ended.status.code(), String::from_utf8(ended.stderr).unwrap())
}

/// The id of the record of a payment.
fn paid(folder: &Folder) -> String {
    let mut host = Host::start(folder, &[]);
    assert_eq!(host.ask(&pay(1, STRONG))["decision"], "allow");
    host.ask(&json!({ "event": "after", "id": 2, "before": 1, "output": "paid" }));
    host.end();
    let listed = Command::new(GUARD)
        .args(["records", "list", "--json", "--records"])
        .arg(folder.path("records.db"))
        .output()
        .unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let record: Value = serde_json::from_str(&listed).unwrap();
    record["key"].as_str().unwrap().to_owned()
}

#[test]
fn what_is_printed_into_a_closed_pipe_is_no_error() {
    let folder = Folder::new();
    let id = paid(&folder);
    let records = folder.path("records.db").to_str().unwrap().to_owned();
    let plan = folder.file("plan.json", r#"{"calls": [{"tool": "echo"}]}"#);
    let (plan, results) = (plan.to_str().unwrap(), folder.path("results.json"));
    let ledger = folder.path("ledger").to_str().unwrap().to_owned();
    let serve = ["--", GUARD, "__serve", "--ledger", &ledger];
    let session = folder.file("session.json", r#"[{"role": "user", "content": "go"}]"#);
    let turn = [&["turn", plan, "--results", results.to_str().unwrap()], &serve[..]].concat();
    let turn_json = [&["turn", plan, "--json"], &serve[..]].concat();
    for args in [
        &["records", "list", "--records", &records][..],
        &["records", "list", "--json", "--records", &records],
        &["records", "show", &id, "--records", &records],
        &["records", "show", &id, "--json", "--records", &records],
        &["config", "show"],
        &["config", "check"],
        &["config", "schema"],
        &["session", "check", session.to_str().unwrap()],
        &["doctor"],
        &["completions", "bash"],
        &["man"],
        &turn,
        &turn_json,
        &["--help"],
        &["--version"],
    ] {
        let (code, said) = unread(Command::new(GUARD).args(args), &folder);
        assert_eq!(code, Some(0), "{args:?}: {said}");
    }
    // What was not read was done nevertheless.
    assert!(results.exists());
    let mut forget = Command::new(GUARD);
    forget.args(["records", "forget", &id, "--records", &records]);
    by_token(&mut forget, &folder.path("state"));
    let (code, said) = unread(&mut forget, &folder);
    assert_eq!(code, Some(0), "{said}");
    let mut show = Command::new(GUARD);
    let (code, _) = unread(show.args(["records", "show", &id, "--records", &records]), &folder);
    assert_eq!(code, Some(4), "it is forgotten");
}

#[test]
fn the_demo_ends_without_a_reader() {
    let (code, said) = unread(Command::new(GUARD).arg("demo"), &Folder::new());
    assert_eq!((code, &*said), (Some(0), ""));
}

#[test]
fn reports_into_a_closed_pipe_are_lost_and_nothing_else() {
    let folder = Folder::new();
    let bad = folder.file("stack.toml", "windw = 5\n");
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    let mut check = Command::new(GUARD);
    check.arg("config").arg("check").arg(bad).stderr(writer);
    assert_eq!(check.status().unwrap().code(), Some(2));
}
