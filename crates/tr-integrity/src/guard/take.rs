//! How the guard takes an answer: judges a whole one, watches a streamed one.
use super::{
    model::{BodyOf, ModelEndOf},
    tail::{BodyWatch, of_chain},
    watch::{Guarded, Settled, filtered},
};
use crate::store::StoreFuture;
use std::fmt;
use tr_core::BoxError;
use tr_transcript::{AnswerScanner, ModelEnd};

/// The model's answers arrive as a whole: [`ModelEndOf`] judges them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Whole;

/// The model's answers are streamed: [`BodyOf`] gives their body, and the guard watches its pieces.
#[derive(Clone, Copy, Debug, Default)]
pub struct Streamed;

/// How a guard takes answers: [`Whole`] or [`Streamed`].
pub trait Take<A, Res>: sealed::Sealed {
    /// The response type of the guard.
    type Taken;

    #[doc(hidden)]
    fn take(policy: &A, answer: Result<Res, BoxError>, call: Guarded) -> Outcome<Self::Taken>;
}

/// The response for the caller, and the change that is written to the store before it is returned.
pub struct Outcome<T> {
    pub(super) end: Result<T, BoxError>,
    pub(super) record: Option<StoreFuture<'static, ()>>,
}

impl<T> fmt::Debug for Outcome<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcome").field("is_ok", &self.end.is_ok()).finish_non_exhaustive()
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Whole {}
    impl Sealed for super::Streamed {}
}

impl<T> From<Result<T, BoxError>> for Outcome<T> {
    fn from(end: Result<T, BoxError>) -> Self {
        Self { end, record: None }
    }
}

impl<A: ModelEndOf<Res>, Res> Take<A, Res> for Whole {
    type Taken = Res;

    fn take(policy: &A, answer: Result<Res, BoxError>, call: Guarded) -> Outcome<Res> {
        if !call.is_on() {
            return answer.into();
        }
        let end = match &answer {
            Ok(response) => policy.model_end_of(Ok(response)),
            Err(error) => policy.model_end_of(Err(&**error)),
        };
        let Settled { recovery, record } = call.settle(end);
        let is_filtered = end == ModelEnd::Filtered;
        let end = if is_filtered { Err(filtered(recovery, answer.err())) } else { answer };
        Outcome { end, record }
    }
}

impl<A: BodyOf<Res>, Res> Take<A, Res> for Streamed {
    type Taken = A::Watched;

    fn take(policy: &A, answer: Result<Res, BoxError>, call: Guarded) -> Outcome<A::Watched> {
        let error = match answer {
            Ok(response) => {
                let scanner = AnswerScanner::of_head(policy.head_of(&response));
                return Ok(policy.watched(response, BodyWatch::new(scanner, call))).into();
            }
            Err(error) => error,
        };
        if !call.is_on() {
            return Err(error).into();
        }
        let end = of_chain(&*error);
        let Settled { recovery, record } = call.settle(end);
        let is_filtered = end == ModelEnd::Filtered;
        let error = if is_filtered { filtered(recovery, Some(error)) } else { error };
        Outcome { end: Err(error), record }
    }
}
