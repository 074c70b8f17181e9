//! [`TelemetryLayer`]: applies [`Telemetry`] around calls or around attempts.
use crate::{
    Signals,
    service::{Observed, Telemetry},
    signals::Core,
};
use tower_layer::Layer;
use tr_core::{DefaultPolicy, internal::Sharded};

/// Applies a [`Telemetry`], around a call or around an attempt.
#[derive(Clone, Debug)]
pub struct TelemetryLayer<A = DefaultPolicy> {
    core: Sharded<Core>,
    observed: Observed,
    policy: A,
}

impl TelemetryLayer {
    /// Around a call with all its attempts, outermost: events, metrics, the span `tool_execution`.
    #[must_use]
    pub fn call(signals: &Signals) -> Self {
        Self { core: signals.core(), observed: Observed::Call, policy: DefaultPolicy }
    }

    /// Around an attempt, inside retry: the span `tool_attempt`, and the count of attempts.
    #[must_use]
    pub fn attempt(signals: &Signals) -> Self {
        Self { core: signals.core(), observed: Observed::Attempt, policy: DefaultPolicy }
    }
}

impl<A> TelemetryLayer<A> {
    /// Sets the policy that reads requests and responses; [`DefaultPolicy`] by default.
    #[must_use]
    pub fn policy<B>(self, policy: B) -> TelemetryLayer<B> {
        TelemetryLayer { core: self.core, observed: self.observed, policy }
    }
}

impl<S, A: Clone> Layer<S> for TelemetryLayer<A> {
    type Service = Telemetry<S, A>;

    fn layer(&self, inner: S) -> Self::Service {
        Telemetry::new(inner, self.core.shard(), self.observed, self.policy.clone())
    }
}
