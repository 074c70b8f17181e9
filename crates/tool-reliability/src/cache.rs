//! The stack's records, as telemetry's gauges show them.
use std::time::Duration;
use tr_core::{DedupeScope, ToolOutcome};
use tr_idempotency::{Handle, RecordState};
use tr_telemetry::CacheReadings;

/// Reads the records of this process.
pub(crate) struct Records(pub(crate) Handle<ToolOutcome>);

impl CacheReadings for Records {
    fn sizes(&self, report: &mut dyn FnMut(&str, DedupeScope, u64)) {
        for held in self.0.state_counts() {
            report(&held.tool, held.scope, held.records);
        }
    }

    fn ttls(&self, report: &mut dyn FnMut(&str, &'static str, Duration)) {
        for held in self.0.state_counts() {
            report(&held.tool, held.state.as_str(), held.ttl);
        }
    }

    fn in_flight(&self, report: &mut dyn FnMut(&str, bool, u64)) {
        for held in self.0.state_counts() {
            if held.state == RecordState::Inflight {
                report(&held.tool, true, held.stale);
                report(&held.tool, false, held.records - held.stale);
            }
        }
    }
}
