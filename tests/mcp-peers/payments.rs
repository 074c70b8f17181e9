//! A payment of a real server whose receipt mail fails afterwards.
use crate::{compare::MARK, peer::variable};
use serde_json::{Value, json};
use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Command, Stdio},
};

/// What the servers of receipt mails say, as the SDKs for them put it.
const MAILS: [&str; 5] = [
    "Request failed with status code 503",
    "429 Too Many Requests",
    "rate limit exceeded",
    "getaddrinfo ENOTFOUND smtp.example",
    "connect ECONNREFUSED 127.0.0.1:25",
];

/// A client over MCP's own SDK accepts the guard's answers, and can tell the guard's messages.
fn the_mark_is_read(answers: [&Value; 2]) {
    let mut reader = Command::new("node")
        .arg(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("reads.cjs"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = reader.stdin.take().unwrap();
    for answer in answers {
        writeln!(input, "{answer}").unwrap();
    }
    drop(input);
    let read = BufReader::new(reader.stdout.take().unwrap()).lines();
    let [error, result] =
        &read.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect::<Vec<Value>>()[..]
    else {
        panic!("{answers:?} were not read");
    };
    assert!(reader.wait().unwrap().success());
    let note = error["error"]["data"]["_meta"][MARK][0].as_str().unwrap();
    assert!(error["error"]["message"].as_str().unwrap().ends_with(&format!("\n{note}")), "{error}");
    assert_eq!(result["result"]["content"][0]["_meta"][MARK], true, "{result}");
}

#[test]
fn the_words_of_a_receipt_mail_are_no_reason_to_pay_again() {
    for (n, mail) in MAILS.iter().enumerate() {
        let ledger = env::temp_dir().join(format!("mcp-peers-{}-{n}", std::process::id()));
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let mut guard = Command::new(variable("TR_TOOL_GUARD"))
            .args(["mcp", "--records", "memory", "--log", "off", "--", "node"])
            .arg(here.join("pay.cjs"))
            .env("LEDGER", &ledger)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = guard.stdin.take().unwrap();
        let mut lines = BufReader::new(guard.stdout.take().unwrap()).lines();
        let mut ask = |request: Value| -> Value {
            writeln!(input, "{request}").unwrap();
            serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
        };
        let client = json!({
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        ask(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client }));
        ask(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
        let pay = json!({
            "name": "pay", "arguments": { "mail": mail }, "_meta": { "idempotencyKey": "order-42" },
        });
        let call =
            |id: u32| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": pay });
        let first = ask(call(2));
        assert_eq!(first["error"]["code"], -32603, "{first}");
        let again = ask(call(3));
        let said = &again["result"]["_meta"]["tool-reliability/error"];
        assert_eq!((&said["code"], &said["retriable"]), (&json!("outcome_unknown"), &json!(false)));
        the_mark_is_read([&first, &again]);
        drop(input);
        guard.wait().unwrap();
        assert_eq!(fs::read_to_string(&ledger).unwrap(), "charged\n", "{mail}");
        fs::remove_file(&ledger).unwrap();
    }
}
