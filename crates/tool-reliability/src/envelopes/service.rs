//! The tower service: reads a request, calls the inner service, writes the answer.
use super::{
    answer::Answer,
    call::{EnvelopeRequest, Prepared},
    future::EnvelopesFuture,
    running::Canceller,
    shared::Shared,
};
use crate::measured::Measured;
use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::time::Instant;
use tower_service::Service;
use tr_core::{BoxError, ToolCall, ToolOutcome};
use tr_wire::Arrival;

/// Reads requests, calls the inner service (usually [`ToolStack::service`](crate::ToolStack::service)),
/// and writes the answer to every end: a result, an error, a cancellation.
///
/// Clones share the calls that can be cancelled. See the [module](super).
#[derive(Clone, Debug)]
pub struct Envelopes<S> {
    inner: Measured<S>,
    shared: Arc<Shared>,
}

impl<S> Envelopes<S> {
    /// Wraps `inner`, with the default settings.
    #[must_use]
    pub fn new(inner: S) -> Self {
        Self::of(inner, Arc::default())
    }

    pub(super) const fn of(inner: S, shared: Arc<Shared>) -> Self {
        Self { inner: Measured::new(inner), shared }
    }

    /// Cancels running calls by their ids.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        self.shared.running.clone()
    }
}

impl<S> Service<EnvelopeRequest> for Envelopes<S>
where
    S: Service<ToolCall, Response = ToolOutcome, Error: Into<BoxError>> + Clone,
{
    type Response = Answer;
    type Error = Infallible;
    type Future = EnvelopesFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: EnvelopeRequest) -> Self::Future {
        match self.prepare(request) {
            Ok(Prepared { form, call, token }) => {
                EnvelopesFuture::new(form, self.inner.call(call), token)
            }
            Err(answer) => self.refuse(answer),
        }
    }
}

impl<S> Envelopes<S> {
    /// The call that a request asks for, or the answer to one that is not called.
    pub(super) fn prepare(&self, request: EnvelopeRequest) -> Result<Prepared, Answer> {
        let Shared { tools, most_bytes, running, ids } = &*self.shared;
        let now = Instant::now().into_std();
        let arrival = Arrival { now, unix_ms: ids.clock.unix_ms() };
        let prepared = request.into_call(*most_bytes, arrival, || ids.next())?;
        let Prepared { form, mut call, token } = prepared;
        let parts = call.parts();
        let token = match &parts.cancellation_id {
            None => None,
            // A prepared request comes back from `answers`: it is registered already.
            Some(_) if token.is_some() => token,
            Some(id) => match running.enter(&parts.context, id) {
                Ok(token) => Some(token),
                Err(error) => return Err(Answer::not_called(form, call, error)),
            },
        };
        if let Some(token) = &token {
            call.parts_mut().cancellation = Some(token.clone());
        }
        Ok(Prepared { form, call: tools.manifested(call), token })
    }

    /// The inner service.
    pub(super) const fn inner(&self) -> &S {
        self.inner.get_ref()
    }
}

impl<S: Clone> Envelopes<S> {
    /// Answers without a call. A clone replaces the inner service, which gives its readiness back.
    fn refuse<F>(&mut self, answer: Answer) -> EnvelopesFuture<F> {
        self.inner = self.inner.clone();
        EnvelopesFuture::refused(answer)
    }
}
