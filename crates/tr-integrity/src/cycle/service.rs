//! The service.
use super::{
    future::{IntegrityFuture, Intent},
    layer::IntegrityLayer,
    open::OpenCycle,
};
use crate::session::ToolUse;
use std::{
    borrow::Cow,
    mem,
    task::{Context, Poll, ready},
};
use tower_layer::Layer;
use tower_service::Service;
use tr_core::{
    Answer, BoxError, DefaultPolicy, NotSent, Ran, ResponsePolicy, TranscriptPolicy, classify,
};

/// Records each tool cycle in its session: the intent before the tool starts, the use and its
/// result together at its end.
///
/// A call without a session or without a tool call id passes through unchanged. Where the sessions
/// have a store, intent and end are written there, and a clone of the service calls the tool.
///
/// # Cancellation
/// Dropped before the tool starts, the call leaves no record; dropped later, recovery settles its
/// intent as "outcome unknown, may have run". In both cases a use that the agent has put into the
/// transcript is answered at once. Dropped while the store is writing the answer, the call is
/// recorded, at once or with the session's next change.
///
/// # Readiness
/// With sessions, a service that fails to become ready is called all the same: the call fails with
/// that error, wrapped in [`NotSent`] unless the error itself says that nothing ran, and a use that
/// the agent has pushed is answered like that of a refused call.
#[derive(Debug)]
pub struct Integrity<S, A = DefaultPolicy> {
    inner: S,
    layer: IntegrityLayer<A>,
    /// Why the inner service did not become ready, for the next call.
    unready: Option<BoxError>,
}

/// A clone is polled for readiness on its own.
impl<S: Clone, A: Clone> Clone for Integrity<S, A> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), self.layer.clone())
    }
}

impl<S, A> Integrity<S, A> {
    pub(super) const fn new(inner: S, layer: IntegrityLayer<A>) -> Self {
        Self { inner, layer, unready: None }
    }
}

impl<S, A: Clone> Layer<S> for IntegrityLayer<A> {
    type Service = Integrity<S, A>;

    fn layer(&self, inner: S) -> Self::Service {
        Integrity::new(inner, self.clone())
    }
}

impl<S, Req, A> Service<Req> for Integrity<S, A>
where
    S: Service<Req, Error: Into<BoxError>> + Clone,
    A: TranscriptPolicy<Req, S::Response> + ResponsePolicy<S::Response> + Clone,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = IntegrityFuture<S, S::Future, Req, S::Response, A>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        let Err(error) = ready!(self.inner.poll_ready(cx)) else {
            self.unready = None;
            return Poll::Ready(Ok(()));
        };
        if self.layer.sessions.is_none() {
            return Poll::Ready(Err(error.into()));
        }
        // The error waits for the call, which says which use it answers.
        self.unready = Some(error.into());
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, req: Req) -> Self::Future {
        if let Some(error) = self.unready.take() {
            return self.refuse(&req, error);
        }
        if self.layer.sessions.is_some() {
            return self.call_recorded(req);
        }
        IntegrityFuture::here(self.inner.call(req), None, self.layer.policy.clone())
    }
}

impl<S, A> Integrity<S, A> {
    /// Does not call the tool: its service did not become ready.
    #[cold]
    fn refuse<Req>(
        &self,
        req: &Req,
        error: BoxError,
    ) -> IntegrityFuture<S, S::Future, Req, S::Response, A>
    where
        S: Service<Req>,
        A: TranscriptPolicy<Req, S::Response> + ResponsePolicy<S::Response> + Clone,
    {
        let policy = &self.layer.policy;
        let says_no = classify::error(&*error).end.ran == Ran::No;
        let error = if says_no { error } else { NotSent::new(error).into() };
        let said = policy.answer(Err(&*error));
        let content = Cow::Owned(said.content.into_owned());
        let answer = Answer { content, is_error: true, ran: Ran::No };
        // At once, or once the intent is written.
        let record = match self.begin(req) {
            Some(Begun::Durable(intent)) => Some(OpenCycle::refuse_once_written(intent, answer)),
            Some(Begun::Here(mut cycle)) => {
                cycle.end(&answer, true);
                None
            }
            None => None,
        };
        IntegrityFuture::refused(record, error, policy.clone())
    }

    #[inline(never)]
    fn call_recorded<Req>(&mut self, req: Req) -> IntegrityFuture<S, S::Future, Req, S::Response, A>
    where
        S: Service<Req> + Clone,
        A: TranscriptPolicy<Req, S::Response> + Clone,
    {
        let (begun, policy) = (self.begin(&req), self.layer.policy.clone());
        let cycle = match begun {
            Some(Begun::Durable(intent)) => {
                // Calls the service that is ready and keeps its clone.
                let stays = self.inner.clone();
                let ready = (mem::replace(&mut self.inner, stays), req);
                return IntegrityFuture::durable(intent, ready, policy);
            }
            Some(Begun::Here(cycle)) => Some(Box::new(cycle)),
            None => None,
        };
        // If the tool panics here, the cycle is dropped, and recovery settles it.
        IntegrityFuture::here(self.inner.call(req), cycle, policy)
    }

    /// Begins the cycle of a call, if it is recorded.
    fn begin<Req>(&self, req: &Req) -> Option<Begun>
    where
        S: Service<Req>,
        A: TranscriptPolicy<Req, S::Response>,
    {
        let IntegrityLayer { sessions, observer, when_store_fails, policy } = &self.layer;
        let sessions = sessions.as_ref().filter(|sessions| sessions.config().enabled)?;
        let cycle = policy.cycle(req)?;
        if !sessions.is_durable() {
            return Some(Begun::Here(OpenCycle::begin(sessions, &cycle, observer.as_ref())));
        }
        Some(Begun::Durable(OpenCycle::begin_durably(
            sessions.clone(),
            cycle.session.into(),
            ToolUse::of(&cycle),
            *when_store_fails,
            observer.clone(),
        )))
    }
}

/// The cycle of a call, whose intent is in the session, or is being written to its store.
enum Begun {
    Here(OpenCycle),
    Durable(Intent),
}
