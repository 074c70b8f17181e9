//! The service.
use crate::{
    circuit::Refusal,
    clock,
    error::CircuitOpen,
    future::{BreakerFuture, Permit, settle},
    keyed::KeyedCircuit,
    registry::{Breakers, Seed},
    settings::Mode,
};
use std::{
    mem,
    sync::Arc,
    task::{Context, Poll},
};
use tower_service::Service;
use tr_policy::{
    BoxError, BreakerOverride, BreakerState, DefaultPolicy, Effect, Event, KeyRef, RequestPolicy,
    ResponsePolicy, internal::Shard,
};

/// Stops calling a tool that keeps failing. Made by a [`BreakerLayer`](crate::BreakerLayer).
///
/// Calls are refused in `call`, since the breaker depends on the request. Do not put it directly around a
/// capacity limit: a refused call leaves the reservation of `poll_ready` with the service, for its next call.
///
/// Where all requests have one key ([`RequestPolicy::single_key`], as with
/// [`NamedPolicy`](tr_policy::NamedPolicy)), an open breaker is ready although the inner service is not, and refuses the
/// next call; and an error of the inner service's `poll_ready` counts as that of a call. With keys that
/// depend on the request, the wait for readiness comes before the refusal, and errors of readiness are
/// counted for no key.
#[derive(Debug)]
pub struct Breaker<S, A = DefaultPolicy> {
    inner: S,
    policy: A,
    breakers: Shard<Breakers>,
    /// `poll_ready` was ready to refuse: the inner service was not asked.
    refuses: bool,
}

impl<S: Clone, A: Clone> Clone for Breaker<S, A> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), self.policy.clone(), self.breakers.clone())
    }
}

impl<S, A> Breaker<S, A> {
    pub(crate) const fn new(inner: S, policy: A, breakers: Shard<Breakers>) -> Self {
        Self { inner, policy, breakers, refuses: false }
    }
}

impl<S, A, Req> Service<Req> for Breaker<S, A>
where
    S: Service<Req, Error: Into<BoxError>>,
    A: RequestPolicy<Req> + ResponsePolicy<S::Response> + Clone,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BreakerFuture<S::Future, A>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if let Some(key) = RequestPolicy::<Req>::single_key(&self.policy) {
            self.refuses = self.breakers.get_or_make(key).refuses().is_some();
            if self.refuses {
                return Poll::Ready(Ok(()));
            }
        }
        self.inner.poll_ready(cx).map_err(|error| {
            let error = error.into();
            self.count_unready::<Req, S::Response>(&error);
            error
        })
    }

    // As small as can be, so that its caller makes the future in place.
    #[inline(always)]
    fn call(&mut self, req: Req) -> Self::Future {
        if mem::take(&mut self.refuses) {
            return BreakerFuture::refused(self.refuse(&req));
        }
        let is_declared = self.policy.is_effect_declared(&req);
        let effect = is_declared.then(|| self.policy.effect(&req));
        let known = self.breakers.first(self.policy.breaker_key(&req)).cloned();
        match known {
            Some(circuit) => match circuit.pass(effect) {
                Some(ticket) => {
                    let permit = Permit::new(circuit, Some(ticket), self.policy.stamp(&req));
                    BreakerFuture::admitted(self.inner.call(req), permit, self.policy.clone())
                }
                None => self.decide(effect, Some(circuit), req),
            },
            None => self.decide(effect, None, req),
        }
    }
}

impl<S, A> Breaker<S, A> {
    /// The refusal that `poll_ready` was ready for. The inner service is not ready, so it stands also if the
    /// cooldown has ended since.
    #[cold]
    fn refuse<Req>(&self, req: &Req) -> BoxError
    where
        A: RequestPolicy<Req>,
    {
        let (circuit, _) = self.find(req);
        let ended = Refusal { state: BreakerState::HalfOpen, left: None, shadow: false };
        let refusal = circuit.refuses().unwrap_or(ended);
        if circuit.observers.is_enabled() {
            self.notify(req, &circuit, refusal);
        }
        CircuitOpen::new(circuit, refusal).into()
    }

