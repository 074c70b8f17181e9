//! The wakers of calls in flight, so that they can be cancelled.
use super::table::Table;
use crate::{end::State, protocol::Token};
use std::{mem, task::Waker};
use tr_core::canonical::Key;

// Wakers are foreign code: they are returned, to be dropped or woken outside the lock.
impl<V, N> Table<V, N> {
    /// Registers the waker of this claim's run. Returns whether the call is cancelled, and the
    /// former waker.
    pub(crate) fn attend(
        &mut self,
        at: usize,
        token: Token,
        waker: &Waker,
    ) -> (bool, Option<Waker>) {
        if self.held(at, token).is_none() {
            return (false, None);
        }
        let driver = self.drivers.of(at, token);
        let is_known = driver.waker.as_ref().is_some_and(|known| known.will_wake(waker));
        let before = if is_known { None } else { driver.waker.replace(waker.clone()) };
        (driver.cancelled, before)
    }

    /// Cancels a call in flight and returns the waker of its run. `None` if there is no such call.
    pub(crate) fn cancel(&mut self, key: &Key) -> Option<Option<Waker>> {
        let at = self.find(key)?;
        let record = &self.slots[at].entry.as_ref()?.record;
        if !matches!(record.state, State::Inflight) {
            return None;
        }
        let token = record.token;
        // Removes entries of calls that were cancelled before they waited, and ended without
        // noticing. The entry of a run that waits is removed with its claim.
        let mut drivers = mem::take(&mut self.drivers);
        drivers.0.retain(|_, driver| {
            driver.waker.is_some() || self.held(driver.at, driver.token).is_some()
        });
        let driver = drivers.of(at, token);
        driver.cancelled = true;
        let waker = driver.waker.take();
        self.drivers = drivers;
        Some(waker)
    }

    /// Takes the waker of a run that no longer waits, or that moves to another task.
    pub(crate) fn unattend(&mut self, token: Token) -> Option<Waker> {
        self.drivers.0.get_mut(&token.epoch)?.waker.take()
    }

    /// Removes the entry of a call that has ended.
    pub(crate) fn dismiss(&mut self, token: Token) -> Option<Waker> {
        self.drivers.0.remove(&token.epoch)?.waker
    }
}
