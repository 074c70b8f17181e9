//! What threads may share and what tasks may hold: a type that loses `Send` or `Sync` breaks its users' builds.
use std::error::Error;
use tool_reliability::{
    Environment, ErrorsAsOutcomes, Guarded, KillSwitch, Rollout, ToolStack, breaker, config, core,
    idempotency, integrity, loopguard, retry, telemetry, timeout,
};
use tower::{Layer, Service, util::BoxCloneSyncService};
use tr_core::{BoxError, ToolCall, ToolOutcome};

/// Any tool that threads share.
type Tool = BoxCloneSyncService<ToolCall, ToolOutcome, BoxError>;

fn handle<T: Clone + Send + Sync + 'static>() {}

fn error<T: Error + Send + Sync + 'static>() {}

/// A layer that threads share, whose service they share as well, and whose calls may be spawned.
fn layer<L>()
where
    L: Layer<Tool> + Clone + Send + Sync + 'static,
    L::Service: Service<ToolCall, Error = BoxError, Future: Send + 'static>,
    L::Service: Clone + Send + Sync + 'static,
{
}

#[test]
fn layers_services_and_their_futures() {
    layer::<breaker::BreakerLayer>();
    layer::<idempotency::IdempotencyLayer>();
    layer::<integrity::IntegrityLayer>();
    layer::<loopguard::LoopGuardLayer>();
    layer::<retry::RetryLayer>();
    layer::<telemetry::TelemetryLayer>();
    layer::<timeout::AttemptTimeoutLayer>();
    layer::<timeout::DeadlineLayer>();
    handle::<Guarded<Tool>>();
    handle::<ErrorsAsOutcomes<Guarded<Tool>>>();
}

#[test]
fn what_a_program_keeps() {
    handle::<ToolStack>();
    handle::<KillSwitch>();
    handle::<Rollout>();
    handle::<Environment>();
    handle::<config::Config>();
    handle::<config::ToolCatalog>();
    handle::<core::ToolManifest>();
    handle::<ToolCall>();
    handle::<ToolOutcome>();
    handle::<breaker::Registry>();
    handle::<breaker::BreakerHandle>();
    handle::<idempotency::Handle<ToolOutcome>>();
    handle::<idempotency::StoreHandle<ToolOutcome>>();
    handle::<integrity::Sessions>();
    handle::<loopguard::Turns>();
    handle::<retry::Budget>();
    handle::<telemetry::Signals>();
}

#[test]
fn errors() {
    error::<breaker::CircuitOpen>();
    error::<breaker::ConfigError>();
    error::<idempotency::error::Conflict>();
    error::<idempotency::error::InFlight>();
    error::<idempotency::error::OutcomeUnknown>();
    error::<idempotency::error::SharedFailure>();
    error::<idempotency::error::StoreUnavailable>();
    error::<integrity::ContentFiltered>();
    error::<integrity::IntentNotRecorded>();
    error::<integrity::SessionCorrupt>();
    error::<loopguard::LoopDetected>();
    error::<loopguard::ToolErrorLimit>();
    error::<retry::RetryExhausted>();
    error::<timeout::AttemptTimedOut>();
    error::<timeout::DeadlineExceeded>();
}
