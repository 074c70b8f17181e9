//! A guard that is killed between a payment and its answer.
use crate::agent::{Agent, Begin, Room, Turn, step};
use serde_json::Value;

/// A model that pays, and pays again when it hears no answer.
fn pay_twice() -> [Value; 2] {
    [step("pay", "order 42"), step("pay", "order 42")]
}

/// One payment, and the model reads that it may have run and who can say.
fn assert_once_and_told(turn: &Turn) {
    assert_eq!(turn.calls.len(), 1, "{:?}", turn.calls);
    for part in ["may have run", "do not repeat it", "[record ", "a person can settle it"] {
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
