//! The set `tool.…` of UTEE.
use super::bound::{Count, Ended, Times, closed, instruments, millis};
use opentelemetry::{
    KeyValue, StringValue,
    metrics::{Counter, Histogram},
};
use std::sync::{Arc, OnceLock};
use tr_core::Status;

instruments! {
    count: Counter<u64> = u64_counter("tool.invocation.count");
    duration: Histogram<f64> = f64_histogram("tool.invocation.duration").with_unit("ms");
    retries: Counter<u64> = u64_counter("tool.retry.count");
    errors: Counter<u64> = u64_counter("tool.error.count");
    shadow_calls: Counter<u64> = u64_counter("tool.shadow.count");
    decisions: Counter<u64> = u64_counter("tool.shadow.decision.count");
    chunks: Counter<u64> = u64_counter("tool.stream.chunks");
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
        count.add(1);
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
