//! Answers that no JSON reader accepts, read as far as possible.
use super::answer::outcome;
use crate::wire::{
    jsonrpc::{self, Line, Message},
    scan::Guess,
};
use serde_json::value::RawValue;
use std::ops::Range;
use tr_core::{Classification, ToolError, ToolOutcome, classify};

/// The outcome that a line tells, whether or not the line is valid JSON.
pub(crate) fn of_line(line: &[u8]) -> ToolOutcome {
    match jsonrpc::read(line) {
        Line::One(message) => outcome(&message, true),
        _ => {
            Guess::of(line).map_or_else(ToolOutcome::not_kept, |guess| guessed(line, &guess, true))
        }
    }
}

/// The outcome of an answer that is no valid JSON. A success is `kept` if its own part of the line is
/// valid; a failure is read there, and otherwise has no text.
pub(crate) fn guessed(line: &[u8], guess: &Guess, kept: bool) -> ToolOutcome {
    let read = |place: Range<usize>| serde_json::from_slice::<&RawValue>(&line[place]).ok();
    let whole = |error, result| {
        let message = Message { error, result, ..Message::default() };
        outcome(&message, kept)
    };
    match (guess.error.clone(), guess.result.clone()) {
        (Some(error), _) => read(error).map_or_else(
            || unreadable(classify::json_rpc(0, "").end),
            |error| whole(Some(error), None),
        ),
        (None, Some((result, is_error))) => match read(result).map(|it| whole(None, Some(it))) {
            Some(outcome) if kept || outcome.error().is_some() => outcome,
            None if is_error => unreadable(classify::mcp_is_error("").end),
            _ => ToolOutcome::not_kept(),
        },
        (None, None) => ToolOutcome::not_kept(),
    }
}

/// A failure without its text.
fn unreadable(end: Classification<'_>) -> ToolOutcome {
    let text = "The tool failed; its answer is no valid JSON, and its text was not kept";
    ToolOutcome::failure(ToolError::new(end.code, text).classified(end))
}
