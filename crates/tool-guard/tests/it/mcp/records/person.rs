//! Settling is for people: at a terminal, by the record's ID; for programs with the operator's token, and no others.
use super::{
    Shop, code,
    command::{records, unknown_payment},
    mode, pay,
};
use crate::mcp::client::{BIN, HANGS, until};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink},
    path::Path,
    process::{Command, Stdio},
};

const TOKEN: &str = "tool-guard/admin-token";

/// `tool-guard records` on the shop's records, without anything that lets it pass.
fn command(shop: &Shop, args: &[&str]) -> Command {
    let mut command = Command::new(BIN);
    command.args(["records", "--records"]).arg(&shop.records).args(args);
    command.env("XDG_STATE_HOME", shop.state()).stdin(Stdio::null());
    command
}

/// What a program without a terminal is told, and the exit code.
fn program(shop: &Shop, args: &[&str]) -> (String, Option<i32>) {
    let output = command(shop, args).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (String::from_utf8(said).unwrap(), output.status.code())
}

/// What a person at a terminal sees who types these lines, and the exit code.
fn person(shop: &Shop, args: &[&str], typed: &[&str]) -> (String, Option<i32>) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let terminal = || {
        let noctty = rustix::fs::OFlags::NOCTTY.bits().cast_signed();
        File::options().read(true).write(true).custom_flags(noctty).open(&name).unwrap()
    };
    let mut command = command(shop, args);
    command.stdin(terminal()).stdout(terminal()).stderr(terminal());
    let mut child = command.spawn().unwrap();
    // The terminal ends with the last of its holders.
    drop(command);
    let mut master = File::from(master);
    for line in typed {
        writeln!(master, "{line}").unwrap();
    }
    let (mut seen, mut part) = (Vec::new(), [0; 4096]);
    while let Ok(length @ 1..) = master.read(&mut part) {
        seen.extend_from_slice(&part[..length]);
    }
    (String::from_utf8(seen).unwrap(), child.wait().unwrap().code())
}

fn is_unknown(shop: &Shop, id: &str) -> bool {
    records(shop, &["list", "--unknown"]).0.starts_with(id)
}

#[test]
fn a_person_at_a_terminal_types_the_id_and_the_record_says_so_later() {
    let meta = json!({ "idempotencyKey": "k" });
    let (shop, id) = unknown_payment(&meta);
    let settle = ["settle", &id, "did-not-run"];
    let (seen, exit) = person(&shop, &settle, &["the bank has none", &id]);
    assert_eq!(exit, Some(0), "{seen}");
    for part in ["charge_card", "first claimed", "a repeat of this call will run again", &id] {
        assert!(seen.contains(part), "{part}: {seen}");
    }
    let who = format!("(user {}), at a terminal", rustix::process::getuid().as_raw());
    let shown = records(&shop, &["show", &id]).0;
    let row = shown.lines().find(|line| line.starts_with("settled ")).expect(&shown);
    assert!(row.contains("not run, ") && row.contains(" s ago), by "), "{row}");
    assert!(row.contains(&who) && row.ends_with(": the bank has none"), "{row}");

    // After the call has run again, too.
    let mut client = shop.open(&["--timeout", HANGS]);
    pay(&mut client, 1, &meta, json!({ "order": "o-1", "then": "hang" }));
    assert_eq!(code(&client.answer(1)), "timeout");
    drop(client);
    let json = || -> Value {
        let shown = records(&shop, &["show", &id, "--json"]).0;
        serde_json::from_str::<Value>(&shown).unwrap()["execution"]["attempts"].take()
    };
    let by = json()[0]["settlement"].take();
    assert_eq!(by["why"], "the bank has none");
    assert!(by["by"].as_str().unwrap().ends_with(&who), "{by}");
    assert_eq!(person(&shop, &["settle", &id, "done"], &["", &id]).1, Some(0));
    let attempts = json();
    assert_eq!(attempts[0]["settlement"], by, "{attempts}");
    assert_eq!(attempts[1]["settlement"], json!({ "by": by["by"] }), "{attempts}");
}

#[test]
fn a_record_whose_guard_was_killed_in_the_repeat_says_who_let_it_run() {
    let meta = json!({ "idempotencyKey": "k" });
    let (shop, id) = unknown_payment(&meta);
    assert_eq!(person(&shop, &["settle", &id, "did-not-run"], &["why not", &id]).1, Some(0));
    let mut client = shop.open(&[]);
    pay(&mut client, 1, &meta, json!({ "order": "o-1", "then": "hang" }));
    until("it pays", || (shop.paid() == 1).then_some(()));
    drop(client);
    until("the call is unknown", || is_unknown(&shop, &id).then_some(()));
    let shown = records(&shop, &["show", &id]).0;
    let row = shown.lines().find(|line| line.starts_with("settled ")).expect(&shown);
    assert!(row.contains("not run, ") && row.ends_with(", at a terminal: why not"), "{row}");
}

