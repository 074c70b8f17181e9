//! One small trait per question that a layer asks of a request or a response.
//!
//! A layer takes one parameter beside its inner service: `A = DefaultPolicy`, the answers.
//! [`DefaultPolicy`] answers for [`ToolCall`](crate::ToolCall) and, with the feature `http`, for
//! `http::Request`, so the defaults need no type annotations. For a type of your own, write
//! `impl KeyOf<MyRequest> for DefaultPolicy` beside the type, or hand a layer your own answers with
//! `.policy(MyPolicy)`. Answers are small `Copy` types, never closures.
//!
//! Each method with a default answers "I don't know", and the layer falls back to its own
//! settings.
//!
//! # When the compiler says that trait bounds were not satisfied
//!
//! `service.ready()` and `service.oneshot(request)` are found by what the service can do, so an
//! answer that is missing hides them, and the error does not say which. Name the request, and it
//! does: `ServiceExt::<MyRequest>::ready(&mut service)`.
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

/// The answers that [`ToolCall`](crate::ToolCall) and `http::Request` have built in.
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultPolicy;

/// How an attempt ended, before it is classified.
pub type End<'r, Res> = Result<&'r Res, &'r (dyn Error + Send + Sync + 'static)>;

/// Which tool a request is for: which breaker, which budget, which counters.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot say which tool a `{Req}` is for",
    label = "no `KeyOf<{Req}>` here",
    note = "write `impl tr_core::KeyOf<{Req}> for {Self}` beside your request type, or give the layer a policy of your own with `.policy(MyPolicy)`"
)]
pub trait KeyOf<Req> {
    /// The tool.
    fn key_of<'r>(&self, req: &'r Req) -> KeyRef<'r>;

    /// The breaker, where it is not the tool's own. What is ordered for the tool's breaker holds for
    /// those of its [targets](KeyRef::is_target), too.
    fn breaker_of<'r>(&self, req: &'r Req) -> KeyRef<'r> {
        self.key_of(req)
    }

    /// What the tool's manifest changes of its breaker.
    fn breaker_override(&self, _: &Req) -> BreakerOverride {
        BreakerOverride::default()
    }

    /// What events say of the request.
    fn info_of<'r>(&self, req: &'r Req) -> CallInfo<'r> {
        CallInfo::of(self.key_of(req).name)
    }
}

/// How an attempt ended.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot tell a good `{Res}` from a bad one",
    label = "no `Classify<{Res}>` here",
    note = "write `impl tr_core::Classify<{Res}> for {Self}` beside your response type, or give the layer a policy of your own with `.policy(MyPolicy)`"
)]
pub trait Classify<Res> {
    /// Judges an end. Called once by each layer that needs to know; it must not panic.
    ///
    /// By default every response is a success, and an error is what [`classify::error`] makes of
    /// it. A response that can be a failure needs an answer of its own: retry and breaker would
    /// not see it.
    fn classify<'r>(&self, end: End<'r, Res>) -> Classification<'r> {
        end.map_or_else(|error| classify::error(error).end, |_| Classification::SUCCESS)
    }

    /// Tells the response how often it was retried.
    fn note_retries(&self, _: &mut Res, _: Vec<Retried>) {}

    /// Notes on a failing response what is known of all attempts together: whether the tool ran, and
    /// whether it has been retried, so that outer layers do not retry it again.
    fn note_attempts(&self, _: &mut Res, _ran: Ran, _exhausted: bool) {}
}
