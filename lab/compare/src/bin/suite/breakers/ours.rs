//! Our breaker.
use super::{Circuit, Rules, Trip, Work};
use tower::{Layer, service_fn};
use tr_breaker::{BreakerLayer, CircuitOpen};
use tr_core::{
    BoxError, Classification, Effect, End, KeyRef, Ran, RequestPolicy, ResponsePolicy, Verdict,
    find,
};

/// What the layer wants to know of a [`Work`].
#[derive(Clone, Copy, Debug)]
struct SmallPolicy;

impl RequestPolicy<Work> for SmallPolicy {
    fn key<'r>(&self, _: &'r Work) -> KeyRef<'r> {
        KeyRef::new("tool")
    }

    fn effect(&self, _: &Work) -> Effect {
        Effect::ReadOnly
    }
}

impl ResponsePolicy<()> for SmallPolicy {
    fn classify<'r>(&self, end: End<'r, ()>) -> Classification<'r> {
        match end {
            Ok(()) => Classification::SUCCESS,
            Err(_) => Classification::new(Verdict::TRANSIENT, Ran::Yes, "failed"),
        }
    }
}

pub(super) fn circuit(rules: &Rules) -> Result<Circuit, &'static str> {
    let builder = BreakerLayer::builder()
        .cooldown(rules.cooldown)
        .max_probes(rules.probes)
        .successes_to_close(rules.probes);
    let builder = match rules.trip {
        Trip::InARow(failures) => builder.consecutive_failures(failures),
        Trip::HalfOf(calls) => builder.consecutive_failures(None).window(calls).min_calls(calls),
        Trip::HalfWithin(time) => builder.consecutive_failures(None).min_calls(5).rolling(time),
    };
    let layer = builder.policy(SmallPolicy).build().map_err(|_| "refuses these rules")?;
    let apply = || {
        let service = layer.layer(service_fn(|work: Work| work.0));
        Circuit::of(service, |error: &BoxError| find::<CircuitOpen>(&**error).is_some())
    };
    Ok(apply().twice(apply()))
}
