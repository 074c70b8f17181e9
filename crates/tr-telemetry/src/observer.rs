//! [`TelemetryObserver`]: other layers report their events to it.
use crate::{
    Signals,
    log::{self, Record},
    metrics::{Decision, Series},
    notes,
    redact::Hidden,
    signals::Core,
    spans,
    watch::without,
};
use opentelemetry::KeyValue;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use tr_core::{BreakerState, CallInfo, Event, Observer, SessionAction, code, internal::Sharded};

/// Turns the events of other layers into log events, metrics and spans.
///
/// It depends on none of these layers. Events during the poll of a call are also noted for that call,
/// so that its last event has the number of attempts and the breaker that refused it.
#[derive(Debug)]
pub(crate) struct TelemetryObserver {
    core: Sharded<Core>,
    /// That calls go without a breaker was logged.
    told_uncounted: AtomicBool,
}

impl Signals {
    /// An observer that turns the events of other layers into log events, metrics and spans.
    #[must_use]
    pub fn observer(&self) -> Arc<dyn Observer> {
        Arc::new(TelemetryObserver { core: self.core(), told_uncounted: AtomicBool::new(false) })
    }
}

impl TelemetryObserver {
    fn series(&self, call: &CallInfo<'_>, count: impl FnOnce(&Series)) {
        if let Some(metrics) = self.core.real_metrics() {
            count(&metrics.of_label(call.tool, None));
        }
    }

    /// Logs a record of this call: as a warning, unless all `is_well`.
    fn log(&self, call: &CallInfo<'_>, is_well: bool, record: Record<'_>) {
        if !self.core.logs_enabled() {
            return;
        }
        let hidden = Hidden::of(call.sensitive);
        let redacted =
            |id: Option<&str>| id.map(|id| self.core.redact_id(&without(hidden.as_ref(), id)));
        let (tool, code) = (self.core.redact_id(call.tool), redacted(record.error_code));
        let (request, session) = (redacted(call.request_id), redacted(call.session));
        let correlation = redacted(call.correlation);
        let record = || Record {
            request_id: request.as_deref(),
            tool_name: &tool,
            session_key: session.as_deref(),
            correlation_id: correlation.as_deref(),
            idempotency_key_hash: notes::current().and_then(|notes| notes.key_hash),
            error_code: code.as_deref(),
            shadow: record.shadow.or(self.core.shadow.then_some(true)),
            ..record
        };
        if is_well {
            log::info(record);
        } else {
            log::warn(record);
        }
    }

    /// Redacts and cuts a code of this call.
    fn shown(&self, call: &CallInfo<'_>, code: &str) -> Box<str> {
        self.core.redact_id(&without(Hidden::of(call.sensitive).as_ref(), code))
    }

    fn retry(
        &self,
        call: &CallInfo<'_>,
        attempt: u32,
        (delay, retry_after): (Duration, Option<Duration>),
        reason: &str,
        latency: Duration,
    ) {
        let attempt = attempt.saturating_add(1);
        notes::note(|notes| notes.retries = notes.retries.max(attempt));
        self.series(call, |series| series.retried(reason));
        if let Some(tracer) = self.core.tracer.as_deref() {
            spans::planned(tracer, "retry_delay", delay, || {
                let reason = String::from(self.shown(call, reason));
                [
                    KeyValue::new("retry.attempt", i64::from(attempt)),
                    KeyValue::new("retry.reason", reason),
                ]
            });
        }
        let record = Record {
            event: "tool_call_retry",
            state: Some("inflight"),
            attempt: Some(attempt),
            elapsed: Some(latency),
            from_cache: Some(false),
            error_code: Some(reason),
            retriable: Some(true),
            delay: Some(delay),
            retry_after,
            ..Record::default()
        };
        self.log(call, false, record);
    }

    fn session(&self, call: &CallInfo<'_>, action: SessionAction, removed: u64) {
        let action = action.as_str();
        if let Some(metrics) = self.core.real_metrics() {
            metrics.session(action);
        }
        self.note("session", || [KeyValue::new("action", action)]);
        let record = Record {
            event: "tool_session",
            action: Some(action),
            removed: Some(removed),
            ..Record::default()
        };
        self.log(call, false, record);
    }

    /// Adds an event to the active span, which in shadow mode is not ours.
    fn note<const N: usize>(&self, name: &'static str, attributes: impl FnOnce() -> [KeyValue; N]) {
        if !self.core.shadow {
            spans::note(name, attributes);
        }
    }
}

impl Observer for TelemetryObserver {
    fn enabled(&self) -> bool {
        self.core.is_enabled()
    }

    fn on_event(&self, call: &CallInfo<'_>, event: &Event<'_>) {
        let decision = Decision::of(event, self.core.shadow);
        // Counts what enforcing would have done, and was not done.
        if let (Some(decision), Some(metrics)) = (decision, &self.core.metrics) {
            metrics.of_label(call.tool, None).decided(decision);
        }
        match *event {
            Event::Retry { attempt, delay, retry_after, reason, latency } => {
                self.retry(call, attempt, (delay, retry_after), reason, latency);
            }
            Event::Breaker { from, to, .. } => {
                notes::note(|notes| notes.breaker = Some(to));
                self.series(call, |series| series.moved(from, to));
                let record = Record {
                    event: "tool_call_circuit_state",
                    state: Some(to.as_str()),
                    breaker_state: Some(to.as_str()),
                    from_state: Some(from.as_str()),
                    ..Record::default()
                };
                self.log(call, to == BreakerState::Closed, record);
            }
            Event::BreakerRefused { state, shadow: false, .. } => {
                notes::note(|notes| notes.breaker = Some(state));
            }
            Event::BreakerRefused { state, shadow: true, .. } => {
                let record = Record {
                    event: "tool_call_blocked",
                    attempt: Some(0),
                    error_code: Some(code::CIRCUIT_OPEN),
                    // As of a refusal; and this call runs.
                    retriable: Some(false),
                    breaker_state: Some(state.as_str()),
                    shadow: Some(true),
                    ..Record::default()
                };
                self.log(call, false, record);
            }
            Event::BreakerUncounted => {
                self.series(call, Series::uncounted);
                if !self.told_uncounted.swap(true, Relaxed) {
                    let record = Record { event: "tool_call_uncounted", ..Record::default() };
                    self.log(call, false, record);
                }
            }
            Event::Replayed { state, .. } => {
                notes::note(|notes| notes.replayed = Some(state));
                self.series(call, |series| series.hit(state));
            }
            Event::KeyConflict => self.series(call, |series| series.hit("conflict")),
            Event::RetryRefused { attempt, why } => self.note("retry_refused", || {
                let attempt = i64::from(attempt.saturating_add(1));
                [KeyValue::new("retry.attempt", attempt), KeyValue::new("why", why)]
            }),
            Event::TimedOut { after, .. } => {
                self.note("timed_out", || [KeyValue::new("after_ms", after.as_secs_f64() * 1e3)]);
            }
            Event::Loop { rule, count, blocked } => self.note("loop", || {
                let count = KeyValue::new("count", i64::from(count));
                [KeyValue::new("rule", rule), count, KeyValue::new("blocked", blocked)]
            }),
            Event::Refused { code, .. } => self
                .note("refused", || [KeyValue::new("code", String::from(self.shown(call, code)))]),
            Event::Session { action, removed } => self.session(call, action, removed),
            // Events that later versions of the contract add are ignored.
            _ => {}
        }
    }
}
