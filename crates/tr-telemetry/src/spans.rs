//! Starts and annotates spans, directly through OpenTelemetry's API.
use opentelemetry::{
    Context, KeyValue, SpanId, TraceFlags, TraceId,
    trace::{Span as _, SpanBuilder, SpanContext, TraceContextExt as _, TraceState, Tracer},
};
use std::{mem, sync::Mutex, time::Duration};
use tr_core::internal::lock;

/// Starts spans with a [`Tracer`] of any type.
pub(crate) trait SpanStarter: Send + Sync {
    /// A context with a new span in it, a child of the span in `parent`; `parent` itself if a new
    /// span would add nothing.
    fn start(&self, builder: SpanBuilder, parent: &Context) -> Context;
}

impl<T> SpanStarter for T
where
    T: Tracer + Send + Sync,
    T::Span: Send + Sync + 'static,
{
    fn start(&self, builder: SpanBuilder, parent: &Context) -> Context {
        let span = self.build_with_context(builder, parent);
        if span.is_recording() {
            return parent.with_span(span);
        }
        // Its children must know that it is not sampled.
        let outer = parent.span();
        if outer.span_context().is_valid() && !outer.span_context().is_sampled() {
            return parent.clone();
        }
        // For that its ids are enough.
        parent.with_remote_span_context(span.span_context().clone())
    }
}

/// The ids of the spans of a call's attempts, in the context of the call.
#[derive(Debug, Default)]
pub(crate) struct Emitted(Mutex<Vec<String>>);

impl Emitted {
    pub(crate) fn add(&self, span: String) {
        lock(&self.0).push(span);
    }

    pub(crate) fn take(&self) -> Vec<String> {
        mem::take(&mut lock(&self.0))
    }
}

/// Starts a span within the active one, or within that of `traceparent` if none is active.
pub(crate) fn start(
    tracer: &dyn SpanStarter,
    name: &'static str,
    traceparent: impl FnOnce() -> Option<SpanContext>,
) -> Context {
    Context::map_current(|current| {
        let builder = SpanBuilder::from_name(name);
        let remote = if current.has_active_span() { None } else { traceparent() };
        match remote {
            Some(parent) => tracer.start(builder, &current.with_remote_span_context(parent)),
            None => tracer.start(builder, current),
        }
    })
}

/// A finished child of the active span, if that is recorded, which lasts from now for `length`.
pub(crate) fn planned<const N: usize>(
    tracer: &dyn SpanStarter,
    name: &'static str,
    length: Duration,
    attributes: impl FnOnce() -> [KeyValue; N],
) {
    let now = opentelemetry::time::now();
    let child = Context::map_current(|current| {
        let builder = || SpanBuilder::from_name(name).with_start_time(now);
        let is_recording = current.span().is_recording();
        is_recording.then(|| tracer.start(builder().with_attributes(attributes()), current))
    });
    // Outside of `map_current`, because exporters attach contexts of their own.
    if let Some(child) = child {
        child.span().end_with_timestamp(now + length);
    }
}

/// Adds an event to the active span, if that is recorded.
pub(crate) fn note<const N: usize>(name: &'static str, attributes: impl FnOnce() -> [KeyValue; N]) {
    Context::map_current(|current| {
        let span = current.span();
        if span.is_recording() {
            span.add_event(name, attributes().into());
        }
    });
}

/// Reads a W3C `traceparent`.
pub(crate) fn parse(traceparent: &str) -> Option<SpanContext> {
    let mut parts = traceparent.trim().split('-');
    let (version, trace, span, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_well_formed =
        is_hex(version, 2) && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
    // Later versions may add parts, the first has none.
    if !is_well_formed || version == "ff" || (version == "00" && parts.next().is_some()) {
        return None;
    }
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?) & TraceFlags::SAMPLED;
    let (trace, span) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
    let context = SpanContext::new(trace, span, flags, true, TraceState::NONE);
    context.is_valid().then_some(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traceparents_are_read_as_w3c_says() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let parsed = parse(good).unwrap();
        assert_eq!(parsed.trace_id().to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(parsed.span_id().to_string(), "b7ad6b7169203331");
        assert!(parsed.is_sampled() && parsed.is_remote());
        assert!(!parse(&good.replace("-01", "-00")).unwrap().is_sampled());
        assert!(parse(&format!("cc{}-what-ever", &good[2..])).is_some());
        for bad in [
            "",
            "00",
            &good[1..],
            &good.replace("00-", "ff-"),
            &good.to_uppercase(),
            &format!("{good}-x"),
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
