//! The command line, with and without the `--` that clients drop.
use super::client::{BIN, Client, ledger, text};
use serde_json::json;
use std::process::Command;

/// Starts the demonstration's server by `args`, in which `SERVER` stands for its command.
fn start(args: &[&str]) -> Client {
    let ledger = ledger();
    let mut command = Command::new(BIN);
    for arg in args {
        match *arg {
            "SERVER" => command.args([BIN, "__serve", "--ledger"]).arg(&ledger),
            arg => command.arg(arg),
        };
    }
    Client::start(command, ledger)
}

#[test]
fn the_server_s_command_may_stand_without_dashes_before_it() {
    for args in [
        &["mcp", "SERVER"][..],
        &["mcp", "--", "SERVER"],
        &["mcp", "--log", "off", "SERVER"],
        &["mcp", "--loops=off", "--", "SERVER"],
    ] {
        let mut client = start(args);
        assert_eq!(text(&client.ask(1, "echo", json!({ "text": "here" }))), "here", "{args:?}");
    }
}

/// What follows the command is the server's, whatever it looks like.
#[test]
fn options_behind_the_command_belong_to_the_server() {
    let script = r#"printf '{"jsonrpc":"2.0","method":"args","params":"%s"}\n' "$*""#;
    for dashes in [&[][..], &["--"]] {
        let mut command = Command::new(BIN);
        command.arg("mcp").args(dashes);
        command
            .args(["sh", "-c", script, "sh", "-y", "--mode", "off", "--help", "--", "--log", "x"]);
        let mut client = Client::start(command, ledger());
        assert_eq!(client.receive()["params"], "-y --mode off --help -- --log x");
    }
}

fn said(args: &[&str]) -> String {
    let output = Command::new(BIN).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_mistake_that_missing_dashes_explain_names_them() {
    for args in [
        &["mcp"][..],
        &["mcp", "-y", "@modelcontextprotocol/server-memory"],
        &["mcp", "--directory", "/srv", "server"],
        &["mcp", "--timeout", "npx", "server"],
        &["mcp", "--log", "server", "x"],
        &["turn", "plan.json"],
        &["turn", "plan.json", "-y", "server"],
    ] {
        let said = said(args);
        let form = format!("tool-guard {} [OPTIONS]", args[0]);
        assert!(said.contains("`--`") && said.contains(&form), "{args:?}: {said}");
        assert!(said.contains(" -- COMMAND"), "{args:?}: {said}");
    }
    // Behind `--` a misspelt option would be the server's command.
    let misspelt = said(&["mcp", "--tiemout", "5s", "--", "server"]);
    assert!(misspelt.contains("'--timeout'") && !misspelt.contains("-- --tiemout"), "{misspelt}");
    let bare = said(&["npx", "-y", "my-server"]);
    assert!(bare.contains("tool-guard mcp -- npx -y my-server"), "{bare}");
    // With the dashes in their place, they are no explanation.
    let there = said(&["mcp", "--timeout", "npx", "--", "server"]);
    assert!(!there.contains("before the server's command"), "{there}");
}

#[test]
fn a_variable_that_nothing_reads_is_warned_of() {
    for args in [&["mcp", "sh", "-c", "exit 0"][..], &["turn", "no-such-plan", "sh"]] {
        let output = Command::new(BIN)
            .args(args)
            .env("TOOL_RELIABILITY_ENABLE", "false")
            .env("TOOL_RELIABILITY_LOOPS_MODE", "note")
            .env("TOOL_RELIABILITY_OPEN_MODE", "on")
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        for meant in ["TOOL_RELIABILITY_ENABLED?", "TOOL_RELIABILITY__LOOPS__MODE?"] {
            assert!(said.contains(&format!("did you mean {meant}")), "{said}");
        }
        assert_eq!(said.matches("unknown variable").count(), 2, "{said}");
    }
}
