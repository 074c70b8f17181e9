//! The request's envelope.
use super::RetryPolicy;
use crate::{
    Json, Params, Priority,
    wire::{
        InvalidEnvelope,
        params::CallParams,
        read::{self, Flag, Maybe, Millis, Name, Strictness, Text, Word, object, words},
    },
};

object! { open
    /// A request to run one tool, as UTEE sends it.
    pub struct ToolRequest {
        /// The tool's name, such as `browser`.
        "tool" => tool: Box<str>, Name;
        /// The action within the tool, such as `navigate`; empty for none.
        "action" => action: Box<str>, Text;
        /// The tool's params, as text that stays as it came. `_utee` in them is for us, and is
        /// taken out before the tool sees them.
        "params" => params: Params, CallParams;
        /// Names this request; one is made where it is absent.
        "requestId" => request_id: Option<Box<str>>, Maybe<Name>;
        /// The caller's key: a repeat with it is the same call.
        "idempotencyKey" => idempotency_key: Option<Box<str>>, Maybe<Name>;
        /// How long one attempt may take, in milliseconds; the tool's default where it is absent.
        "timeout" => timeout: Option<u64>, Maybe<Millis<1>>;
        /// A hint for scheduling; normal where it is absent.
        "priority" => priority: Option<Priority>, Maybe<Word<Priority>>;
        /// The trace that the call belongs to.
        "traceId" => trace_id: Option<Box<str>>, Maybe<Text>;
        /// The call's own span.
        "spanId" => span_id: Option<Box<str>>, Maybe<Text>;
        /// The caller's span.
        "parentSpanId" => parent_span_id: Option<Box<str>>, Maybe<Text>;
        /// An id for cancelling the call. The tool and hooks see it; the stack does not cancel by it.
        "cancellationId" => cancellation_id: Option<Box<str>>, Maybe<Name>;
        /// What the tool may ignore.
        "hints" => hints: Option<Hints>, Maybe<Hints>;
    }
}

object! { open
    /// What a tool may ignore.
    #[derive(Default)]
    pub struct Hints {
        /// The caller accepts chunks. Only the tool reads it, no layer does.
        "preferStreaming" => prefer_streaming: Option<bool>, Maybe<Flag>;
        /// Under which the answer of an idempotent read may be cached. For the tool to look at: no
        /// layer caches.
        "cacheKey" => cache_key: Option<Box<str>>, Maybe<Text>;
        /// Changes to the retry policy.
        "retryPolicy" => retry_policy: Option<RetryPolicy>, Maybe<RetryPolicy>;
    }
}

words! {
    Priority { Low = "low", Normal = "normal", High = "high" }
}

impl ToolRequest {
    /// Reads an envelope.
    ///
    /// # Errors
    /// Names every fault of the text, those inside the params included: without a canonical
    /// form, a call cannot be compared with its repeat. The tool did not run.
    pub fn read(json: impl AsRef<[u8]>) -> Result<Self, InvalidEnvelope> {
        read::document::<Self>("ToolRequest", json.as_ref(), Strictness::Canonical)
    }

    /// The envelope as JSON.
    #[must_use]
    pub fn to_json(&self) -> Json {
        Json::from_value(self).expect("names are strings")
    }
}
