//! Effect, repetition, deadline and attempt of a request.
use crate::{Cancellation, CoarseInstant, Effect, RetryOverrides};
use std::time::{Duration, Instant};

/// The effect of a request.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not define the effect of a `{Req}`",
    label = "no `EffectOf<{Req}>` here",
    note = "write `impl tr_core::EffectOf<{Req}> for {Self}` beside your request type, or give the layer a policy of your own with `.policy(MyPolicy)`"
)]
pub trait EffectOf<Req> {
    /// Its effect; [`Effect::Mutating`] if it is unknown.
    fn effect_of(&self, req: &Req) -> Effect;

    /// Whether the effect is declared.
    fn is_declared(&self, _: &Req) -> bool {
        true
    }

    /// Whether a repeat is safe although an earlier attempt may have run: `Some(true)` if the
    /// caller or the manifest declares it, `Some(false)` if one of them forbids it.
    fn is_repeat_safe(&self, _: &Req) -> Option<bool> {
        None
    }
}

/// Whether and how a request can be repeated.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not copy a `{Req}` for another attempt",
    label = "no `Repeat<{Req}>` here",
    note = "write `impl tr_core::Repeat<{Req}> for {Self}` beside your request type, or give the layer a policy of your own with `.policy(MyPolicy)`"
)]
pub trait Repeat<Req> {
    /// The copy for another attempt, or `None` if there can be none (a body that streams).
    fn repeat(&self, req: &Req) -> Option<Req>;

    /// The retry settings that the call and the tool's manifest override.
    fn overrides_of<'r>(&self, _: &'r Req) -> RetryOverrides<'r> {
        RetryOverrides::default()
    }

    /// The calling agent, for retries that are opt-in per agent.
    fn agent_of<'r>(&self, _: &'r Req) -> Option<&'r str> {
        None
    }

    /// Whether the tool retries by itself; then the layer does not.
    fn retries_itself(&self, _: &Req) -> bool {
        false
    }
}

/// A request's time and attempt.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not define the deadline of a `{Req}`",
    label = "no `Progress<{Req}>` here",
    note = "write `impl tr_core::Progress<{Req}> for {Self} {{}}` beside your request type (all methods have defaults), or give the layer a policy of your own with `.policy(MyPolicy)`"
)]
pub trait Progress<Req> {
    /// The deadline.
    fn deadline(&self, _: &Req) -> Option<Instant> {
        None
    }

    /// Shortens the deadline of the request, so that inner layers do not begin what cannot end in
    /// time.
    fn set_deadline(&self, _: &mut Req, _: Instant) {}

    /// The cancellation of the request, for layers that wait with nothing in flight; `None` if the
    /// caller can only drop the future.
    fn cancellation<'r>(&self, _: &'r Req) -> Option<&'r dyn Cancellation> {
        None
    }

    /// How long one attempt may take.
    fn attempt_timeout(&self, _: &Req) -> Option<Duration> {
        None
    }

    /// Which attempt the request is by its caller's count, from 0. Above 0, an outer layer is
    /// retrying it.
    fn attempt(&self, _: &Req) -> u32 {
        0
    }

    /// Sets which attempt the request is, from 0.
    fn set_attempt(&self, _: &mut Req, _: u32) {}

    /// When a layer last read the clock for this request.
    fn stamp(&self, _: &Req) -> Option<CoarseInstant> {
        None
    }

    /// Sets the time; `None` if the time is stale.
    fn set_stamp(&self, _: &mut Req, _: Option<CoarseInstant>) {}
}
