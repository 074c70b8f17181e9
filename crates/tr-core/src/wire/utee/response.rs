//! The response's envelope.
use crate::{
    Json, Ran,
    wire::{
        InvalidEnvelope,
        read::{
            self, Any, Flag, Index, List, Maybe, Measured, Record, Strictness, Text, Word, object,
            words,
        },
    },
};

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

impl ToolResponse {
    /// Reads an envelope.
    ///
    /// # Errors
    /// Names every fault of the text. The result may hold any JSON.
    pub fn read(json: impl AsRef<[u8]>) -> Result<Self, InvalidEnvelope> {
        read::document::<Self>("ToolResponse", json.as_ref(), Strictness::Any)
    }

    /// The envelope as JSON.
    #[must_use]
    pub fn to_json(&self) -> Json {
        Json::from_value(self).expect("names are strings")
    }
}
