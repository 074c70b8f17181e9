//! How layers read requests and responses: one small trait for each aspect.
//!
//! A layer has one type parameter beside its inner service, the policy: `A = DefaultPolicy`.
//! [`DefaultPolicy`] implements the traits for [`ToolCall`](crate::ToolCall) and, with the feature
//! `http`, for `http::Request`, so the defaults need no type annotations. For a type of your own,
//! write `impl KeyOf<MyRequest> for DefaultPolicy` beside the type, or give a layer a policy of your
//! own with `.policy(MyPolicy)`. Policies are small `Copy` types, never closures.
//!
//! A method's default means "unknown": the layer uses its own settings.
//!
//! # When the compiler says that trait bounds were not satisfied
//!
//! If a trait is not implemented, the service has no `ready()` and no `oneshot(request)`, and the
//! error does not name the trait. Name the request type, and it does:
//! `ServiceExt::<MyRequest>::ready(&mut service)`.
mod attempt;
mod cycle;
mod dedupe;
#[cfg(feature = "http")]
mod http;
mod model;
mod tool_call;

pub use self::{
    attempt::{EffectOf, Progress, Repeat},
    cycle::{Answer, AnswerOf, CycleOf, CycleRef},
    dedupe::{Codec, Derive, IdempotencyOf, InvalidKey, RecordRef},
    model::{Feedback, LoopOf, LoopRef, TurnRef},
};
use crate::{CallInfo, Classification, KeyRef, Ran, Retried, classify, manifest::BreakerOverride};
use std::error::Error;

/// The policy for [`ToolCall`](crate::ToolCall) and `http::Request`.
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultPolicy;

/// How an attempt ended, before it is classified.
pub type End<'r, Res> = Result<&'r Res, &'r (dyn Error + Send + Sync + 'static)>;

/// The key of a request: its tool, and so its breaker, its budget and its counters.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not define the tool of a `{Req}`",
    label = "no `KeyOf<{Req}>` here",
    note = "write `impl tr_core::KeyOf<{Req}> for {Self}` beside your request type, or give the layer a policy of your own with `.policy(MyPolicy)`"
)]
pub trait KeyOf<Req> {
    /// The tool.
    fn key_of<'r>(&self, req: &'r Req) -> KeyRef<'r>;

    /// The breaker, if it is not the tool's own. Operators' changes to the tool's breaker apply to those
    /// of its [targets](KeyRef::is_target), too.
    fn breaker_of<'r>(&self, req: &'r Req) -> KeyRef<'r> {
        self.key_of(req)
    }

    /// The breaker settings in the tool's manifest.
    fn breaker_override(&self, _: &Req) -> BreakerOverride {
        BreakerOverride::default()
    }

    /// The description of the request in events.
    fn info_of<'r>(&self, req: &'r Req) -> CallInfo<'r> {
        CallInfo::of(self.key_of(req).name)
    }
}

/// Classifies the end of an attempt.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not classify a `{Res}`",
    label = "no `Classify<{Res}>` here",
    note = "write `impl tr_core::Classify<{Res}> for {Self}` beside your response type, or give the layer a policy of your own with `.policy(MyPolicy)`"
)]
pub trait Classify<Res> {
    /// Classifies an end. Called once by each layer that needs to know; it must not panic.
    ///
    /// By default every response is a success, and an error is what [`classify::error`] makes of
    /// it. A response that can be a failure needs an answer of its own: retry and breaker would
    /// not see it.
    fn classify<'r>(&self, end: End<'r, Res>) -> Classification<'r> {
        end.map_or_else(|error| classify::error(error).end, |_| Classification::SUCCESS)
    }

    /// Notes the retries on the response.
    fn note_retries(&self, _: &mut Res, _: Vec<Retried>) {}

    /// Notes on a failing response what is known of all attempts together: whether the tool ran, and
    /// whether it has been retried, so that outer layers do not retry it again.
    fn note_attempts(&self, _: &mut Res, _ran: Ran, _exhausted: bool) {}
}
