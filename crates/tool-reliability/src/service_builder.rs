//! The layers as methods of tower's `ServiceBuilder`.
use tower::ServiceBuilder;

/// Adds the layers to a [`ServiceBuilder`] by name.
///
/// # When to use
///
/// With settings that are known when the program is written. To keep a layer's handle (its breakers,
/// its records, its turns), or with settings that come from outside, build the layer itself, handle its
/// error, and add it with [`ServiceBuilder::layer`].
///
/// A method that takes a function passes it the layer's builder with the default settings: `|it| it`
/// keeps them, and `|it| it.policy(p)` reads requests and responses of other types. The order of the
/// calls is the order of the layers, outermost first; see the [order](crate#single-layers).
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use tool_reliability::{
///     BoxError, Effect, Params, ServiceBuilderExt as _, ToolCall, ToolOutcome, retry::RetryConfig,
/// };
/// use tower::{Service, ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), BoxError> {
/// let mut pay = ServiceBuilder::new()
///     .tool_loop_guard(|guard| guard.max_identical_failures(3))
///     .tool_idempotency(|records| records.done_ttl(Duration::from_secs(60 * 60)))
///     .tool_retry(|retry| retry.config(RetryConfig::per_request()))
///     .tool_breaker(|breaker| breaker.cooldown(Duration::from_secs(5)))
///     .tool_timeout(|timeout| timeout.after(Duration::from_secs(3)))
///     .service_fn(|call: ToolCall| async move {
///         Ok::<_, BoxError>(ToolOutcome::success(call.parts().params.clone()))
///     });
///
/// let call = ToolCall::new("pay", Params::from_text(r#"{"order": 42}"#)?)
///     .effect(Effect::Mutating)
///     .session("s-1")
///     .idempotency_key("order-42");
/// assert!(!pay.ready().await?.call(call.clone()).await?.from_cache());
/// assert!(pay.ready().await?.call(call).await?.from_cache());
/// # Ok(()) }
/// ```
///
/// # Panics
///
/// The methods that take a function panic if a setting is out of range, and the message names every
/// fault.
pub trait ServiceBuilderExt<L>: sealed::Sealed<L> + Sized {
    /// Tries a call again where that is safe: [`tr_retry`].
    #[cfg(feature = "retry")]
    #[track_caller]
    fn tool_retry<P>(
        self,
        change: impl FnOnce(tr_retry::Builder) -> tr_retry::Builder<P>,
    ) -> ServiceBuilder<tower_layer::Stack<tr_retry::RetryLayer<P>, L>> {
        self.with(built(change(tr_retry::RetryLayer::builder()).build()))
    }

    /// Refuses calls of a tool that keeps failing: [`tr_breaker`].
    #[cfg(feature = "breaker")]
    #[track_caller]
    fn tool_breaker<P>(
        self,
        change: impl FnOnce(tr_breaker::Builder) -> tr_breaker::Builder<P>,
    ) -> ServiceBuilder<tower_layer::Stack<tr_breaker::BreakerLayer<P>, L>> {
        self.with(built(change(tr_breaker::BreakerLayer::builder()).build()))
    }

    /// Bounds one attempt, 10 s by default: [`AttemptTimeoutLayer`](tr_timeout::AttemptTimeoutLayer).
    #[cfg(feature = "timeout")]
    #[track_caller]
    fn tool_timeout<P>(
        self,
        change: impl FnOnce(tr_timeout::AttemptTimeoutBuilder) -> tr_timeout::AttemptTimeoutBuilder<P>,
    ) -> ServiceBuilder<tower_layer::Stack<tr_timeout::AttemptTimeoutLayer<P>, L>> {
        self.with(built(change(tr_timeout::AttemptTimeoutLayer::builder()).build()))
    }

    /// Ends a call at its deadline, outside of retry: [`DeadlineLayer`](tr_timeout::DeadlineLayer). Calls
    /// without a deadline have no limit by default.
    #[cfg(feature = "timeout")]
    #[track_caller]
    fn tool_deadline<P>(
        self,
        change: impl FnOnce(tr_timeout::DeadlineBuilder) -> tr_timeout::DeadlineBuilder<P>,
    ) -> ServiceBuilder<tower_layer::Stack<tr_timeout::DeadlineLayer<P>, L>> {
        self.with(built(change(tr_timeout::DeadlineLayer::builder()).build()))
    }

    /// Runs a call once per idempotency key: [`tr_idempotency`].
    #[cfg(feature = "idempotency")]
    #[track_caller]
    fn tool_idempotency<P: Copy, V>(
        self,
        change: impl FnOnce(
            tr_idempotency::Builder<tr_core::DefaultPolicy, V>,
        ) -> tr_idempotency::Builder<P, V>,
    ) -> ServiceBuilder<tower_layer::Stack<tr_idempotency::IdempotencyLayer<P, V>, L>>
    where
        V: Clone + Send + 'static,
    {
        self.with(built(change(tr_idempotency::IdempotencyLayer::builder_for()).build()))
    }

    /// Ends loops of identical failures: [`tr_loopguard`].
    #[cfg(feature = "loop-guard")]
    #[track_caller]
    fn tool_loop_guard<P>(
        self,
        change: impl FnOnce(tr_loopguard::Builder) -> tr_loopguard::Builder<P>,
    ) -> ServiceBuilder<tower_layer::Stack<tr_loopguard::LoopGuardLayer<P>, L>> {
        self.with(built(change(tr_loopguard::LoopGuardLayer::builder()).build()))
    }

    /// Records each tool use and its result in `sessions`: [`tr_integrity`].
    #[cfg(feature = "integrity")]
    fn tool_integrity(
        self,
        sessions: tr_integrity::Sessions,
    ) -> ServiceBuilder<tower_layer::Stack<tr_integrity::IntegrityLayer, L>> {
        self.with(tr_integrity::IntegrityLayer::new(sessions))
    }

    /// Events, metrics and a span of a call with all its attempts, outermost: [`tr_telemetry`].
    #[cfg(feature = "telemetry")]
    fn tool_telemetry(
        self,
        signals: &tr_telemetry::Signals,
    ) -> ServiceBuilder<tower_layer::Stack<tr_telemetry::TelemetryLayer, L>> {
        self.with(tr_telemetry::TelemetryLayer::call(signals))
    }

    /// A span of one attempt and the count of attempts, inside retry: [`tr_telemetry`].
    #[cfg(feature = "telemetry")]
    fn tool_attempt_telemetry(
        self,
        signals: &tr_telemetry::Signals,
    ) -> ServiceBuilder<tower_layer::Stack<tr_telemetry::TelemetryLayer, L>> {
        self.with(tr_telemetry::TelemetryLayer::attempt(signals))
    }
}

impl<L> ServiceBuilderExt<L> for ServiceBuilder<L> {}

#[cfg(any(
    feature = "breaker",
    feature = "idempotency",
    feature = "loop-guard",
    feature = "retry",
    feature = "timeout"
))]
#[track_caller]
fn built<T>(layer: Result<T, tr_core::ConfigError>) -> T {
    layer.unwrap_or_else(|error| {
        panic!("{error}; for settings from outside, build the layer and use `.layer(…)`")
    })
}

/// Only this crate implements the trait, so methods can be added in minor versions.
mod sealed {
    use tower::ServiceBuilder;
    use tower_layer::Stack;

    pub trait Sealed<L> {
        fn with<T>(self, layer: T) -> ServiceBuilder<Stack<T, L>>;
    }

    impl<L> Sealed<L> for ServiceBuilder<L> {
        fn with<T>(self, layer: T) -> ServiceBuilder<Stack<T, L>> {
            self.layer(layer)
        }
    }
}
