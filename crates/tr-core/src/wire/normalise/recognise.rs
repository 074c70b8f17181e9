//! Answers that are envelopes already.
use crate::{
    Json, ToolOutcome,
    wire::{
        Status,
        bs_tim_5::ToolResultEnvelope,
        utee::{ResponseStatus, ToolResponse},
    },
};

/// What an envelope says, if `content` is one.
pub(super) fn envelope(content: &Json) -> Option<ToolOutcome> {
    let text = content.get();
    // Both forms have these; most answers have not, and need not be read twice.
    if !text.contains("\"requestId\"") || !text.contains("\"status\"") {
        return None;
    }
    let bs_tim_5 = || ToolResultEnvelope::read(text).ok().filter(is_sound).map(Into::into);
    let utee = || ToolResponse::read(text).ok().filter(is_whole).map(Into::into);
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
