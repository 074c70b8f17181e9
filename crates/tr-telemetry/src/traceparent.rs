//! Formats the active span as a W3C `traceparent`, for tools that call another process.
use opentelemetry::trace::TraceContextExt as _;

/// The W3C `traceparent` of the active span; `None` if there is none. A tool sends it with its
/// request to another process, so that both have one trace.
#[must_use]
pub fn traceparent() -> Option<String> {
    opentelemetry::Context::map_current(|cx| {
        let span = cx.span();
        let span = span.span_context();
        let (trace, id, flags) = (span.trace_id(), span.span_id(), span.trace_flags());
        span.is_valid().then(|| format!("00-{trace}-{id}-{:02x}", flags.to_u8()))
    })
}
