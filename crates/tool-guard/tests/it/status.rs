//! `tool-guard status` finds all guards of the user, and what their records know.
use crate::mcp::client::{BIN, Client, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{fs, process::Command};

/// Ends at a payment; each search fails.
const SERVER: &str = r#"while read -r line; do
id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
case "$line" in
*'"pay"'*) exit 7;;
*'"search"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"isError":true,"content":[{"type":"text","text":"HTTP 401: token expired"}]}}';;
*'"id"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}';;
esac
done"#;

fn status(client: &Client, words: &[&str]) -> (i32, String) {
    let mut command = Command::new(BIN);
    command.arg("status").args(words).current_dir("/").env_clear();
    command.env("HOME", client.state()).env("XDG_STATE_HOME", client.state());
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(said).unwrap())
}

fn hello(client: &mut Client) {
    let info = json!({ "name": "claude-code", "version": "2.1.332" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info });
    client.ask_for(0, "initialize", params);
}

#[test]
fn a_person_sees_each_guard_what_is_wrong_and_what_is_left_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = folder.path().join("tools.toml");
    fs::write(&catalog, "tools.pay.records.show = ['/order']").unwrap();
    let catalog = ["--catalog", catalog.to_str().unwrap()];
    let options = [&["--name", "shop", "--restart", "crash"], &catalog[..]].concat();
    let mut client = Client::script(&options, SERVER);
    hello(&mut client);
    assert_eq!(status(&client, &[]).0, 0);
    for id in 1..=6 {
        client.ask(id, "search", json!({ "q": id }));
    }
    let meta = json!({ "idempotencyKey": "order-42" });
    let arguments = json!({ "order": "o-42", "card": "4242" });
    let params = json!({ "name": "pay", "arguments": arguments, "_meta": meta });
    client.request(7, "tools/call", params);
    client.answer(7);
    let (code, said) = status(&client, &[]);
    assert!(!said.contains("4242"), "{said}");
    assert_eq!(code, 1, "{said}");
    for words in [
        "shop for claude-code/2.1.332, process ",
        ": 7 calls, 0 retried, 0 repeats answered from records, 0 refused, 1 left unknown",
        "search has failed 6 times in a row: HTTP 401: token expired",
        "calls of unknown outcome: 1",
        " pay order=\"o-42\", ",
        ": tool-guard records show ",
        "server exited",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let (_, document) = status(&client, &["--json"]);
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["guards"][0]["counts"]["calls"], 7);
    assert_eq!(document["unknown"].as_array().unwrap().len(), 1);
    assert!(status(&client, &["--since", "1ms"]).1.contains("0 refused, 1 left unknown"));

    // Its guard has gone, and the record has not.
    client.close();
    client.wait();
    let (code, said) = status(&client, &[]);
    assert_eq!(code, 1);
    assert!(said.contains("no guard is running") && said.contains("unknown outcome: 1"), "{said}");
    assert_eq!(fs::read_dir(client.state().join("tool-guard/guards")).unwrap().count(), 0);
}

/// A reused id has no record in the file, so no command is named that would not find it.
#[test]
fn a_call_in_memory_names_no_command() {
    let mut client = Client::script(&["--restart", "crash"], SERVER);
    hello(&mut client);
    let meta = json!({ "claudecode/toolUseId": "functions.pay:0" });
    client.request(1, "tools/call", json!({ "name": "pay", "arguments": {}, "_meta": meta }));
    client.answer(1);
    let (code, said) = status(&client, &[]);
    assert!(code == 1 && said.contains("in its guard's memory alone"), "{said}");
    assert!(!said.contains("records show"), "{said}");
}

/// Who holds the file is named, and once it is free, nothing is wrong.
#[test]
fn a_locked_file_of_records_needs_a_person() {
    let mut client = Client::script(&[], SERVER);
    hello(&mut client);
    let file = client.state().join("tool-guard/records.db");
    let lock = rusqlite::Connection::open(file).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let order = |id: u32| json!({ "name": "order", "arguments": {}, "_meta": { "idempotencyKey": id.to_string() } });
    for id in 1..=3 {
        client.request(id, "tools/call", order(id));
        assert!(client.answer(id).to_string().contains("store_unavailable"));
    }
    let (code, said) = status(&client, &[]);
    assert_eq!(code, 1, "{said}");
    for words in
        ["the last call to be recorded was refused: ", "another process keeps the file locked"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(said.contains("(3 times)"), "{said}");
    lock.execute_batch("ROLLBACK").unwrap();
    client.request(4, "tools/call", order(4));
    client.answer(4);
    let (code, said) = status(&client, &[]);
    assert!(code == 0 && !said.contains("was refused"), "{said}");
}

#[test]
fn a_guard_that_was_killed_leaves_nothing_behind() {
    let mut client = Client::script(&[], SERVER);
    hello(&mut client);
    client.signal(Signal::STOP);
    let (code, said) = status(&client, &[]);
    assert!(code == 1 && said.contains("it does not answer"), "{said}");
    client.kill();
    until("its end", || status(&client, &[]).1.contains("no guard is running").then_some(()));
}

#[test]
fn a_server_that_was_added_after_the_install_is_named() {
    let mut client = Client::script(&[], SERVER);
    hello(&mut client);
    let file = client.state().join(".claude.json");
    let servers = r#"{"mcpServers": {"shop": {"command": "sh", "args": ["x"]}}}"#;
    fs::write(&file, servers).unwrap();
    assert!(!status(&client, &[]).1.contains("not guarded"), "nothing is installed");
    let mut install = Command::new(BIN);
    install.args(["install", "claude-code"]).current_dir("/").env("HOME", client.state());
    assert!(install.output().unwrap().status.success());
    assert!(!status(&client, &[]).1.contains("not guarded"));
    let text = fs::read_to_string(&file).unwrap();
    let text =
        text.replacen(r#"{"shop""#, r#"{"notes": {"command": "sh", "args": ["y"]}, "shop""#, 1);
    fs::write(&file, text).unwrap();
    let said = status(&client, &[]).1;
    assert!(said.contains("not guarded: notes of ") && said.contains(".claude.json"), "{said}");
}
