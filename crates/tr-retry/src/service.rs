//! The service.
use crate::{future::RetryFuture, layer::Shared, run::Run, terms::Terms};
use std::task::{Context, Poll};
use tower_service::Service;
use tr_core::{BoxError, Classify, EffectOf, KeyOf, Progress, Repeat, Standard, Striped};

/// Tries a call again where that is safe.
#[derive(Clone, Debug)]
pub struct Retry<S, A = Standard> {
    inner: S,
    terms: Terms,
    shared: Option<Striped<Shared>>,
    answers: A,
}

impl<S, A> Retry<S, A> {
    pub(crate) const fn new(
        inner: S,
        terms: Terms,
        shared: Option<Striped<Shared>>,
        answers: A,
    ) -> Self {
        Self { inner, terms, shared, answers }
    }
}

impl<S, Req, A> Service<Req> for Retry<S, A>
where
    S: Service<Req> + Clone,
    S::Error: Into<BoxError>,
    A: Classify<S::Response> + EffectOf<Req> + KeyOf<Req> + Progress<Req> + Repeat<Req> + Clone,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = RetryFuture<S, Req, A>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, req: Req) -> Self::Future {
        if let Some(shared) = &mut self.shared {
            shared.settle();
        }
        let spare = self.answers.repeat(&req);
        let run = Run::new(spare, self.terms, self.shared.clone(), self.answers.clone());
        // The one that is ready is called and stays; its clone earns readiness for each retry.
        let clone = self.inner.clone();
        RetryFuture::new(self.inner.call(req), clone, run)
    }
}
