//! The service.
use super::{future::IntegrityFuture, layer::IntegrityLayer, open::OpenCycle};
use crate::session::ToolUse;
use std::{
    mem,
    task::{Context, Poll},
};
use tower_service::Service;
use tr_core::{AnswerOf, BoxError, CycleOf, Standard};

/// Records each tool cycle in its session: the intent before the tool starts, the use and its
/// result together at its end.
///
/// A call that names no session, or no id of the model's, passes through untouched. Where the
/// sessions have a store, intent and end are written there, and the tool is called by a clone.
///
/// # Cancellation
/// Dropped before the tool starts, the call leaves nothing; dropped later, its intent is left to
/// recovery: "outcome unknown, may have run". A use that the agent has put into the transcript is
/// answered there at once in both cases. Dropped while the answer is on its way to the store,
/// it is recorded, at once or with the session's next change.
#[derive(Clone, Debug)]
pub struct Integrity<S, A = Standard> {
    inner: S,
    layer: IntegrityLayer<A>,
}

impl<S, A> Integrity<S, A> {
    pub(super) const fn new(inner: S, layer: IntegrityLayer<A>) -> Self {
        Self { inner, layer }
    }
}

impl<S, Req, A> Service<Req> for Integrity<S, A>
where
    S: Service<Req> + Clone,
    S::Error: Into<BoxError>,
    A: CycleOf<Req> + AnswerOf<S::Response> + Clone,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = IntegrityFuture<S, S::Future, Req, S::Response, A>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, req: Req) -> Self::Future {
        if self.layer.sessions.is_some() {
            return self.call_recorded(req);
        }
        IntegrityFuture::here(self.inner.call(req), None, self.layer.answers.clone())
    }
}

impl<S, A> Integrity<S, A> {
    #[inline(never)]
    fn call_recorded<Req>(&mut self, req: Req) -> IntegrityFuture<S, S::Future, Req, S::Response, A>
    where
        S: Service<Req> + Clone,
        A: CycleOf<Req> + Clone,
    {
        let IntegrityLayer { sessions, observer, when_store_fails, answers } = &self.layer;
        let sessions = sessions.as_ref().filter(|sessions| sessions.config().enabled);
        let cycle = sessions.and_then(|sessions| Some((sessions, answers.cycle_of(&req)?)));
        let cycle = match cycle {
            Some((sessions, cycle)) if sessions.is_durable() => {
                let intent = OpenCycle::begin_durably(
                    sessions.clone(),
                    cycle.session.into(),
                    ToolUse::of(&cycle),
                    *when_store_fails,
                    observer.clone(),
                );
                // The one that is ready goes, its clone stays.
                let stays = self.inner.clone();
                let ready = (mem::replace(&mut self.inner, stays), req);
                return IntegrityFuture::durable(intent, ready, answers.clone());
            }
            Some((sessions, cycle)) => {
                Some(Box::new(OpenCycle::begin(sessions, &cycle, observer.as_ref())))
            }
            None => None,
        };
        // If the tool panics here, the cycle is dropped, and so left to recovery.
        IntegrityFuture::here(self.inner.call(req), cycle, answers.clone())
    }
}
