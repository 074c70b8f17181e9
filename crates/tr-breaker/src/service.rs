//! The service.
use crate::{
    decision::Decision, future::BreakerFuture, permit::Permit, registry::Breakers, settings::Row,
};
use std::task::{Context, Poll};
use tower_service::Service;
use tr_core::{BoxError, Classify, DefaultPolicy, EffectOf, KeyOf, Progress, Sharded};

/// Stops calling a tool that keeps failing. Made by a [`BreakerLayer`](crate::BreakerLayer).
///
/// The breaker of a call is known only in `call`, so calls are refused there, and `poll_ready` only
/// polls the inner service. Do not put it directly around a capacity limit: a refused call leaves the
/// reservation of `poll_ready` with the service, for its next call.
#[derive(Clone, Debug)]
pub struct Breaker<S, A = DefaultPolicy> {
    inner: S,
    policy: A,
    breakers: Sharded<Breakers>,
}

impl<S, A> Breaker<S, A> {
    pub(crate) const fn new(inner: S, policy: A, breakers: Sharded<Breakers>) -> Self {
        Self { inner, policy, breakers }
    }

    /// The inner service.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }
}

impl<S, A, Req> Service<Req> for Breaker<S, A>
where
    S: Service<Req>,
    S::Error: Into<BoxError>,
    A: KeyOf<Req> + EffectOf<Req> + Progress<Req> + Classify<S::Response> + Clone,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BreakerFuture<S::Future, A>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    // As small as can be, so that its caller makes the future in place.
    #[inline(always)]
    fn call(&mut self, req: Req) -> Self::Future {
        let row = match self.policy.is_declared(&req) {
            true => Row::of(self.policy.effect_of(&req)),
            false => Row::Undeclared,
        };
        let place = self.breakers.first(self.policy.breaker_of(&req));
        if let Some(place) = place
            && let Some(ticket) = place.gate().pass(row)
        {
            let permit = Permit::new(place.held(), Some(ticket), self.policy.stamp(&req));
            return BreakerFuture::admitted(self.inner.call(req), permit, self.policy.clone());
        }
        let decision = Decision { policy: &self.policy, breakers: &self.breakers, row };
        decision.call(place, req, &mut self.inner)
    }
}
