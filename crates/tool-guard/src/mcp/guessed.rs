//! Answers read as far as they can be: of some no JSON reader takes the whole.
use super::{
    answer::outcome,
    message::{self, Guess, Line, Message},
};
use serde_json::value::RawValue;
use std::ops::Range;
use tr_core::{Classification, ToolError, ToolOutcome, classify};

/// What a line answers, whether a JSON reader takes the whole of it or not.
pub(crate) fn of_line(line: &[u8]) -> ToolOutcome {
    match message::read(line) {
        Line::One(message) => outcome(&message, true),
        _ => {
            Guess::of(line).map_or_else(ToolOutcome::not_kept, |guess| guessed(line, &guess, true))
        }
    }
}

/// The result and the error of a line that answers, as far as they are JSON.
pub(crate) fn parts(line: &[u8]) -> (Option<&RawValue>, Option<&RawValue>) {
    if let Line::One(message) = message::read(line) {
        return (message.result, message.error);
    }
    let Some(guess) = Guess::of(line) else { return (None, None) };
    let read = |place: Range<usize>| serde_json::from_slice(&line[place]).ok();
    (guess.result.and_then(|(place, _)| read(place)), guess.error.and_then(read))
}

/// What can be made out of an answer that no JSON reader takes as a whole. A success is `kept` where
/// its own part of the line is JSON; a failure is read there, and else is one without words.
pub(crate) fn guessed(line: &[u8], guess: &Guess, kept: bool) -> ToolOutcome {
    let read = |place: Range<usize>| serde_json::from_slice::<&RawValue>(&line[place]).ok();
    let whole = |error, result| {
        let message = Message { id: None, method: None, params: None, error, result };
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

/// A failure without words.
fn unreadable(end: Classification<'_>) -> ToolOutcome {
    let text = "The tool failed; its answer is no valid JSON, and its words were not kept";
    ToolOutcome::failure(ToolError::new(end.code, text).classified(end))
}
