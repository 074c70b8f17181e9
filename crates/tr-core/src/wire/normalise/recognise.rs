//! Answers that are envelopes already.
use crate::{
    Json, Ran, ToolOutcome,
    wire::{
        Status,
        bs_tim_5::ToolResultEnvelope,
        utee::{ResponseStatus, ToolResponse},
    },
};

/// What an envelope says, if `content` is one, and what it says of whether the tool ran.
pub(super) fn envelope(content: &Json) -> Option<(ToolOutcome, Option<Ran>)> {
    let text = content.get();
    // Both forms have these; most answers have not, and need not be read twice.
    if !text.contains("\"requestId\"") || !text.contains("\"status\"") {
        return None;
    }
    let bs_tim_5 = || {
        let envelope = ToolResultEnvelope::read(text).ok().filter(is_sound)?;
        let ran = envelope.error.as_ref().and_then(|failure| failure.ran);
        Some((envelope.into(), ran))
    };
    let utee = || {
        let response = ToolResponse::read(text).ok().filter(is_whole)?;
        let ran = response.error.as_ref().and_then(|failure| failure.ran);
        Some((response.into(), ran))
    };
    bs_tim_5().or_else(utee)
}

fn is_sound(envelope: &ToolResultEnvelope) -> bool {
    (envelope.status == Status::Success) == envelope.error.is_none()
}

/// `requestId` and `status` alone are too common to tell an envelope by.
fn is_whole(response: &ToolResponse) -> bool {
    response.duration_ms.is_some()
        && match response.status {
            ResponseStatus::Error => response.error.is_some(),
            ResponseStatus::Success | ResponseStatus::Partial => {
                response.error.is_none() && response.result.is_some()
            }
        }
}
