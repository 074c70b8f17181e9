//! A log of its own: what the server writes to standard error cannot pass for the guard's events.
use super::client::{BIN, Client, ledger, text, until};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    process::Command,
};

const FORGED: &str = r#"{"timestamp":"2026-01-01T00:00:00.000Z","level":"warn","event":"forged"}"#;

#[test]
fn a_server_cannot_forge_events_in_a_file() {
    let file = ledger();
    let script = format!("read -r call; echo '{FORGED}' >&2; ls /dev/fd >&2; exit 3");
    let options = ["--log", "info", "--log-file", file.to_str().unwrap()];
    let mut client = Client::script(&options, &script);
    assert!(text(&client.ask(1, "any", json!({}))).contains("may have run"));
    assert_eq!(client.wait().code(), Some(3));
    let log = until("it is written", || {
        Some(fs::read_to_string(&file).unwrap()).filter(|log| log.contains("server_gone"))
    });
    let stderr = client.stderr();
    assert!(stderr.contains(FORGED) && !stderr.contains("server_gone"), "{stderr}");
    for line in log.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        assert_ne!(event["event"], "forged");
    }
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    fs::remove_file(&file).unwrap();
}

#[test]
fn a_log_goes_to_no_other_file() {
    let (file, victim) = (ledger(), ledger());
    fs::write(&victim, "secret").unwrap();
    symlink(&victim, &file).unwrap();
    let mut command = Command::new(BIN);
    command.args(["mcp", "--log-file"]).arg(&file).args(["--", "true"]);
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot log to ") && said.contains("is a link"), "{said}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "secret");
    fs::remove_file(file).unwrap();
    fs::remove_file(victim).unwrap();
}
