//! Our breaker.
use super::{Circuit, Fault, Rules, Tool, Trip, Work};
use tower::Layer;
use tr_breaker::{BreakerLayer, CircuitOpen};
use tr_core::{BoxError, Effect, find};

pub(super) fn circuit(rules: &Rules) -> Result<Circuit, &'static str> {
    let builder = BreakerLayer::named("tool")
        .effect(|_: &Work| Effect::ReadOnly)
        .permanent_error(|fault: &Fault| *fault == Fault::No)
        .cooldown(rules.cooldown)
        .max_probes(rules.probes)
        .successes_to_close(rules.probes);
    let builder = match rules.trip {
        Trip::InARow(failures) => builder.consecutive_failures(failures),
        Trip::HalfOf(calls) => builder.consecutive_failures(None).window(calls).min_calls(calls),
        Trip::HalfWithin(time) => builder.consecutive_failures(None).min_calls(5).rolling(time),
    };
    let layer = builder.build().map_err(|_| "refuses these rules")?;
    let tool = Tool::default();
    let apply = || {
        let is_refusal = |error: &BoxError| find::<CircuitOpen>(&**error).is_some();
        Circuit::of(layer.layer(tool.clone()), is_refusal).around(&tool)
    };
    Ok(apply().twice(apply()))
}
