//! The response's envelope, from an outcome and to one.
use crate::{
    Extra,
    outcome::{Failed, duration, metadata_of, millis},
    read::{
        Any, Flag, Index, Kind, List, Maybe, Measured, Record, Source, Text, Word, object, words,
    },
};
use std::time::Duration;
use tr_core::{Chunk, End, Json, OutcomeParts, Ran, ToolCall, ToolError, ToolOutcome, code};

object! { open
    /// The outcome of a tool call, or one chunk of it, as UTEE sends it.
    pub struct ToolResponse {
        /// The request's.
        "requestId" => request_id: Box<str>, Text;
        /// How it ended, or that it goes on.
        "status" => status: ResponseStatus, Word<ResponseStatus>;
        /// What the tool gave back.
        "result" => result: Option<Json>, Maybe<Any>;
        /// What the call failed with.
        "error" => error: Option<Failure>, Maybe<Failure>;
        /// How long the call took, all attempts and delays included, in milliseconds.
        "durationMs" => duration_ms: Option<f64>, Maybe<Measured>;
        /// The version of the tool.
        "toolVersion" => tool_version: Option<Box<str>>, Maybe<Text>;
        /// The span of this execution.
        "spanId" => span_id: Option<Box<str>>, Maybe<Text>;
        /// Spans that the tool opened itself.
        "emittedSpans" => emitted_spans: Option<Vec<Box<str>>>, Maybe<List<Text>>;
        /// More chunks follow.
        "isStreaming" => is_streaming: Option<bool>, Maybe<Flag>;
        /// Which chunk this is, from 0.
        "chunkIndex" => chunk_index: Option<u64>, Maybe<Index>;
        /// No chunk follows.
        "finalChunk" => final_chunk: Option<bool>, Maybe<Flag>;
        /// What is said beside the result. Ours, where the tool has no member of that name:
        /// `notes` for the model, and `ran` and `recorded` where a repeat may find no record.
        /// An extension of the envelope.
        "metadata" => metadata: Option<Json>, Maybe<Record>;
    }
}

object! { open
    /// What a call failed with.
    pub struct Failure {
        /// A stable code.
        "code" => code: Box<str>, Text;
        /// For the model.
        "message" => message: Box<str>, Text;
        /// Whether the same call may succeed later. Retries have been made already.
        "retryable" => retryable: bool, Flag;
        /// More of it.
        "details" => details: Option<Json>, Maybe<Record>;
        /// Whether the tool ran. An extension of the envelope.
        "ran" => ran: Option<Ran>, Maybe<Word<Ran>>;
        /// `false`: a repeat may find no record of this call. An extension of the envelope.
        "recorded" => recorded: Option<bool>, Maybe<Flag>;
        /// What the failure came from, where the message does not say it. An extension of the envelope.
        "cause" => cause: Option<Box<str>>, Maybe<Text>;
    }
}

/// How a call ended, in the words of UTEE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResponseStatus {
    /// The tool did what it was asked for.
    Success,
    /// It failed.
    Error,
    /// It streams, and goes on.
    Partial,
}

words! {
    ResponseStatus { Success = "success", Error = "error", Partial = "partial" }
}

envelope! { Any
    /// Names every fault of the text. The result may hold any JSON.
    ToolResponse
}

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
            metadata: outcome.and_then(|outcome| metadata_of(outcome, failed.is_some())),
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

impl From<ToolResponse> for ToolOutcome {
    fn from(response: ToolResponse) -> Self {
        let streams = response.chunk_index.is_some()
            || response.is_streaming == Some(true)
            || response.status == ResponseStatus::Partial;
        let last = response
            .final_chunk
            .or(response.is_streaming.map(|more| !more))
            .unwrap_or(response.status != ResponseStatus::Partial);
        let mut parts = OutcomeParts::default();
        parts.content = response.result;
        parts.error = match (response.status, response.error) {
            (ResponseStatus::Error, Some(failure)) => Some(failure.into()),
            (ResponseStatus::Error, None) => Some(ToolError::new(
                code::UNCLASSIFIED,
                "the tool ended with status `error` and no error",
            )),
            _ => None,
        };
        parts.metadata = response.metadata;
        parts.tool_version = response.tool_version;
        parts.span_id = response.span_id;
        parts.emitted_spans = response.emitted_spans.unwrap_or_default();
        parts.chunk =
            streams.then(|| Chunk { index: response.chunk_index.unwrap_or_default(), last });
        parts.duration = response.duration_ms.and_then(duration);
        parts.into()
    }
}

impl From<Failure> for ToolError {
    fn from(failure: Failure) -> Self {
        let mut error = Self::new(failure.code, failure.message);
        error.retryable = Some(failure.retryable);
        error.ran = failure.ran.unwrap_or(Ran::Unknown);
        error.details = failure.details;
        error
    }
}
