//! The request's envelope, and the call that it asks for.
use super::options::{CallParams, Options, RetryPolicy};
use crate::{
    InvalidEnvelope,
    read::{Flag, Maybe, Millis, Name, Shape as _, Text, Word, object},
};
use tr_core::{CallParts, Params, Priority, ToolCall, ToolId, call::CallContext};

object! { open
    /// A request to run one tool, as UTEE sends it.
    pub struct ToolRequest {
        /// The tool's name, such as `browser`.
        "tool" => tool: Box<str>, Name;
        /// The action within the tool, such as `navigate`; empty for none.
        "action" => action: Box<str>, Text;
        /// The tool's params, kept byte for byte. `_utee` in them holds options for this library, and is
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
        /// An id by which the call can be cancelled while it runs.
        "cancellationId" => cancellation_id: Option<Box<str>>, Maybe<Name>;
        /// Optional hints.
        "hints" => hints: Option<Hints>, Maybe<Hints>;
    }
}

object! { open
    /// Optional hints.
    #[derive(Default)]
    pub struct Hints {
        /// The caller accepts a response in chunks: `Envelopes::answers` gives them, and the tool may look.
        "preferStreaming" => prefer_streaming: Option<bool>, Maybe<Flag>;
        /// A cache key for the answer of an idempotent read. For tools: no layer caches.
        "cacheKey" => cache_key: Option<Box<str>>, Maybe<Text>;
        /// Changes to the retry policy.
        "retryPolicy" => retry_policy: Option<RetryPolicy>, Maybe<RetryPolicy>;
    }
}

envelope! { Canonical
    /// Names every fault of the text, those inside the params included: without a canonical
    /// form, a call cannot be compared with its repeat. The tool did not run.
    ToolRequest
}

impl ToolRequest {
    /// The call that this request asks for, on behalf of `context`; `new_id` names it where the
    /// request does not.
    ///
    /// `_utee` is taken out of the params. If both set an option, the envelope wins. Without a session
    /// in `context`, keys hold for the service instance only.
    ///
    /// # Errors
    /// If `_utee` does not have its form, which [`read`](Self::read) has checked. The tool did
    /// not run.
    pub fn into_call(
        self,
        context: CallContext,
        new_id: impl FnOnce() -> Box<str>,
    ) -> Result<ToolCall, InvalidEnvelope> {
        let (params, utee) = Options::take(&self.params)?;
        let hints = self.hints.unwrap_or_default();
        let own = Options {
            request_id: self.request_id,
            idempotency_key: self.idempotency_key,
            timeout: self.timeout,
            priority: self.priority,
            trace_id: self.trace_id,
            span_id: self.span_id,
            parent_span_id: self.parent_span_id,
            cancellation_id: self.cancellation_id,
            prefer_streaming: hints.prefer_streaming,
            cache_key: hints.cache_key,
            retry_policy: hints.retry_policy,
            ..Options::default()
        };
        let action = Some(&*self.action).filter(|action| !action.is_empty());
        let tool = ToolId::from_parts(None, &self.tool, action);
        Ok(assemble(tool, params, Options::or(own, utee.unwrap_or_default()), context, new_id))
    }
}

/// A call without an envelope: of `tool` with `params`, from which `_utee` is taken out.
///
/// ```
/// use tr_core::{Params, call::CallContext};
/// use tr_wire::utee;
///
/// let params = Params::from_text(r#"{"command": "ls", "_utee": {"idempotencyKey": "k"}}"#)?;
/// let call = utee::bare_call("exec", &params, CallContext::default(), || "r-1".into())?;
/// assert_eq!(call.parts().idempotency.key.as_deref(), Some("k"));
/// assert_eq!(call.parts().params.get(), r#"{"command":"ls"}"#);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Names every fault of `_utee`. The tool did not run.
pub fn bare_call(
    tool: impl Into<ToolId>,
    params: &Params,
    context: CallContext,
    new_id: impl FnOnce() -> Box<str>,
) -> Result<ToolCall, InvalidEnvelope> {
    let (params, utee) = Options::take(params)?;
    Ok(assemble(tool.into(), params, utee.unwrap_or_default(), context, new_id))
}

fn assemble(
    tool: ToolId,
    params: Params,
    options: Options,
    context: CallContext,
    new_id: impl FnOnce() -> Box<str>,
) -> ToolCall {
    let mut parts = CallParts::new(tool, params);
    options.apply(&mut parts);
    parts.request_id.get_or_insert_with(new_id);
    parts.context = context;
    parts.into()
}
