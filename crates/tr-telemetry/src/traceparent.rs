//! The trace context that a tool's function sends to another process.
use opentelemetry::trace::TraceContextExt as _;

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
