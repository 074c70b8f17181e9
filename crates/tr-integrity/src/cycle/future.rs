//! The future of a recorded call.
use super::{
    error::IntentNotRecorded,
    open::{Ended, OpenCycle},
};
use crate::store::StoreFuture;
use pin_project_lite::pin_project;
use std::{
    borrow::Cow,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tower_service::Service;
use tr_core::{Answer, BoxError, ResponsePolicy, TranscriptPolicy, debug_parts};

pin_project! {
    /// The response of an [`Integrity`](crate::Integrity).
    #[must_use = "futures do nothing unless polled"]
    pub struct IntegrityFuture<S, F, Req, T, A> {
        #[pin]
        state: State<S, Req, F, T>,
        policy: A,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S, Req, F, T> {
        // The store is writing the intent.
        // Boxed together with its service, so that calls that are not recorded do not pay for the size.
        Intent { intended: Box<(Intent, Option<(S, Req)>)> },
        Run {
            // Declared before the cycle, so that the tool is dropped before its cycle is abandoned.
            #[pin]
            inner: F,
            cycle: Option<Box<OpenCycle>>,
            is_durable: bool,
        },
        // The store is writing the use and the result, if it has them.
        Record {
            record: Option<StoreFuture<'static, ()>>,
            end: Option<Result<T, BoxError>>,
        },
    }
}

/// The intent that is being written.
pub(super) type Intent = StoreFuture<'static, Option<OpenCycle>>;

impl<S, F, Req, T, A> IntegrityFuture<S, F, Req, T, A> {
    /// Runs the tool, and records the cycle in memory if there is one.
    #[inline]
    pub(super) const fn here(inner: F, cycle: Option<Box<OpenCycle>>, policy: A) -> Self {
        Self { state: State::Run { inner, cycle, is_durable: false }, policy }
    }

    /// Runs once the intent is recorded.
    pub(super) fn durable(intent: Intent, ready: (S, Req), policy: A) -> Self {
        Self { state: State::Intent { intended: Box::new((intent, Some(ready))) }, policy }
    }

    /// Fails with `error`, once the refusal is recorded.
    pub(super) const fn refused(
        record: Option<StoreFuture<'static, ()>>,
        error: BoxError,
        policy: A,
    ) -> Self {
        Self { state: State::Record { record, end: Some(Err(error)) }, policy }
    }
}

impl<S, F, Req, T, A, E> Future for IntegrityFuture<S, F, Req, T, A>
where
    S: Service<Req, Response = T, Error = E, Future = F>,
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
    A: TranscriptPolicy<Req, T> + ResponsePolicy<T>,
{
    type Output = Result<T, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.state.as_mut().project() {
                StateProj::Run { inner, cycle, is_durable } => {
                    let mut end = ready!(inner.poll(cx)).map_err(Into::into);
                    let Some(mut cycle) = cycle.take() else {
                        if let (true, Ok(response)) = (*is_durable, &mut end) {
                            this.policy.note_unrecorded(response);
                        }
                        return Poll::Ready(end);
                    };
                    let failed = end.is_err();
                    let answer = this.policy.answer(end.as_ref().map_err(|error| &**error as _));
                    if !*is_durable {
                        cycle.end(&answer, failed);
                        drop(answer);
                        return Poll::Ready(end);
                    }
                    let answer = Answer {
                        content: Cow::Owned(answer.content.into_owned()),
                        is_error: answer.is_error,
                        ran: answer.ran,
                    };
                    let record = Some(cycle.record(Ended { answer, failed }));
                    State::Record { record, end: Some(end) }
                }
                StateProj::Intent { intended } => {
                    let intent = ready!(intended.0.as_mut().poll(cx));
                    let ready = intended.1.take();
                    let (mut service, req) = ready.expect("not polled after its end");
                    let cycle = match intent {
                        // If the tool panics from here on, recovery settles the cycle.
                        Ok(cycle) => cycle.map(|cycle| Box::new(cycle.started())),
                        Err(error) => {
                            return Poll::Ready(Err(IntentNotRecorded::new(error).into()));
                        }
                    };
                    State::Run { inner: service.call(req), cycle, is_durable: true }
                }
                StateProj::Record { record, end } => {
                    let recorded = match record {
                        Some(record) => ready!(record.as_mut().poll(cx)),
                        None => Ok(()),
                    };
                    let mut end = end.take().expect("not polled after its end");
                    if let (Err(_), Ok(response)) = (recorded, &mut end) {
                        this.policy.note_unrecorded(response);
                    }
                    return Poll::Ready(end);
                }
            };
            this.state.set(next);
        }
    }
}

debug_parts! {
    IntegrityFuture<S, F, Req, T, A>, |it| is_running = matches!(it.state, State::Run { .. })
}
