//! From an outcome to the response's envelope.
use super::{Failure, ResponseStatus, ToolResponse};
use crate::{
    End, Json, ToolCall, ToolOutcome,
    wire::{
        Extra,
        failure::Failed,
        metadata, millis,
        read::{Kind, Source},
    },
};
use std::time::Duration;

impl ToolResponse {
    /// The envelope for the outcome of `call`, or for one chunk of it, after `duration`.
    #[must_use]
    pub fn of(call: &ToolCall, end: End<'_, ToolOutcome>, duration: Duration) -> Self {
        let failed = Failed::of(call, end);
        let outcome = end.ok();
        let parts = outcome.map(ToolOutcome::parts);
        let chunk = parts.and_then(|parts| parts.chunk);
        let status = match (&failed, chunk) {
            (Some(_), _) => ResponseStatus::Error,
            (None, Some(chunk)) if !chunk.last => ResponseStatus::Partial,
            (None, _) => ResponseStatus::Success,
        };
        Self {
            request_id: call.parts().request_id.clone().unwrap_or_default(),
            status,
            result: parts.and_then(|parts| parts.content.clone()),
            metadata: outcome.and_then(|outcome| metadata::of(outcome, failed.is_some())),
            error: failed.map(Failure::from),
            duration_ms: Some(millis(duration)),
            tool_version: parts.and_then(|parts| parts.tool_version.clone()),
            span_id: parts.and_then(|parts| parts.span_id.clone()),
            emitted_spans: parts
                .map(|parts| parts.emitted_spans.clone())
                .filter(|spans| !spans.is_empty()),
            is_streaming: chunk.map(|_| status == ResponseStatus::Partial),
            chunk_index: chunk.map(|chunk| chunk.index),
            // A stream that fails ends there.
            final_chunk: chunk.map(|_| status != ResponseStatus::Partial),
            extra: Extra::default(),
        }
    }
}

impl From<Failed> for Failure {
    fn from(failed: Failed) -> Self {
        Self {
            code: failed.code,
            message: failed.message,
            retryable: failed.retriable,
            details: failed.details.map(object),
            ran: Some(failed.ran),
            recorded: failed.recorded,
            cause: failed.cause,
            extra: Extra::default(),
        }
    }
}

/// The wire has an object there; whatever else a tool gave is kept inside one.
fn object(details: Json) -> Json {
    match Source::Json(details.as_raw()).kind() {
        Kind::Object => details,
        _ => Json::from_value(&std::collections::BTreeMap::from([("value", &details)]))
            .expect("names are strings"),
    }
}
