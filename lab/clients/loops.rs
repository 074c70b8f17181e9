//! Calls that fail again and again.
use crate::agent::{Agent, step};
use serde_json::Value;

fn looks(of: &[&str]) -> Vec<Value> {
    of.iter().map(|of| step("look", of)).collect()
}

/// Codex names its turn; where none is named, the call may be about something that was mended.
#[test]
fn a_call_that_failed_twice_is_not_executed_again_in_a_turn() {
    for agent in Agent::ALL {
        let turn = agent.play(&looks(&["a", "a", "a", "a"]), "");
        let runs = if matches!(agent, Agent::Codex) { 2 } else { 4 };
        assert_eq!(turn.calls.len(), runs, "{agent:?}");
        assert!(turn.read.contains("[LOOP DETECTED]"), "{agent:?}: {}", turn.read);
    }
}

/// Codex names its turn, and gets the limit of failures in it; Claude Code names none, and is warned.
#[test]
fn five_failures_end_a_turn_that_is_named_and_warn_where_none_is() {
    let looks = looks(&["a", "b", "c", "d", "e", "f", "g"]);
    let codex = Agent::Codex.play(&looks, "");
    assert_eq!(codex.calls.len(), 5, "{:?}", codex.calls);
    assert!(codex.read.contains("[TOOL ERROR LIMIT]"), "{}", codex.read);
    assert!(
        codex
            .calls
            .iter()
            .all(|call| { call["_meta"]["x-codex-turn-metadata"]["turn_id"].is_string() })
    );

    let claude = Agent::ClaudeCode.play(&looks, "");
    assert_eq!(claude.calls.len(), 7, "{:?}", claude.calls);
    assert!(claude.read.contains("[TOOL ERRORS]"), "{}", claude.read);
    assert!(!claude.read.contains("[TOOL ERROR LIMIT]"), "{}", claude.read);
}
