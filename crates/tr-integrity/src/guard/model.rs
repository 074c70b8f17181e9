//! What the guard's policy reads from a request to a model, and how the guard takes its answer: it judges
//! a whole one and watches a streamed one.
use super::{
    layer::{Streamed, Whole},
    watch::{BodyWatch, Guarded, Settled, filtered, of_chain},
};
use crate::store::StoreFuture;
use tr_core::{BoxError, DefaultPolicy, End};
use tr_transcript::{AnswerScanner, Head, ModelEnd};

/// Reads the transcript and the session from a request.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot say which transcript a `{Req}` sends",
    label = "no `TranscriptOf<{Req}>` here",
    note = "write `impl tr_integrity::TranscriptOf<{Req}> for {Self}` beside your request type, or give the layer a policy of your own with `.policy(MyPolicy)`"
)]
pub trait TranscriptOf<Req> {
    /// The session; `None` for a request that belongs to none.
    fn session_of<'r>(&self, req: &'r Req) -> Option<&'r str>;

    /// The messages as JSON: an array, or a request's body with `messages`, `input` or `contents`.
    fn transcript_of<'r>(&self, req: &'r Req) -> Option<&'r str>;

    /// Replaces the request's transcript with a repaired one.
    fn set_transcript(&self, req: &mut Req, repaired: String);
}

/// Reads from a response how a call of a model ended.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot say how a `{Res}` of a model ended",
    label = "no `ModelEndOf<{Res}>` here",
    note = "write `impl tr_integrity::ModelEndOf<{Res}> for {Self}` beside your response type, or give the layer a policy of your own with `.policy(MyPolicy)`"
)]
pub trait ModelEndOf<Res> {
    /// Judges how the call ended. [`ModelEnd::of_body`] and [`ModelEnd::of_error`] know the
    /// providers' texts.
    fn model_end_of(&self, end: End<'_, Res>) -> ModelEnd;
}

/// Gives access to the body of a streamed answer.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot say where the body of a `{Res}` is",
    label = "no `BodyOf<{Res}>` here",
    note = "write `impl tr_integrity::BodyOf<{Res}> for {Self}` beside your response type, or give the layer a policy of your own with `.policy(MyPolicy)`"
)]
pub trait BodyOf<Res> {
    /// The response with a watched body: `Res` with a [`WatchedBody`](crate::WatchedBody) in it.
    type Watched;

    /// What the response says before its body. By default, that an answer follows.
    fn head_of(&self, response: &Res) -> Head {
        let _ = response;
        Head::Answer
    }

    /// Wraps the body with [`watch`](BodyWatch::around).
    fn watched(&self, response: Res, watch: BodyWatch) -> Self::Watched;
}

/// A call of a model's API as text: the simplest request that the guard supports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelCall {
    /// The session.
    pub session: Option<Box<str>>,
    /// The request's body.
    pub body: String,
}

impl ModelCall {
    /// Sends `body` in `session`.
    #[must_use]
    pub fn new(session: impl Into<Box<str>>, body: impl Into<String>) -> Self {
        Self { session: Some(session.into()), body: body.into() }
    }
}

impl TranscriptOf<ModelCall> for DefaultPolicy {
    fn session_of<'r>(&self, call: &'r ModelCall) -> Option<&'r str> {
        call.session.as_deref()
    }

    fn transcript_of<'r>(&self, call: &'r ModelCall) -> Option<&'r str> {
        Some(&call.body)
    }

    fn set_transcript(&self, call: &mut ModelCall, repaired: String) {
        call.body = repaired;
    }
}

/// For a body as text.
impl ModelEndOf<String> for DefaultPolicy {
    fn model_end_of(&self, end: End<'_, String>) -> ModelEnd {
        match end {
            Ok(body) => ModelEnd::of_body(body),
            Err(error) => of_chain(error),
        }
    }
}

/// How a guard takes answers: [`Whole`] or [`Streamed`].
pub trait Take<A, Res>: sealed::Sealed {
    /// The response type of the guard.
    type Taken;

    #[doc(hidden)]
    fn take(policy: &A, answer: Result<Res, BoxError>, call: Guarded) -> Outcome<Self::Taken>;
}

/// The response for the caller, and the change that is written to the store before it is returned.
type Outcome<T> = (Result<T, BoxError>, Option<StoreFuture<'static, ()>>);

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Whole {}
    impl Sealed for super::Streamed {}
}

/// Settles the call as its answer says, unless the guard is off.
fn outcome<T>(
    call: Guarded,
    answer: Result<T, BoxError>,
    end: impl FnOnce(End<'_, T>) -> ModelEnd,
) -> Outcome<T> {
    if !call.is_on {
        return (answer, None);
    }
    let end = end(answer.as_ref().map_err(|error| &**error as _));
    let Settled { recovery, record } = call.settle(end);
    let is_filtered = end == ModelEnd::Filtered;
    let end = if is_filtered { Err(filtered(recovery, answer.err())) } else { answer };
    (end, record)
}

impl<A: ModelEndOf<Res>, Res> Take<A, Res> for Whole {
    type Taken = Res;

    fn take(policy: &A, answer: Result<Res, BoxError>, call: Guarded) -> Outcome<Res> {
        outcome(call, answer, |end| policy.model_end_of(end))
    }
}

impl<A: BodyOf<Res>, Res> Take<A, Res> for Streamed {
    type Taken = A::Watched;

    fn take(policy: &A, answer: Result<Res, BoxError>, call: Guarded) -> Outcome<A::Watched> {
        match answer {
            Ok(response) => {
                let scanner = AnswerScanner::of_head(policy.head_of(&response));
                let watched = policy.watched(response, BodyWatch::new(scanner, call));
                (Ok(watched), None)
            }
            Err(error) => {
                let end = of_chain(&*error);
                outcome(call, Err(error), |_| end)
            }
        }
    }
}