    /// Counts an error of the inner service's readiness, if it is clear for which key.
    #[cold]
    fn count_unready<Req, Res>(&self, error: &BoxError)
    where
        A: RequestPolicy<Req> + ResponsePolicy<Res>,
    {
        let Some(key) = RequestPolicy::<Req>::single_key(&self.policy) else { return };
        let circuit = self.breakers.get_or_make(key);
        if let Ok(ticket) = circuit.admit(None, None, clock::now) {
            let mut permit = Permit::new(circuit, ticket, None);
            let judged = ResponsePolicy::<Res>::classify(&self.policy, Err(&**error));
            settle(&mut permit, judged, Some(error));
        }
    }

    /// Makes or refuses a call of which a look at its circuit does not say that it passes.
    #[inline(never)]
    fn decide<Req>(
        &mut self,
        effect: Option<Effect>,
        known: Option<Arc<KeyedCircuit>>,
        req: Req,
    ) -> BreakerFuture<S::Future, A>
    where
        S: Service<Req>,
        A: RequestPolicy<Req> + Clone,
    {
        match self.admit(effect, known, &req) {
            Ok(permit) => {
                BreakerFuture::admitted(self.inner.call(req), permit, self.policy.clone())
            }
            Err(error) => BreakerFuture::refused(error),
        }
    }

    #[inline(always)]
    fn admit<Req>(
        &self,
        effect: Option<Effect>,
        known: Option<Arc<KeyedCircuit>>,
        req: &Req,
    ) -> Result<Permit, BoxError>
    where
        A: RequestPolicy<Req>,
    {
        let (circuit, in_shadow) = match known {
            Some(known) => (known, false),
            None => self.find(req),
        };
        let began = self.policy.stamp(req);
        let ticket = match circuit.admit(effect, began, clock::now) {
            Ok(ticket) => ticket,
            Err(refusal) => {
                let shadow = refusal.shadow || in_shadow;
                let refusal = Refusal { shadow, ..refusal };
                if circuit.observers.is_enabled() {
                    self.notify(req, &circuit, refusal);
                }
                if !shadow {
                    return Err(CircuitOpen::new(circuit, refusal).into());
                }
                None
            }
        };
        Ok(Permit::new(circuit, ticket, began))
    }

    /// The call's breaker, and whether another one lets its refusals pass: the breaker of a tool
    /// says for all that the tool reaches whether they are forced open, disabled or in shadow mode.
    #[inline(never)]
    fn find<Req>(&self, req: &Req) -> (Arc<KeyedCircuit>, bool)
    where
        A: RequestPolicy<Req>,
    {
        let key = self.policy.breaker_key(req);
        if !key.is_target() {
            return (self.find_own(key, req), false);
        }
        let tool = self.find_own(self.policy.key(req), req);
        match tool.orders() {
            (_, true) | (Mode::Disabled, _) => (tool, false),
            (mode, false) => (self.find_own(key, req), mode == Mode::Shadow),
        }
    }

    fn find_own<Req>(&self, key: KeyRef<'_>, req: &Req) -> Arc<KeyedCircuit>
    where
        A: RequestPolicy<Req>,
    {
        let found = self.breakers.find(key, || {
            // One tool's manifest does not speak for the others that share a breaker.
            if key.is_target() || key == self.policy.key(req) {
                let change = self.policy.breaker_override(req);
                Seed { label: self.policy.info(req).tool, change }
            } else {
                Seed { label: key.name, change: BreakerOverride::default() }
            }
        });
        if Arc::ptr_eq(&found, &self.breakers.overflow) && found.observers.is_enabled() {
            found.observers.notify(&self.policy.info(req), &Event::BreakerUncounted);
        }
        found
    }

    #[cold]
    fn notify<Req>(&self, req: &Req, circuit: &KeyedCircuit, refusal: Refusal)
    where
        A: RequestPolicy<Req>,
    {
        let Refusal { state, shadow, .. } = refusal;
        let event = Event::BreakerRefused { breaker: circuit.name(), state, shadow };
        circuit.observers.notify(&self.policy.info(req), &event);
    }
}
