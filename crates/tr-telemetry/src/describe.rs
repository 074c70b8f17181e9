//! What telemetry reads of a request and of its end.
use opentelemetry::trace::TraceContextExt as _;
use std::borrow::Cow;
use tr_core::{
    DefaultPolicy, End, Scope, ToolCall, ToolOutcome,
    canonical::{Fingerprint, FingerprintKey},
};

/// What telemetry says of a request, beside its [`CallInfo`](tr_core::CallInfo), and of its end.
///
/// All methods have defaults that reveal nothing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot describe a `{Req}` that ends in a `{Res}`",
    label = "no `Describe<{Req}, {Res}>` here",
    note = "write `impl tr_telemetry::Describe<{Req}, {Res}> for {Self} {{}}` beside your request type (all methods have defaults), or give the layer a policy of your own with `.policy(MyPolicy)`"
)]
pub trait Describe<Req, Res> {
    /// Whose calls the request's idempotency key may match.
    fn scope_of(&self, _: &Req) -> Scope {
        Scope::Session
    }

    /// The tool's action, where its label ends in one.
    fn action_of<'r>(&self, _: &'r Req) -> Option<&'r str> {
        None
    }

    /// The idempotency key, hashed with `key`: the key itself is never shown.
    fn key_hash(&self, _: &Req, _key: &FingerprintKey) -> Option<Fingerprint> {
        None
    }

    /// The params as JSON text. Only their shape is ever shown, and only if asked for.
    fn params_of<'r>(&self, _: &'r Req) -> Option<&'r str> {
        None
    }

    /// Names of sensitive params and result fields. Their values in
    /// [`params_of`](Self::params_of) and [`content_of`](Self::content_of) are removed from
    /// everything that is logged of the call.
    fn sensitive_of<'r>(&self, _: &'r Req) -> &'r [Box<str>] {
        &[]
    }

    /// What a response holds, as JSON text. It is never shown.
    fn content_of<'r>(&self, _: &'r Res) -> Option<&'r str> {
        None
    }

    /// The W3C `traceparent` that came with the request.
    fn traceparent_of<'r>(&self, _: &'r Req) -> Option<&'r str> {
        None
    }

    /// The trace that the request says it belongs to, where no span says it.
    fn trace_of<'r>(&self, _: &'r Req) -> Option<&'r str> {
        None
    }

    /// Notes the id of the span of the call on the response, if it is recorded.
    fn set_span(&self, _: &mut Res, _span: &str) {}

    /// Notes the id of an inner recorded span on the response.
    fn add_span(&self, _: &mut Res, _span: &str) {}

    /// The message of a failure; it is redacted before it is logged.
    fn message_of<'r>(&self, end: End<'r, Res>) -> Option<Cow<'r, str>> {
        Some(end.err()?.to_string().into())
    }

    /// Whether a response came from a record. Where an idempotency layer inside tells an
    /// [observer](crate::TelemetryObserver), that is known without asking.
    fn is_from_cache(&self, _: &Res) -> bool {
        false
    }
}

impl Describe<ToolCall, ToolOutcome> for DefaultPolicy {
    fn scope_of(&self, call: &ToolCall) -> Scope {
        call.parts().idempotency.scope
    }

    fn action_of<'r>(&self, call: &'r ToolCall) -> Option<&'r str> {
        call.parts().tool.action()
    }

    /// Of the key with all that scopes it, as records name it.
    fn key_hash(&self, call: &ToolCall, key: &FingerprintKey) -> Option<Fingerprint> {
        let id = call.id().ok().flatten()?;
        Some(key.fingerprint(id.key))
    }

    fn params_of<'r>(&self, call: &'r ToolCall) -> Option<&'r str> {
        Some(call.parts().params.get())
    }

    fn sensitive_of<'r>(&self, call: &'r ToolCall) -> &'r [Box<str>] {
        call.manifest().map(|tool| &*tool.sensitive).unwrap_or_default()
    }

    fn content_of<'r>(&self, outcome: &'r ToolOutcome) -> Option<&'r str> {
        outcome.content().map(tr_core::Json::get)
    }

    fn traceparent_of<'r>(&self, call: &'r ToolCall) -> Option<&'r str> {
        call.parts().trace.traceparent.as_deref()
    }

    fn trace_of<'r>(&self, call: &'r ToolCall) -> Option<&'r str> {
        call.parts().trace.trace_id.as_deref()
    }

    fn set_span(&self, outcome: &mut ToolOutcome, span: &str) {
        outcome.parts_mut().span_id = Some(span.into());
    }

    fn add_span(&self, outcome: &mut ToolOutcome, span: &str) {
        outcome.parts_mut().emitted_spans.push(span.into());
    }

    fn message_of<'r>(&self, end: End<'r, ToolOutcome>) -> Option<Cow<'r, str>> {
        match end {
            Ok(outcome) => outcome.error().map(|error| Cow::Borrowed(&*error.message)),
            Err(error) => Some(error.to_string().into()),
        }
    }

    fn is_from_cache(&self, outcome: &ToolOutcome) -> bool {
        outcome.from_cache()
    }
}

/// The headers `idempotency-key` and `traceparent`.
#[cfg(feature = "http")]
impl<B, C> Describe<http::Request<B>, http::Response<C>> for DefaultPolicy {
    fn key_hash(&self, req: &http::Request<B>, key: &FingerprintKey) -> Option<Fingerprint> {
        req.headers().get("idempotency-key").map(|value| key.fingerprint(value))
    }

    fn traceparent_of<'r>(&self, req: &'r http::Request<B>) -> Option<&'r str> {
        req.headers().get("traceparent")?.to_str().ok()
    }
}

/// The W3C `traceparent` of the span that is active here, to be sent along by a tool that calls
/// another process.
#[must_use]
pub fn traceparent() -> Option<String> {
    opentelemetry::Context::map_current(|cx| {
        let span = cx.span();
        let span = span.span_context();
        let (trace, id, flags) = (span.trace_id(), span.span_id(), span.trace_flags());
        span.is_valid().then(|| format!("00-{trace}-{id}-{:02x}", flags.to_u8()))
    })
}
