//! From the request's envelope to the call.
use super::{Options, ToolRequest};
use crate::{CallParts, Params, ToolCall, ToolId, call::CallContext, wire::InvalidEnvelope};

impl ToolRequest {
    /// The call that this request asks for, on behalf of `context`; `new_id` names it where the
    /// request does not.
    ///
    /// `_utee` is taken out of the params. Where it and the envelope speak of the same thing, the
    /// envelope is heard. Without a session in `context`, keys hold for the service instance only.
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
        Ok(assemble(tool, params, own.or(utee.unwrap_or_default()), context, new_id))
    }
}

/// A call without an envelope: of `tool` with `params`, from which `_utee` is taken out.
///
/// ```
/// use tr_core::{Params, call::CallContext, wire::utee};
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
