//! The order of the stack, outermost first, and why each layer stands where it does.
//!
//! This is the one place where the order is decided; any other subset or order stays possible
//! with `ServiceBuilder` and the layers themselves.
use crate::{
    adapter::{Adapter, AdapterLayer},
    cancel::{CancelLayer, Cancellable},
    checked::{Checked, CheckedLayer},
    hooks::{Hooked, HooksLayer, Place},
};
use std::fmt::DebugStruct;
use tower_layer::Layer;
use tr_breaker::{Breaker, BreakerLayer};
use tr_idempotency::{Idempotency, IdempotencyLayer};
use tr_integrity::{Integrity, IntegrityLayer};
use tr_loopguard::{LoopGuard, LoopGuardLayer};
use tr_retry::{Retry, RetryLayer};
use tr_telemetry::{Signals, Telemetry, TelemetryLayer};
use tr_timeout::{
    AttemptTimeout, AttemptTimeoutLayer, Deadline, DeadlineLayer, DefaultDeadline,
    DefaultDeadlineLayer,
};

/// All layers of a stack.
#[derive(Clone, Debug)]
pub(crate) struct Layers {
    /// Sees all outcomes, replayed and refused ones too.
    pub(crate) call_telemetry: TelemetryLayer,
    /// May set the key of the call and change its params, so it comes before any digest. It also
    /// calls the hooks of calls without an attempt.
    pub(crate) call_hooks: HooksLayer,
    /// Outside of every layer that may wait: the deadline of calls that have none.
    pub(crate) default_deadline: DefaultDeadlineLayer,
    /// Whatever happens below, each recorded use of a tool gets its result.
    pub(crate) integrity: IntegrityLayer,
    /// Counts replayed failures too, so it stands outside the records.
    pub(crate) loop_guard: LoopGuardLayer,
    /// Params that fail their tool's schema are no call: no record, no attempt. The loop guard
    /// counts them.
    pub(crate) checked: CheckedLayer,
    /// One claim covers all attempts.
    pub(crate) idempotency: IdempotencyLayer,
    /// Bounds all attempts of the one who runs the call; who waits for another's run is bounded
    /// by the records.
    pub(crate) deadline: DeadlineLayer,
    /// Each attempt goes through what is below, and an open breaker ends retrying.
    pub(crate) retry: RetryLayer,
    /// Once per attempt. It notes the attempt on the call that all attempts share, so it stands
    /// outside of what may change one attempt's copy.
    pub(crate) attempt_hooks: HooksLayer,
    /// A span per attempt, which the tool continues.
    pub(crate) attempt_telemetry: TelemetryLayer,
    /// Sees attempts, not calls; stands outside the timeout, so that timeouts count and probes
    /// end.
    pub(crate) breaker: BreakerLayer,
    /// Bounds an attempt and its wait for readiness.
    pub(crate) attempt_timeout: AttemptTimeoutLayer,
    /// Ends an attempt whose call is cancelled. Inside of what may wait for the tool: a call that is
    /// cancelled while it waits has not run.
    pub(crate) cancel: CancelLayer,
    /// Classifies the end of the tool, once for all layers.
    pub(crate) adapter: AdapterLayer,
}

/// The layers around a tool `T`.
pub(crate) type Stacked<T> =
    Telemetry<Hooked<DefaultDeadline<Integrity<LoopGuard<Checked<Idempotency<Attempts<T>>>>>>>>;

/// What one claim covers.
type Attempts<T> =
    Deadline<Retry<Hooked<Telemetry<Breaker<AttemptTimeout<Cancellable<Adapter<T>>>>>>>>;

impl Layers {
    /// The same, sharing all that they know, to stand beside calls that they do not touch: no
    /// hooks, which the bare tool has, no sessions, which are not theirs to write, and no counting
    /// of runs, which are the bare tool's.
    pub(crate) fn beside(&self, signals: &Signals) -> Self {
        Self {
            call_telemetry: TelemetryLayer::call(signals),
            attempt_telemetry: TelemetryLayer::attempt(signals),
            call_hooks: HooksLayer::none(Place::Call),
            attempt_hooks: HooksLayer::none(Place::Attempt),
            integrity: IntegrityLayer::builder().build(),
            adapter: AdapterLayer { is_seen: true, ..self.adapter },
            ..self.clone()
        }
    }

    /// Shows the settings of each layer on one line, outermost first.
    pub(crate) fn show(&self, shown: &mut DebugStruct<'_, '_>) {
        shown
            .field("telemetry", &format_args!("{:?}", self.call_telemetry))
            .field("default_deadline", &format_args!("{:?}", self.default_deadline))
            .field("integrity", &format_args!("{:?}", self.integrity))
            .field("loop_guard", &format_args!("{:?}", self.loop_guard))
            .field("idempotency", &format_args!("{:?}", self.idempotency))
            .field("deadline", &format_args!("{:?}", self.deadline))
            .field("retry", &format_args!("{:?}", self.retry))
            .field("breaker", &format_args!("{:?}", self.breaker))
            .field("attempt_timeout", &format_args!("{:?}", self.attempt_timeout))
            .field("adapter", &format_args!("{:?}", self.adapter));
    }

    pub(crate) fn around<T>(&self, tool: T) -> Stacked<T> {
        let tool = self.adapter.layer(tool);
        let tool = self.cancel.layer(tool);
        let tool = self.attempt_timeout.layer(tool);
        let tool = self.breaker.layer(tool);
        let tool = self.attempt_telemetry.layer(tool);
        let tool = self.attempt_hooks.layer(tool);
        let tool = self.retry.layer(tool);
        let tool = self.deadline.layer(tool);
        let tool = self.idempotency.layer(tool);
        let tool = self.checked.layer(tool);
        let tool = self.loop_guard.layer(tool);
        let tool = self.integrity.layer(tool);
        let tool = self.default_deadline.layer(tool);
        let tool = self.call_hooks.layer(tool);
        self.call_telemetry.layer(tool)
    }
}
