//! From a response's envelope that a tool sent to an outcome.
use super::{Failure, ResponseStatus, ToolResponse};
use crate::{Chunk, OutcomeParts, Ran, ToolError, ToolOutcome, code, wire::duration};

impl From<ToolResponse> for ToolOutcome {
    fn from(response: ToolResponse) -> Self {
        let streams = response.chunk_index.is_some()
            || response.is_streaming == Some(true)
            || response.status == ResponseStatus::Partial;
        let last = response
            .final_chunk
            .or(response.is_streaming.map(|more| !more))
            .unwrap_or(response.status != ResponseStatus::Partial);
        OutcomeParts {
            content: response.result,
            error: match (response.status, response.error) {
                (ResponseStatus::Error, Some(failure)) => Some(failure.into()),
                (ResponseStatus::Error, None) => Some(ToolError::new(
                    code::UNCLASSIFIED,
                    "the tool ended with status `error` and no error",
                )),
                _ => None,
            },
            metadata: response.metadata,
            tool_version: response.tool_version,
            span_id: response.span_id,
            emitted_spans: response.emitted_spans.unwrap_or_default(),
            chunk: streams.then(|| Chunk { index: response.chunk_index.unwrap_or_default(), last }),
            duration: response.duration_ms.and_then(duration),
            ..OutcomeParts::default()
        }
        .into()
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
