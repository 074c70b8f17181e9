//! The set of OpenTelemetry's conventions for generative AI.
use super::bound::{Ended, Times, closed, instruments};
use opentelemetry::{KeyValue, StringValue, metrics::Histogram};
use std::sync::OnceLock;
use tr_core::Status;

/// Bounds of the buckets that the conventions advise, in seconds.
const BUCKETS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

instruments! {
    duration: Histogram<f64> = f64_histogram(
        "gen_ai.execute_tool.duration",
        "Time of a tool call with all its attempts"
    ).with_unit("s").with_boundaries(BUCKETS.to_vec());
}

#[derive(Default)]
pub(super) struct Series {
    good: OnceLock<Times>,
}

impl Series {
    pub(super) fn ended(&self, set: &Instruments, tool: &StringValue, end: &Ended<'_>) {
        let seconds = end.elapsed.as_secs_f64();
        let operation = KeyValue::new("gen_ai.operation.name", "execute_tool");
        let tool = KeyValue::new("gen_ai.tool.name", tool.clone());
        if end.status == Status::Success {
            let good = || Times::new(&set.duration, &[operation, tool]);
            self.good.get_or_init(good).record(seconds);
        } else {
            let error = KeyValue::new("error.type", closed(end.code));
            set.duration.record(seconds, &[operation, tool, error]);
        }
    }
}
