//! The service.
use super::{future::IntegrityFuture, layer::IntegrityLayer, open::OpenCycle};
use std::task::{Context, Poll};
use tower_service::Service;
use tr_core::{AnswerOf, BoxError, CycleOf, Standard};

/// Records each tool cycle in its session: the intent before the tool starts, the use and its
/// result together at its end.
///
/// A call that names no session, or no id of the model's, passes through untouched.
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
    S: Service<Req>,
    S::Error: Into<BoxError>,
    A: CycleOf<Req> + AnswerOf<S::Response> + Clone,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = IntegrityFuture<S::Future, A>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, req: Req) -> Self::Future {
        let IntegrityLayer { sessions, observer, answers } = &self.layer;
        let sessions = sessions.as_ref().filter(|sessions| sessions.config().enabled);
        let cycle = sessions.and_then(|sessions| {
            let cycle = answers.cycle_of(&req)?;
            Some(OpenCycle::begin(sessions, &cycle, observer.as_ref()))
        });
        // If the tool panics here, the cycle is dropped, and so left to recovery.
        IntegrityFuture::new(self.inner.call(req), cycle, answers.clone())
    }
}
