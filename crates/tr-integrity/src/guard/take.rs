//! What the guard does with an answer: judge a whole one, watch a streamed one.
use super::{
    error::ContentFiltered,
    model::{BodyOf, ModelEndOf, of_chain},
    tail::BodyWatch,
    watch::Watch,
};
use crate::{
    provider::{AnswerScanner, ModelEnd},
    session::{ErrorRecovery, RecoveryAction},
};
use tr_core::BoxError;

/// The model's answers are whole when they come: they are judged by [`ModelEndOf`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Whole;

/// The model's answers come in pieces: [`BodyOf`] says where, and they are watched on their way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Streamed;

/// How a guard takes answers: [`Whole`] or [`Streamed`].
pub trait Take<A, Res>: sealed::Sealed {
    /// What the caller gets.
    type Taken;

    #[doc(hidden)]
    fn take(
        answers: &A,
        answer: Result<Res, BoxError>,
        call: Guarded,
    ) -> Result<Self::Taken, BoxError>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Whole {}
    impl Sealed for super::Streamed {}
}

/// A call of the model whose answer is taken.
#[derive(Debug)]
pub struct Guarded {
    is_on: bool,
    /// In a session.
    watch: Option<Watch>,
}

impl Guarded {
    /// The guard is off.
    pub(super) const OFF: Self = Self { is_on: false, watch: None };

    pub(super) const fn on(watch: Option<Watch>) -> Self {
        Self { is_on: true, watch }
    }

    pub(super) const fn is_on(&self) -> bool {
        self.is_on
    }

    /// The call has come to its end; what was done about a bad one.
    pub(super) fn settle(self, end: ModelEnd) -> Option<ErrorRecovery> {
        let watch = self.watch?;
        if end != ModelEnd::Answered {
            return Some(watch.fail(end));
        }
        watch.commit();
        None
    }
}

impl<A: ModelEndOf<Res>, Res> Take<A, Res> for Whole {
    type Taken = Res;

    fn take(answers: &A, answer: Result<Res, BoxError>, call: Guarded) -> Result<Res, BoxError> {
        if !call.is_on {
            return answer;
        }
        let end = match &answer {
            Ok(response) => answers.model_end_of(Ok(response)),
            Err(error) => answers.model_end_of(Err(&**error)),
        };
        let recovery = call.settle(end);
        if end == ModelEnd::Filtered {
            return Err(filtered(recovery, answer.err()));
        }
        answer
    }
}

impl<A: BodyOf<Res>, Res> Take<A, Res> for Streamed {
    type Taken = A::Watched;

    fn take(
        answers: &A,
        answer: Result<Res, BoxError>,
        call: Guarded,
    ) -> Result<A::Watched, BoxError> {
        let response = match answer {
            Ok(response) => response,
            Err(error) if !call.is_on => return Err(error),
            Err(error) => {
                let end = of_chain(&*error);
                let recovery = call.settle(end);
                let is_filtered = end == ModelEnd::Filtered;
                return Err(if is_filtered { filtered(recovery, Some(error)) } else { error });
            }
        };
        let scanner = AnswerScanner::of_head(answers.head_of(&response));
        Ok(answers.watched(response, BodyWatch::new(scanner, call)))
    }
}

pub(super) fn filtered(recovery: Option<ErrorRecovery>, cause: Option<BoxError>) -> BoxError {
    // A filter stopped a call that belongs to no session of ours.
    let recovery = recovery.unwrap_or_else(|| ErrorRecovery {
        action: RecoveryAction::Escalate,
        message: "Content filter triggered.".into(),
        checkpoint: None,
        details: None,
    });
    ContentFiltered::new(recovery, cause).into()
}
