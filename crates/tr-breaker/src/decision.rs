//! Calls that are no matter of course.
use crate::{
    clock,
    error::CircuitOpen,
    future::BreakerFuture,
    gate::{Admission, Gate},
    permit::Permit,
    registry::{Breakers, Found, Seed},
    settings::{Mode, Row},
    state::Refusal,
    table::Place,
};
use std::sync::Arc;
use tower_service::Service;
use tr_core::{BoxError, Event, KeyOf, KeyRef, Progress, manifest::BreakerOverride};

/// A call of which a word does not say that it passes: its breaker is new, or not closed, or one
/// of those that come and go, or looks at the clock.
pub(crate) struct Decision<'b, A> {
    pub(crate) policy: &'b A,
    pub(crate) breakers: &'b Breakers,
    pub(crate) row: Row,
}

impl<A> Decision<'_, A> {
    /// Makes the call, or refuses it. `place` is its breaker, if that is known.
    #[inline(never)]
    pub(crate) fn call<S, Req>(
        self,
        place: Option<&Place>,
        req: Req,
        inner: &mut S,
    ) -> BreakerFuture<S::Future, A>
    where
        S: Service<Req>,
        A: KeyOf<Req> + Progress<Req> + Clone,
    {
        match self.permit(place, &req) {
            Ok(permit) => BreakerFuture::admitted(inner.call(req), permit, self.policy.clone()),
            Err(error) => BreakerFuture::refused(error),
        }
    }

    #[inline(always)]
    fn permit<Req>(&self, place: Option<&Place>, req: &Req) -> Result<Permit, BoxError>
    where
        A: KeyOf<Req> + Progress<Req>,
    {
        let stamp = self.policy.stamp(req);
        let (found, in_shadow) = match place {
            Some(place) => (Found::First(place), false),
            None => self.find(req),
        };
        let gate = found.gate();
        // First what is most often: an open breaker is asked by many.
        let admission = match gate.refuse(|| stamp.unwrap_or_else(clock::stamp)) {
            Some(refusal) => Admission::Refused(refusal),
            None => gate.admit(self.row, clock::now),
        };
        let ticket = match admission {
            Admission::Counted(ticket) => Some(ticket),
            Admission::Free => None,
            Admission::Refused(refusal) => {
                let refusal = Refusal { shadow: refusal.shadow || in_shadow, ..refusal };
                self.tell(req, gate, refusal);
                if !refusal.shadow {
                    return Err(CircuitOpen::new(gate.clone(), refusal).into());
                }
                None
            }
        };
        if !gate.times_calls() {
            return Ok(Permit::new(found.into_held(), ticket, stamp));
        }
        let began = stamp.unwrap_or_else(clock::stamp);
        let mut permit = Permit::new(found.into_held(), ticket, Some(began));
        // A tool that blocks ends at once, and is slow all the same.
        permit.wait();
        Ok(permit)
    }

    /// The call's breaker, and whether another one lets its refusals pass: the breaker of a tool
    /// says for all that the tool reaches whether they are forced open, disabled or in shadow mode.
    fn find<Req>(&self, req: &Req) -> (Found<'_>, bool)
    where
        A: KeyOf<Req>,
    {
        let key = self.policy.breaker_of(req);
        let own = || self.breakers.find(key, || self.seed_of(req, key));
        if !key.is_target() {
            return (own(), false);
        }
        let tool = self.policy.key_of(req);
        let tool = self.breakers.find(tool, || self.seed_of(req, tool));
        match tool.gate().orders() {
            (_, true) | (Mode::Disabled, _) => (tool, false),
            (mode, false) => (own(), mode == Mode::Shadow),
        }
    }

    fn tell<Req>(&self, req: &Req, gate: &Arc<Gate>, Refusal { state, shadow, .. }: Refusal)
    where
        A: KeyOf<Req>,
    {
        if gate.hub().listens() {
            let event = Event::BreakerRefused { breaker: gate.name(), state, shadow };
            gate.hub().tell(&self.policy.info_of(req), &event);
        }
    }

    fn seed_of<'r, Req>(&self, req: &'r Req, key: KeyRef<'r>) -> Seed<'r>
    where
        A: KeyOf<Req>,
    {
        // One tool's manifest does not speak for the others that share a breaker.
        if key.is_target() || key == self.policy.key_of(req) {
            let change = self.policy.breaker_override(req);
            Seed { label: self.policy.info_of(req).tool, change }
        } else {
            Seed { label: key.name, change: BreakerOverride::default() }
        }
    }
}
