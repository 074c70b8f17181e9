//! The stack as a ladder: each rung has one layer more than the one before, in the order of `ToolStack`
//! (`crates/tool-reliability/src/order.rs`) from the inside out, with its default settings.
pub mod plot;
pub mod table;

use crate::{
    call::{self, Leaf},
    ours::{idempotency, stack},
    run::{Comes, Run},
};
use tool_reliability::{adapter::AdapterLayer, cancel::CancelLayer};
use tower::{Layer as _, Service};
use tr_breaker::BreakerLayer;
use tr_core::{BoxError, ToolCall, ToolOutcome};
use tr_integrity::IntegrityLayer;
use tr_loopguard::LoopGuardLayer;
use tr_retry::RetryLayer;
use tr_telemetry::{Signals, TelemetryLayer};
use tr_timeout::{AttemptTimeoutLayer, DeadlineLayer};

/// Which calls go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// As an agent makes them: each has a key of its own, and its params are hashed for its record.
    New,
    /// Key and hash are known before the call, as in the judged table.
    Hashed,
}

impl Calls {
    /// Both.
    pub const ALL: [Self; 2] = [Self::New, Self::Hashed];

    /// How reports name them.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new call",
            Self::Hashed => "hashed before",
        }
    }
}

/// A rung: the layer that it adds, and the calls through all layers up to it.
#[derive(Clone, Copy, Debug)]
pub struct Rung {
    /// The layer.
    pub layer: &'static str,
    /// The run of these calls.
    pub run: fn(Calls) -> Run,
}

const fn rung(layer: &'static str, run: fn(Calls) -> Run) -> Rung {
    Rung { layer, run }
}

/// All rungs, the bare tool first, the whole stack last.
pub static RUNGS: [Rung; 13] = [
    rung("bare tool", |calls| run(Leaf, calls)),
    rung("adapter", |calls| run(adapter(), calls)),
    rung("cancellation", |calls| run(cancellation(), calls)),
    rung("attempt timeout", |calls| run(attempt_timeout(), calls)),
    rung("breaker", |calls| run(breaker(), calls)),
    rung("telemetry of the attempt", |calls| run(attempt_telemetry(), calls)),
    rung("retry", |calls| run(retry(), calls)),
    rung("deadline", |calls| run(deadline(), calls)),
    rung("idempotency", |calls| run(idempotency(), calls)),
    rung("loop guard", |calls| run(loop_guard(), calls)),
    rung("integrity", |calls| run(integrity(), calls)),
    rung("telemetry of the call", |calls| run(call_telemetry(), calls)),
    rung("ToolStack: hooks, switch", |calls| run(stack::stack(), calls)),
];

fn run(service: impl Service<ToolCall> + 'static, calls: Calls) -> Run {
    match calls {
        Calls::New => Run::service(Comes::Through, service, call::new()),
        Calls::Hashed => Run::service(Comes::Through, service, call::unique(0)),
    }
}

/// What each layer wants of what is inside it.
trait Tool:
    Service<ToolCall, Response = ToolOutcome, Error = BoxError, Future: Send> + Clone + Send + 'static
{
}

impl<S> Tool for S where
    S: Service<ToolCall, Response = ToolOutcome, Error = BoxError, Future: Send>
        + Clone
        + Send
        + 'static
{
}

const GOOD: &str = "the defaults are valid";

fn signals() -> Signals {
    Signals::builder().build().expect(GOOD)
}

fn adapter() -> impl Tool {
    AdapterLayer::new().layer(Leaf)
}

fn cancellation() -> impl Tool {
    CancelLayer.layer(adapter())
}

fn attempt_timeout() -> impl Tool {
    AttemptTimeoutLayer::default().layer(cancellation())
}

fn breaker() -> impl Tool {
    BreakerLayer::default().layer(attempt_timeout())
}

fn attempt_telemetry() -> impl Tool {
    TelemetryLayer::attempt(&signals()).layer(breaker())
}

fn retry() -> impl Tool {
    RetryLayer::default().layer(attempt_telemetry())
}

fn deadline() -> impl Tool {
    DeadlineLayer::builder().build().expect(GOOD).layer(retry())
}

fn idempotency() -> impl Tool {
    idempotency::layer::<Leaf>().layer(deadline())
}

fn loop_guard() -> impl Tool {
    LoopGuardLayer::default().layer(idempotency())
}

fn integrity() -> impl Tool {
    IntegrityLayer::builder().build().layer(loop_guard())
}

fn call_telemetry() -> impl Tool {
    TelemetryLayer::call(&signals()).layer(integrity())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::any::type_name_of_val;

    #[test]
    fn every_call_runs_the_tool_on_every_rung() {
        for Rung { run, .. } in &RUNGS {
            for calls in Calls::ALL {
                assert_eq!(run(calls).warm_after(100).warm().seen(), (100, 100));
            }
        }
    }

    #[test]
    fn the_order_is_the_stack_s() {
        let services = |name: &'static str| -> Vec<_> {
            let parts =
                name.split(['<', '>', ',', ' ']).filter_map(|path| path.rsplit("::").next());
            parts
                // `Checked` comes with a feature of the facade that another package may turn on.
                .filter(|part| {
                    !["", "Checked", "Switch", "Hooked", "DefaultDeadline"].contains(part)
                })
                .collect()
        };
        let ladder = services(type_name_of_val(&call_telemetry()));
        let mut stack = services(type_name_of_val(&stack::stack()));
        // The switch holds the bare tool too.
        assert_eq!(stack.pop(), Some("Leaf"));
        assert_eq!(stack, ladder);
    }
}
