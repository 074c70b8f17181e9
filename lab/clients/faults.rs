//! Faults of a server over HTTP, played to real agents after it has made the payment.
use crate::agent::{Agent, Begin, Reached, Room, here, step, variable};
use serde_json::Value;
use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// Within this an agent has its answer.
const BOUND: Duration = Duration::from_secs(15);

const FAULTS: [&str; 7] = ["401", "404", "400", "503", "drop", "cut without id", "cut with id"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    None,
    HttpToHttp,
    StdioToHttp,
}

/// A process that ends with its owner.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server, and returns the address that it says on a line.
pub(crate) fn start(
    command: &mut Command,
    address: impl Fn(&str) -> Option<String>,
) -> (Running, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    let command = command.stdin(Stdio::null()).stdout(writer.try_clone().unwrap()).stderr(writer);
    let running = Running(command.spawn().unwrap());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut lines = BufReader::new(reader).lines().map_while(Result::ok);
    let found = lines.find_map(|line| address(&line));
    std::thread::spawn(move || lines.for_each(drop));
    (running, found.unwrap_or_else(|| panic!("{command:?} has not started")))
}

/// The server, whose fault may need this file.
pub(crate) fn server(fault: &str, ledger: &Path, number: &Path) -> (Running, String) {
    let mut node = Command::new("node");
    node.arg(here("../../tests/mcp-clients/faulty.cjs")).env("FAULT", fault).env("LEDGER", ledger);
    start(node.env("GUARD_PID", number), |line| Some(line.to_owned()))
}

/// A guard that listens at this address.
pub(crate) fn guard(address: &str, url: &str, home: &Path) -> (Running, String) {
    let mut guard = Command::new(variable("TR_TOOL_GUARD"));
    guard.args(["mcp", "--log", "info", "--listen", address, "--upstream", url]);
    guard.env("HOME", home).env_remove("XDG_STATE_HOME");
    start(&mut guard, |line| {
        let event: Value = serde_json::from_str(line).ok()?;
        (event["event"] == "mcp_listening").then_some(())?;
        Some(format!("http://{}/mcp", event["address"].as_str()?))
    })
}

/// How often the payment was made, and what the model read.
fn pay(agent: Agent, form: Form, fault: &str) -> (usize, String) {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("paid");
    let (_server, url) = server(fault, &ledger, Path::new(""));
    let guard = (form == Form::HttpToHttp).then(|| guard("127.0.0.1:0", &url, folder.path()));
    let reached = match (form, &guard) {
        (Form::StdioToHttp, _) => Reached::Stdio(url),
        (_, Some((_, guarded))) => Reached::Http(guarded.clone()),
        (_, None) => Reached::Http(url),
    };
    let begun = now();
    let turn = agent.turn(&Room::over(reached), &[step("pay", "order 42")], Begin::New);
    let took = begun.elapsed();
    assert!(took < BOUND, "{agent:?}, {form:?}, {fault}: {took:?}");
    (fs::read_to_string(&ledger).unwrap_or_default().lines().count(), turn.read)
}

#[expect(clippy::disallowed_methods, reason = "real processes take real time")]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn behind_the_guard_a_payment_is_made_once_and_the_model_is_told() {
    for agent in Agent::ALL {
        for form in [Form::HttpToHttp, Form::StdioToHttp] {
            for fault in FAULTS {
                let (payments, read) = pay(agent, form, fault);
                let told = if fault == "cut with id" { "receipt of" } else { "may have run" };
                assert_eq!(payments, 1, "{agent:?}, {form:?}, {fault}: {read}");
                assert!(read.contains(told), "{agent:?}, {form:?}, {fault}: {read}");
            }
        }
    }
}

/// What the guard is for.
#[test]
fn without_it_they_pay_twice() {
    for (agent, fault) in
        [(Agent::ClaudeCode, "404"), (Agent::ClaudeCode, "400"), (Agent::Codex, "404")]
    {
        let (payments, read) = pay(agent, Form::None, fault);
        assert_eq!(payments, 2, "{agent:?}, {fault}: {read}");
    }
}
