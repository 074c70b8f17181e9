//! Questions about repeating a request, and about its time.
use crate::{Cancellation, CoarseInstant, Effect, RetryOverrides};
use std::time::{Duration, Instant};

/// What a request does to the world.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot say what a `{Req}` does to the world",
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
    /// caller or the manifest says so, `Some(false)` if they forbid it whatever else is said.
    fn is_repeat_safe(&self, _: &Req) -> Option<bool> {
        None
    }
}

/// Whether and how a request can be repeated.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot copy a `{Req}` for another attempt",
    label = "no `Repeat<{Req}>` here",
    note = "write `impl tr_core::Repeat<{Req}> for {Self}` beside your request type, or give the layer a policy of your own with `.policy(MyPolicy)`"
)]
pub trait Repeat<Req> {
    /// The copy for another attempt, or `None` if there can be none (a body that streams).
    fn repeat(&self, req: &Req) -> Option<Req>;

    /// What the call and the tool's manifest change of the retry policy.
    fn overrides_of<'r>(&self, _: &'r Req) -> RetryOverrides<'r> {
        RetryOverrides::default()
    }

    /// The agent on whose behalf it is made, where retrying is opt-in per agent.
    fn agent_of<'r>(&self, _: &'r Req) -> Option<&'r str> {
        None
    }

    /// Whether the tool retries by itself, and is to be left alone.
    fn retries_itself(&self, _: &Req) -> bool {
        false
    }
}

/// A request's time and attempt.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot say by when a `{Req}` must be answered",
    label = "no `Progress<{Req}>` here",
    note = "write `impl tr_core::Progress<{Req}> for {Self} {{}}` beside your request type (all methods have defaults), or give the layer a policy of your own with `.policy(MyPolicy)`"
)]
pub trait Progress<Req> {
    /// When the answer is of no use any more.
    fn deadline(&self, _: &Req) -> Option<Instant> {
        None
    }

    /// Shortens the deadline of the request, so that inner layers do not begin what cannot end in
    /// time.
    fn set_deadline(&self, _: &mut Req, _: Instant) {}

    /// Whether and when its caller takes the request back, for those who wait with nothing in
    /// flight; `None` if he cannot, but by dropping it.
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

    /// Tells the request which attempt it is, from 0.
    fn set_attempt(&self, _: &mut Req, _: u32) {}

    /// When a layer last read the clock for this request.
    fn stamp(&self, _: &Req) -> Option<CoarseInstant> {
        None
    }

    /// Notes the time, or that the noted time is stale.
    fn set_stamp(&self, _: &mut Req, _: Option<CoarseInstant>) {}
}
