//! The future of a guarded call.
use super::{
    error::{ContentFiltered, SessionCorrupt},
    model::ModelEndOf,
    watch::Watch,
};
use crate::{
    provider::ModelEnd,
    session::{ErrorRecovery, RecoveryAction},
};
use pin_project_lite::pin_project;
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};
use tr_core::BoxError;

pin_project! {
    /// The response of a [`ModelGuard`](crate::ModelGuard).
    #[derive(Debug)]
    pub struct ModelGuardFuture<F, A> {
        #[pin]
        state: State<F>,
        answers: A,
    }
}

pin_project! {
    #[project = StateProj]
    #[derive(Debug)]
    enum State<F> {
        Called { #[pin] inner: F, is_guarded: bool, watch: Option<Watch> },
        Blocked { error: Option<Box<SessionCorrupt>> },
    }
}

impl<F, A> ModelGuardFuture<F, A> {
    pub(super) const fn unguarded(inner: F, answers: A) -> Self {
        Self { state: State::Called { inner, is_guarded: false, watch: None }, answers }
    }

    pub(super) const fn watched(inner: F, watch: Option<Watch>, answers: A) -> Self {
        Self { state: State::Called { inner, is_guarded: true, watch }, answers }
    }

    pub(super) const fn blocked(error: Box<SessionCorrupt>, answers: A) -> Self {
        Self { state: State::Blocked { error: Some(error) }, answers }
    }
}

impl<F, A, T, E> Future for ModelGuardFuture<F, A>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
    A: ModelEndOf<T>,
{
    type Output = Result<T, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let (inner, is_guarded, watch) = match this.state.project() {
            StateProj::Called { inner, is_guarded, watch } => (inner, *is_guarded, watch),
            StateProj::Blocked { error } => {
                return Poll::Ready(Err(error.take().expect("polled after completion")));
            }
        };
        let answer = ready!(inner.poll(cx)).map_err(Into::into);
        if !is_guarded {
            return Poll::Ready(answer);
        }
        let end = match &answer {
            Ok(response) => this.answers.model_end_of(Ok(response)),
            Err(error) => this.answers.model_end_of(Err(&**error)),
        };
        let watch = watch.take();
        let recovery = match (end, watch) {
            (ModelEnd::Answered, Some(watch)) => {
                watch.commit();
                return Poll::Ready(answer);
            }
            (_, Some(watch)) => Some(watch.fail(end)),
            (_, None) => None,
        };
        if end != ModelEnd::Filtered {
            return Poll::Ready(answer);
        }
        let recovery = recovery.unwrap_or_else(ErrorRecovery::without_session);
        Poll::Ready(Err(ContentFiltered::new(recovery, answer.err()).into()))
    }
}

impl ErrorRecovery {
    /// A filter stopped a call that belongs to no session of ours.
    fn without_session() -> Self {
        Self {
            action: RecoveryAction::Escalate,
            message: "Content filter triggered.".into(),
            checkpoint: None,
            details: None,
        }
    }
}
