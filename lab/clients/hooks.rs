//! The hooks of `examples/hooks` in the real Claude Code: the server has no guard in front.
use crate::agent::{Agent, Begin, Room, step};

#[test]
fn a_call_that_failed_twice_is_not_executed_again_until_the_next_prompt() {
    let room = Room::new("");
    let looks: Vec<_> = ["a", "a", "a"].iter().map(|of| step("look", of)).collect();
    let turn = Agent::HookedClaudeCode.turn(&room, &looks, Begin::New);
    assert_eq!(turn.calls.len(), 2, "{}", turn.read);
    assert!(turn.read.contains("[LOOP DETECTED]"), "{}", turn.read);
    let turn = Agent::HookedClaudeCode.turn(&room, &looks[..1], Begin::Resumed);
    assert_eq!(turn.calls.len(), 3, "{}", turn.read);
    room.end_guard();
}