#[test]
fn a_person_who_types_another_id_changes_nothing() {
    let (shop, id) = unknown_payment(&json!({ "idempotencyKey": "k" }));
    for typed in ["", "yes", &id[..6], "000000000000", &format!("{id}g")] {
        for order in
            [&["settle", &id, "did-not-run"][..], &["settle", &id, "done"], &["forget", &id]]
        {
            let (seen, code) = person(&shop, order, &["", typed]);
            assert!(seen.contains("nothing was done") && code == Some(8), "{typed}: {seen}");
        }
    }
    assert!(is_unknown(&shop, &id));
    let (seen, code) =
        person(&shop, &["forget", &id, "--why", "a duplicate"], &[&id.to_uppercase()]);
    assert_eq!(code, Some(0), "{seen}");
    let (shown, code) = records(&shop, &["show", &id]);
    assert!(shown.contains("it was forgotten, ") && code == Some(4), "{shown}");
    assert!(shown.contains(", at a terminal: a duplicate"), "{shown}");
    assert_eq!(mode(&shop.state().join("tool-guard/settlements.jsonl")), 0o600);
}

#[test]
fn a_program_is_refused_and_is_told_no_way_around() {
    let (shop, id) = unknown_payment(&json!({ "idempotencyKey": "k" }));
    for order in [
        &["settle", &id, "did-not-run"][..],
        &["settle", &id, "did-not-run", "--force", "--why", "it says so"],
        &["settle", &id, "done"],
        &["forget", &id],
        &["forget", &id, "--force"],
    ] {
        let (said, code) = program(&shop, order);
        assert_eq!(code, Some(7), "{said}");
        assert!(said.contains("for a person at a terminal"), "{said}");
        for way in ["tool-guard records", "token", "--yes", &id] {
            assert!(!said.contains(way), "{way}: {said}");
        }
    }
    // Half of a terminal is none.
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let mut half = command(&shop, &["settle", &id, "done"]);
    let half = half.stdin(File::open(&name).unwrap()).output().unwrap();
    assert_eq!(half.status.code(), Some(7));
    assert!(is_unknown(&shop, &id));
    for half in [&["--yes"][..], &["--yes", "--why", "w"], &["--token-file", "t", "--why", "w"]] {
        let order = [&["settle", &id, "done"][..], half].concat();
        assert_eq!(program(&shop, &order).1, Some(2), "{half:?}");
    }
}

#[test]
fn a_program_with_the_operator_s_token_is_obeyed() {
    let (shop, id) = unknown_payment(&json!({ "idempotencyKey": "k" }));
    let (own, other) = (shop.state().join(TOKEN), shop.state().join("other"));
    let order = |file: &Path| {
        let file = file.to_str().unwrap();
        program(
            &shop,
            &["settle", &id, "did-not-run", "--yes", "--why", "swept", "--token-file", file],
        )
    };
    let set_mode = |mode| fs::set_permissions(&own, fs::Permissions::from_mode(mode)).unwrap();
    // It is made at first need, even where another file is given.
    let (said, code) = order(&other);
    assert!(said.contains("nothing was done") && code == Some(7), "{said}");
    assert_eq!((mode(&own), mode(own.parent().unwrap())), (0o600, 0o700));
    let token = fs::read_to_string(&own).unwrap();
    assert_eq!(token.trim().len(), 64);
    fs::write(&other, "0".repeat(64)).unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o600)).unwrap();
    let (said, code) = order(&other);
    assert!(said.contains("not this user's") && code == Some(7), "{said}");
    assert!(!said.contains("admin-token"), "{said}");
    // Others could have read it, or put it there.
    for open in [0o640, 0o604, 0o622] {
        set_mode(open);
        let (said, code) = order(&own);
        assert!(said.contains("other users can") && code == Some(7), "{said}");
    }
    set_mode(0o600);
    fs::remove_file(&other).unwrap();
    symlink(&own, &other).unwrap();
    let set_mode =
        |mode| fs::set_permissions(shop.state(), fs::Permissions::from_mode(mode)).unwrap();
    set_mode(0o777);
    let (said, code) = order(&other);
    assert!(said.contains("a link that another user can replace") && code == Some(7), "{said}");
    assert!(is_unknown(&shop, &id));

    set_mode(0o755);
    let (said, code) = order(&other);
    assert!(said.contains("settled: it did not run") && code == Some(0), "{said}");
    assert!(said.contains(r#""event":"record_settled""#) && !said.contains(token.trim()), "{said}");
    let shown = records(&shop, &["show", &id]).0;
    assert!(shown.contains(", by token: swept\n"), "{shown}");
}
