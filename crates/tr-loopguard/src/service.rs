//! The service.
use crate::{
    call::Decision,
    future::LoopGuardFuture,
    watch::{Shared, Watch},
};
use std::task::{Context, Poll};
use tower_service::Service;
use tr_core::{
    BoxError, DefaultPolicy, LoopPolicy,
    internal::{Called, Shard},
};

/// Counts the failures of each turn and refuses calls that continue a loop.
#[derive(Clone, Debug)]
pub struct LoopGuard<S, A = DefaultPolicy> {
    inner: S,
    shared: Option<Shard<Shared>>,
    policy: A,
}

impl<S, A> LoopGuard<S, A> {
    pub(crate) const fn new(inner: S, shared: Option<Shard<Shared>>, policy: A) -> Self {
        Self { inner, shared, policy }
    }
}

impl<S, A, Req> Service<Req> for LoopGuard<S, A>
where
    S: Service<Req, Error: Into<BoxError>>,
    A: LoopPolicy<Req, S::Response> + Clone,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = LoopGuardFuture<S::Future, A, Req, S::Response>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, req: Req) -> Self::Future {
        let Some(shared) = &mut self.shared else {
            return LoopGuardFuture { inner: Called::new(self.inner.call(req)), watch: None };
        };
        let subject = self.policy.subject(&req);
        let watch = Watch { shared: shared.acquire(), policy: self.policy.clone(), subject };
        let (inner, watch) = match watch.admit() {
            Decision::Continue => (Called::new(self.inner.call(req)), Some(watch)),
            refused => (Called::not(watch.refusal(refused)), None),
        };
        LoopGuardFuture { inner, watch }
    }
}
