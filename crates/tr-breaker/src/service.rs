//! The service.
use crate::{
    clock,
    error::{CircuitOpen, LastFailure},
    future::BreakerFuture,
    gate::{Admission, Gate},
    permit::Permit,
    registry::{Breakers, Seed},
    settings::Row,
    state::Refusal,
};
use std::{
    sync::Arc,
    task::{Context, Poll},
};
use tower_service::Service;
use tr_core::{
    BoxError, Classify, EffectOf, Event, KeyOf, Progress, Standard, Striped,
    manifest::BreakerOverride,
};

/// Stops calling a tool that keeps failing. Made by a [`BreakerLayer`](crate::BreakerLayer).
///
/// Which breaker a call belongs to is known in `call` only, so that is where it is refused, and
/// `poll_ready` is the inner service's own. Do not put it directly on a capacity limit: a refused
/// call leaves what `poll_ready` has reserved with the service, for its next call.
#[derive(Clone, Debug)]
pub struct Breaker<S, A = Standard> {
    inner: S,
    answers: A,
    breakers: Striped<Breakers>,
}

impl<S, A> Breaker<S, A> {
    pub(crate) const fn new(inner: S, answers: A, breakers: Striped<Breakers>) -> Self {
        Self { inner, answers, breakers }
    }

    /// The service inside.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }

    fn seed_of<'r, Req>(&self, req: &'r Req) -> Seed<'r>
    where
        A: KeyOf<Req>,
    {
        let (tool, breaker) = (self.answers.key_of(req), self.answers.breaker_of(req));
        // One tool's manifest does not speak for the others that share a breaker.
        if tool == breaker {
            let change = self.answers.breaker_override(req);
            Seed { label: self.answers.info_of(req).tool, change }
        } else {
            Seed { label: breaker.name, change: BreakerOverride::default() }
        }
    }

    #[cold]
    fn refused<Req>(
        &self,
        req: &Req,
        gate: &Gate,
        refusal: Refusal,
        last_failure: Option<Arc<LastFailure>>,
    ) -> Option<BoxError>
    where
        A: KeyOf<Req>,
    {
        let Refusal { state, shadow, .. } = refusal;
        let (name, hub) = (gate.name(), gate.hub());
        if hub.listens() {
            let event = Event::BreakerRefused { breaker: name, state, shadow };
            hub.tell(&self.answers.info_of(req), &event);
        }
        (!shadow).then(|| CircuitOpen::new(name.clone(), refusal, last_failure).into())
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

    #[inline]
    fn call(&mut self, req: Req) -> Self::Future {
        let stamp = self.answers.stamp(&req);
        let row = match self.answers.is_declared(&req) {
            true => Row::of(self.answers.effect_of(&req)),
            false => Row::Undeclared,
        };
        let key = self.answers.breaker_of(&req);
        let found = self.breakers.find(key, || self.seed_of(&req));
        let gate = found.gate();
        if let Some(ticket) = gate.pass(row) {
            let permit = Some(Permit::new(found.held(), ticket, stamp));
            return BreakerFuture::admitted(self.inner.call(req), permit, self.answers.clone());
        }
        let permit = match gate.admit(row, stamp, clock::now) {
            Admission::Counted(ticket) => Some(Permit::new(found.held(), ticket, stamp)),
            Admission::Free => None,
            Admission::Refused(refusal, last) => match self.refused(&req, gate, refusal, last) {
                Some(error) => return BreakerFuture::refused(error),
                None => None,
            },
        };
        BreakerFuture::admitted(self.inner.call(req), permit, self.answers.clone())
    }
}
