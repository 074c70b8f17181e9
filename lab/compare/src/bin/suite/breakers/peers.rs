//! Their breakers, each set up by its own means.
use super::{CallResult, Circuit, Fault, Rules, Tool, Trip};
use ::failsafe::{Config, Error, backoff, failure_policy, futures::CircuitBreaker as _};
use ::recloser::{AsyncRecloser, Recloser};
use tower::Layer;
use tower_resilience::circuitbreaker::{
    CircuitBreakerError, CircuitBreakerLayer, SlidingWindowType,
};

/// What failsafe and recloser count.
fn is_down(fault: &Fault) -> bool {
    *fault == Fault::Down
}

pub(super) fn tower_resilience(rules: &Rules) -> Result<Circuit, &'static str> {
    let builder = CircuitBreakerLayer::builder()
        .name("suite")
        .wait_duration_in_open(rules.cooldown)
        .permitted_calls_in_half_open(rules.probes as usize)
        .failure_classifier(|end: &Result<(), Fault>| *end == Err(Fault::Down));
    let builder = match rules.trip {
        Trip::InARow(failures) => builder.consecutive_failures(failures as usize),
        Trip::HalfOf(calls) => {
            builder.failure_rate_threshold(0.5).sliding_window_size(calls as usize)
        }
        Trip::HalfWithin(time) => builder
            .failure_rate_threshold(0.5)
            .sliding_window_type(SlidingWindowType::TimeBased)
            .sliding_window_duration(time)
            .minimum_number_of_calls(5),
    };
    let layer = if rules.shared {
        builder.build_with_handle().map(|(layer, _)| layer)
    } else {
        builder.build()
    };
    let layer = layer.map_err(|_| "refuses these rules")?;
    let tool = Tool::default();
    let apply = || {
        let is_refusal =
            |error: &CircuitBreakerError<Fault>| matches!(error, CircuitBreakerError::OpenCircuit);
        Circuit::of(layer.layer(tool.clone()), is_refusal).around(&tool)
    };
    Ok(apply().twice(apply()))
}

pub(super) fn failsafe(rules: &Rules) -> Result<Circuit, &'static str> {
    let failures = match rules.trip {
        Trip::InARow(failures) => failures,
        // It has no window of calls; its own default is five in a row, or a rate over 30 s.
        Trip::HalfOf(_) => 5,
        Trip::HalfWithin(_) => return Err("closes at the first success"),
    };
    let policy = failure_policy::consecutive_failures(failures, backoff::constant(rules.cooldown));
    let breaker = Config::new().failure_policy(policy).build();
    Ok(Circuit::new(move |work| {
        let breaker = breaker.clone();
        Box::pin(async move {
            match breaker.call_with(is_down, work.0).await {
                Ok(()) => CallResult::Succeeded,
                Err(Error::Rejected) => CallResult::Refused,
                Err(Error::Inner(_)) => CallResult::Failed,
            }
        })
    }))
}

pub(super) fn recloser(rules: &Rules) -> Result<Circuit, &'static str> {
    let custom = Recloser::custom().open_wait(rules.cooldown).half_open_len(rules.probes as usize);
    let custom = match rules.trip {
        // It knows rates only: all of the last ones.
        Trip::InARow(failures) => custom.error_rate_closed(1.0).closed_len(failures as usize),
        Trip::HalfOf(calls) => custom.error_rate(0.5).closed_len(calls as usize),
        Trip::HalfWithin(_) => return Err("no window of time"),
    };
    let breaker = AsyncRecloser::from(custom.build());
    Ok(Circuit::new(move |work| {
        let breaker = breaker.clone();
        Box::pin(async move {
            match breaker.call_with(is_down, work.0).await {
                Ok(()) => CallResult::Succeeded,
                Err(::recloser::Error::Rejected) => CallResult::Refused,
                Err(::recloser::Error::Inner(_)) => CallResult::Failed,
            }
        })
    }))
}
