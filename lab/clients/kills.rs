//! A guard that is killed between a payment and its answer.
use crate::{
    agent::{Agent, Begin, Reached, Room, Turn, step},
    faults::{guard, server},
};
use serde_json::Value;
use std::{fs, net::TcpListener, path::Path, process::Command, thread};

/// A model that pays, and pays again when it hears no answer.
fn pay_twice() -> [Value; 2] {
    [step("pay", "order 42"), step("pay", "order 42")]
}

/// One payment, and the model reads that it may have run and who can say.
fn assert_once_and_told(turn: &Turn) {
    assert_eq!(turn.calls.len(), 1, "{:?}", turn.calls);
    assert_told(turn);
}

fn assert_told(turn: &Turn) {
    for part in ["may have run", "do not repeat it", "[record ", ": ask the user]"] {
        assert!(turn.read.contains(part), "{part}: {}", turn.read);
    }
}

/// It starts the guard again for the next call.
#[test]
fn claude_code_reconnects_and_the_second_payment_is_not_made() {
    let room = Room::new("");
    room.kill_the_guard();
    let turn = Agent::ClaudeCode.turn(&room, &pay_twice(), Begin::New);
    assert!(turn.read.contains("Connection closed"), "{}", turn.read);
    assert_once_and_told(&turn);
}

/// It starts the guard again when the session is resumed, and not before.
#[test]
fn codex_is_without_its_tools_until_it_resumes_and_then_the_payment_is_not_made_again() {
    let room = Room::new("");
    room.kill_the_guard();
    let turn = Agent::Codex.turn(&room, &pay_twice(), Begin::New);
    assert_eq!(turn.calls.len(), 1, "{:?}", turn.calls);
    assert_eq!(turn.read.matches("Transport closed").count(), 2, "{}", turn.read);
    let turn = Agent::Codex.turn(&room, &pay_twice()[..1], Begin::Resumed);
    assert_once_and_told(&turn);
}

/// It gives its servers another `CLAUDE_CODE_SESSION_ID` than the session has that it resumes, and the
/// same `CLAUDE_PROJECT_DIR`.
#[test]
fn a_resumed_session_of_claude_code_does_not_pay_again() {
    let room = Room::new("");
    room.kill_the_guard();
    let turn = Agent::ClaudeCode.turn(&room, &pay_twice()[..1], Begin::New);
    assert_eq!(turn.calls.len(), 1, "{:?}", turn.calls);
    let turn = Agent::ClaudeCode.turn(&room, &pay_twice()[..1], Begin::Resumed);
    assert_once_and_told(&turn);
}

fn payments(ledger: &Path) -> usize {
    fs::read_to_string(ledger).unwrap_or_default().lines().count()
}

/// The guard listens, is killed, and is started again at the same address.
#[test]
fn behind_a_guard_over_http_the_second_payment_is_not_made() {
    for agent in Agent::ALL {
        let folder = tempfile::tempdir().unwrap();
        let [ledger, number] = ["paid", "number"].map(|name| folder.path().join(name));
        let (_bank, url) = server("kill", &ledger, &number);
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let (mut first, guarded) = guard(&address, &url, folder.path());
        fs::write(&number, first.0.id().to_string()).unwrap();
        let turn = thread::scope(|scope| {
            let again = scope.spawn(|| {
                first.0.wait().unwrap();
                guard(&address, &url, folder.path())
            });
            let room = Room::over(Reached::Http(guarded));
            let turn = agent.turn(&room, &pay_twice(), Begin::New);
            if payments(&ledger) == 0 {
                let number = fs::read_to_string(&number).unwrap();
                Command::new("kill").args(["-KILL", &number]).status().unwrap();
            }
            drop(again.join().unwrap());
            turn
        });
        assert_eq!(payments(&ledger), 1, "{agent:?}: {}", turn.read);
        let first = if agent == Agent::Codex { "tool call failed for" } else { "ECONNRESET" };
        assert!(turn.read.contains(first), "{agent:?}: {}", turn.read);
        assert_told(&turn);
    }
}

/// As with a command behind the guard: one agent starts it again for the next call, one when the session is resumed.
#[test]
fn behind_a_guard_from_stdio_to_http_the_second_payment_is_not_made() {
    for agent in Agent::ALL {
        let folder = tempfile::tempdir().unwrap();
        let [ledger, number] = ["paid", "number"].map(|name| folder.path().join(name));
        let (_bank, url) = server("kill", &ledger, &number);
        let room = Room::over(Reached::Noted(url, number));
        let mut turn = agent.turn(&room, &pay_twice(), Begin::New);
        if agent == Agent::Codex {
            assert_eq!(turn.read.matches("Transport closed").count(), 2, "{}", turn.read);
            turn = agent.turn(&room, &pay_twice()[..1], Begin::Resumed);
        }
        assert_eq!(payments(&ledger), 1, "{agent:?}: {}", turn.read);
        assert_told(&turn);
    }
}
