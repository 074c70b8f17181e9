//! The service.
use crate::{future::RetryFuture, shared::Settings};
use std::task::{Context, Poll};
use tower_service::Service;
use tr_policy::{
    BoxError, CloneRequest, DefaultPolicy, RequestPolicy, ResponsePolicy, internal::Shard,
};

/// Tries a call again where that is safe.
#[derive(Clone, Debug)]
pub struct Retry<S, A = DefaultPolicy> {
    pub(crate) inner: S,
    pub(crate) shared: Shard<Settings>,
    pub(crate) policy: A,
}

impl<S, Req, A> Service<Req> for Retry<S, A>
where
    S: Service<Req, Error: Into<BoxError>> + Clone,
    A: RequestPolicy<Req> + ResponsePolicy<S::Response> + CloneRequest<Req> + Clone,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = RetryFuture<S, S::Future, Req, A>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, req: Req) -> Self::Future {
        let spare = self.policy.clone_request(&req);
        // The ready instance is called; its clone is polled to readiness for each retry.
        let (held, clone) = (self.shared.acquire(), self.inner.clone());
        RetryFuture::new(self.inner.call(req), clone, held, self.policy.clone(), spare)
    }
}
