//! Records the stack's attempts, retries and breakers in the trace of a call's turn.
use crate::trace::{Fact, Run, log::Failed};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};
use tokio::time::Instant;
use tool_reliability::Hook;
use tr_core::{
    BoxError, BreakerState, CallInfo, Event, Observer, ToolCall, ToolOutcome, debug_parts,
    internal::lock,
};

/// Records attempts, retries, timeouts and breakers in the traces of turns.
///
/// Give one recorder to the stack, as a hook and as an observer, and to the turns that run over it.
/// Without it a trace has only the end of each call. A clone shares its state.
///
/// ```
/// use std::sync::Arc;
/// use tool_reliability::ToolStack;
/// use tr_turn::Recorder;
///
/// let recorder = Recorder::default();
/// let stack = ToolStack::builder()
///     .hook(recorder.clone())
///     .observer(Arc::new(recorder.clone()))
///     .build()?;
/// # Ok::<_, tool_reliability::ConfigError>(())
/// ```
#[derive(Clone, Default)]
pub struct Recorder(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Runs in flight, by the ids of their requests.
    runs: Mutex<HashMap<Box<str>, Arc<Run>>>,
    /// Breakers that are not closed.
    breakers: Mutex<HashMap<Box<str>, BreakerState>>,
}

/// Registers a run with the recorder until it is dropped.
#[derive(Debug)]
pub(crate) struct Listed {
    recorder: Recorder,
    request_id: Box<str>,
}

impl Drop for Listed {
    fn drop(&mut self) {
        lock(&self.recorder.0.runs).remove(&self.request_id);
    }
}

impl Recorder {
    pub(crate) fn list(&self, request_id: Box<str>, run: Arc<Run>) -> Listed {
        lock(&self.0.runs).insert(request_id.clone(), run);
        Listed { recorder: self.clone(), request_id }
    }

    fn run(&self, request_id: Option<&str>) -> Option<Arc<Run>> {
        lock(&self.0.runs).get(request_id?).cloned()
    }

    /// The last known state of the breaker of this name.
    #[must_use]
    pub fn breaker(&self, name: &str) -> BreakerState {
        lock(&self.0.breakers).get(name).copied().unwrap_or(BreakerState::Closed)
    }

    /// Breakers are shared, so each turn with a call under it gets one entry.
    fn breaker_changed(&self, name: &str, from: BreakerState, to: BreakerState) {
        match to {
            // Only breakers that are not closed are kept; the stack bounds their number.
            BreakerState::Closed => drop(lock(&self.0.breakers).remove(name)),
            _ => drop(lock(&self.0.breakers).insert(name.into(), to)),
        }
        let under_it = |run: &&Arc<Run>| *run.breaker == *name;
        let mut runs: Vec<_> = lock(&self.0.runs).values().filter(under_it).cloned().collect();
        runs.sort_by_key(|run| Arc::as_ptr(&run.log).addr());
        runs.dedup_by_key(|run| Arc::as_ptr(&run.log).addr());
        let now = Instant::now();
        for run in runs {
            let attempt = run.notes().attempts;
            run.push(now, attempt, Fact::CircuitBreaker { breaker: name.into(), from, to });
        }
    }
}

impl Observer for Recorder {
    fn on_event(&self, call: &CallInfo<'_>, event: &Event<'_>) {
        if let Event::Breaker { breaker, from, to } = *event {
            return self.breaker_changed(breaker, from, to);
        }
        let Some(run) = self.run(call.request_id) else { return };
        let now = Instant::now();
        let fact = match *event {
            // The turn itself records the timeouts of the call and of the turn.
            Event::TimedOut { .. } if now >= run.deadline => return,
            Event::TimedOut { after, .. } => Fact::ToolTimeout { after },
            Event::Retry { delay, .. } => {
                let circuit = match self.breaker(&run.breaker) {
                    BreakerState::Closed => "closed",
                    BreakerState::HalfOpen => "half-open",
                    BreakerState::Open | BreakerState::ForcedOpen => "open",
                };
                let reason = format!("Transient error + circuit {circuit} + retries available");
                let (decision, reason) = ("Retry", reason.into());
                Fact::RecoveryDecision { decision, reason, delay: Some(delay) }
            }
            Event::RetryRefused { why, .. } => {
                let (decision, reason) = ("NoRetry", why_not(why).into());
                Fact::RecoveryDecision { decision, reason, delay: None }
            }
            _ => return,
        };
        run.push(now, call.attempt + 1, fact);
    }
}

/// Why a transient failure was not retried, in the words of the required reasons.
fn why_not(why: &str) -> &str {
    match why {
        "attempts" => "Transient error + no retries left",
        "deadline" | "elapsed" => "Transient error + no time left for a retry",
        "budget" => "Transient error + retry budget used up",
        "effect" => "Transient error + a repeat may do harm",
        "circuit_open" => "Transient error + circuit open",
        "own_retries" => "Transient error + the tool retries by itself",
        other => other,
    }
}

impl Hook for Recorder {
    fn before(&self, call: &ToolCall) {
        // Hooks also run for a call without an attempt.
        let run = self.run(call.parts().request_id.as_deref()).filter(|_| call.had_attempt());
        if let Some(run) = run {
            run.began(call.attempt() + 1);
        }
    }

    fn after(&self, call: &ToolCall, end: Result<&ToolOutcome, &BoxError>) {
        let Some(failed) = Failed::of(end) else { return };
        if let Some(run) = self.run(call.parts().request_id.as_deref()) {
            let breaker = self.breaker(&run.breaker);
            run.failed(Instant::now(), call.attempt() + 1, failed, breaker);
        }
    }
}

debug_parts! { Recorder, |it| runs = lock(&it.0.runs).len(), breakers = lock(&it.0.breakers).len() }
