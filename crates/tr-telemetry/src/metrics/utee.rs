//! The set `tool.…` of UTEE.
use super::bound::{Count, Ended, Times, closed, millis};
use opentelemetry::{
    KeyValue, StringValue,
    metrics::{Counter, Histogram, Meter},
};
use std::sync::{Arc, OnceLock};
use tr_core::Status;

pub(super) struct Instruments {
    count: Counter<u64>,
    duration: Histogram<f64>,
    pub(super) retries: Counter<u64>,
    errors: Counter<u64>,
    pub(super) shadow_calls: Counter<u64>,
    pub(super) decisions: Counter<u64>,
    pub(super) chunks: Counter<u64>,
}

impl Instruments {
    pub(super) fn new(meter: &Meter) -> Self {
        Self {
            count: meter.u64_counter("tool.invocation.count").build(),
            duration: meter.f64_histogram("tool.invocation.duration").with_unit("ms").build(),
            retries: meter.u64_counter("tool.retry.count").build(),
            errors: meter.u64_counter("tool.error.count").build(),
            shadow_calls: meter.u64_counter("tool.shadow.count").build(),
            decisions: meter.u64_counter("tool.shadow.decision.count").build(),
            chunks: meter.u64_counter("tool.stream.chunks").build(),
        }
    }
}

pub(super) struct Series {
    tool: StringValue,
    action: StringValue,
    counts: [OnceLock<Count>; 6],
    duration: OnceLock<Times>,
}

impl Series {
    pub(super) fn new(label: &str, action: Option<&str>) -> Self {
        let value = |text: &str| StringValue::from(Arc::<str>::from(text));
        let (tool, action) = split(label, action);
        let (tool, action) = (value(tool), value(action));
        Self { tool, action, counts: Default::default(), duration: OnceLock::new() }
    }

    pub(super) fn tool(&self) -> KeyValue {
        KeyValue::new("tool", self.tool.clone())
    }

    pub(super) fn action(&self) -> KeyValue {
        KeyValue::new("action", self.action.clone())
    }

    pub(super) fn ended(&self, set: &Instruments, end: &Ended<'_>) {
        let count = self.counts[end.status as usize].get_or_init(|| {
            let status = KeyValue::new("status", end.status.as_str());
            Count::new(&set.count, &[self.tool(), self.action(), status])
        });
        count.add_one();
        let labels = || Times::new(&set.duration, &[self.tool(), self.action()]);
        self.duration.get_or_init(labels).record(millis(end.elapsed));
        if end.status != Status::Success {
            set.errors.add(1, &[self.tool(), KeyValue::new("error_code", closed(end.code))]);
        }
    }
}

/// The tool's own name, and its action (empty if it has none).
pub(crate) fn split<'t>(label: &'t str, action: Option<&'t str>) -> (&'t str, &'t str) {
    let action = action.unwrap_or("");
    let tool = label.strip_suffix(action).and_then(|rest| rest.strip_suffix('.'));
    match (action, tool) {
        ("", _) | (_, None) => (label, ""),
        (action, Some(tool)) => (tool, action),
    }
}
