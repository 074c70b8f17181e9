//! The future of a guarded call.
use super::{
    error::{CheckpointNotRecorded, SessionCorrupt},
    take::{Outcome, Take, Whole},
    watch::{Guarded, Watch},
};
use crate::store::StoreFuture;
use pin_project_lite::pin_project;
use std::{
    fmt,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tower_service::Service;
use tr_core::BoxError;

pin_project! {
    /// The response of a [`ModelGuard`](crate::ModelGuard).
    #[must_use = "futures do nothing unless polled"]
    pub struct ModelGuardFuture<S, F, Req, A, Taken, M = Whole> {
        #[pin]
        state: State<S, Req, F, Taken>,
        policy: A,
        take: PhantomData<fn() -> M>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S, Req, F, T> {
        Blocked { error: Option<Box<SessionCorrupt>> },
        // The store is writing the checkpoint.
        Begin {
            begin: StoreFuture<'static, Option<Watch>>,
            ready: Option<(S, Req)>,
        },
        Called { #[pin] inner: F, call: Option<Guarded> },
        // The store is writing the end of the call.
        Record {
            record: StoreFuture<'static, ()>,
            end: Option<Result<T, BoxError>>,
        },
    }
}

impl<S, F, Req, A, Taken, M> ModelGuardFuture<S, F, Req, A, Taken, M> {
    pub(super) const fn called(inner: F, call: Guarded, policy: A) -> Self {
        Self { state: State::Called { inner, call: Some(call) }, policy, take: PhantomData }
    }

    pub(super) const fn blocked(error: Box<SessionCorrupt>, policy: A) -> Self {
        Self { state: State::Blocked { error: Some(error) }, policy, take: PhantomData }
    }

    /// Calls once the checkpoint is recorded.
    pub(super) fn durable(
        begin: StoreFuture<'static, Option<Watch>>,
        ready: (S, Req),
        policy: A,
    ) -> Self {
        Self { state: State::Begin { begin, ready: Some(ready) }, policy, take: PhantomData }
    }
}

impl<S, F, Req, A, Taken, M, T, E> Future for ModelGuardFuture<S, F, Req, A, Taken, M>
where
    S: Service<Req, Response = T, Error = E, Future = F>,
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
    M: Take<A, T, Taken = Taken>,
{
    type Output = Result<Taken, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.state.as_mut().project() {
                StateProj::Called { inner, call } => {
                    let answer = ready!(inner.poll(cx)).map_err(Into::into);
                    let call = call.take().expect("not polled after its end");
                    let Outcome { end, record } = M::take(this.policy, answer, call);
                    let Some(record) = record else { return Poll::Ready(end) };
                    State::Record { record, end: Some(end) }
                }
                StateProj::Begin { begin, ready } => {
                    let begun = ready!(begin.as_mut().poll(cx));
                    let (mut service, req) = ready.take().expect("not polled after its end");
                    let call = match begun {
                        Ok(watch) => Guarded::on(watch),
                        Err(error) => {
                            return Poll::Ready(Err(CheckpointNotRecorded::new(error).into()));
                        }
                    };
                    State::Called { inner: service.call(req), call: Some(call) }
                }
                StateProj::Record { record, end } => {
                    // If the store fails, the end is written with the session's next change.
                    let _ = ready!(record.as_mut().poll(cx));
                    return Poll::Ready(end.take().expect("not polled after its end"));
                }
                StateProj::Blocked { error } => {
                    let error = error.take().expect("not polled after its end");
                    return Poll::Ready(Err(error));
                }
            };
            this.state.set(next);
        }
    }
}

impl<S, F, Req, A, Taken, M> fmt::Debug for ModelGuardFuture<S, F, Req, A, Taken, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Blocked { .. } => "Blocked",
            State::Begin { .. } => "Begin",
            State::Called { .. } => "Called",
            State::Record { .. } => "Record",
        };
        f.debug_struct("ModelGuardFuture").field("state", &state).finish_non_exhaustive()
    }
}
