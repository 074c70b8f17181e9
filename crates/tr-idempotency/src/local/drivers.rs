//! Who runs the calls in flight, so that they can be cancelled.
use super::table::Table;
use crate::{end::State, protocol::Token};
use std::{collections::HashMap, mem, task::Waker};
use tr_core::canonical::Key;

/// Calls that had to wait, by their claims' epochs. A call that never waits is not among them.
#[derive(Debug, Default)]
pub(crate) struct Drivers(HashMap<u64, Driver>);

#[derive(Debug)]
struct Driver {
    at: usize,
    token: Token,
    waker: Option<Waker>,
    cancelled: bool,
}

impl Drivers {
    fn of(&mut self, at: usize, token: Token) -> &mut Driver {
        let new = || Driver { at, token, waker: None, cancelled: false };
        self.0.entry(token.epoch).or_insert_with(new)
    }
}

// Wakers are others' code: they are handed out, to be dropped or woken outside the lock.
impl<V> Table<V> {
    /// Who runs this claim's call waits, and wants to be woken if it is cancelled: whether it is,
    /// and who was to be woken before.
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

    /// Has a call in flight cancelled; gives back who is to be woken. `None` if there is none.
    pub(crate) fn cancel(&mut self, key: &Key) -> Option<Option<Waker>> {
        let at = self.find(key)?;
        let record = &self.slots[at].entry.as_ref()?.record;
        if !matches!(record.state, State::Inflight) {
            return None;
        }
        let token = record.token;
        // Calls that were cancelled before they waited, and ended all the same. Who waits goes
        // with its claim.
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

    /// Whoever runs the call waits no more, or somebody else does.
    pub(crate) fn unattend(&mut self, token: Token) -> Option<Waker> {
        self.drivers.0.get_mut(&token.epoch)?.waker.take()
    }

    /// The call of this claim is over.
    pub(crate) fn dismiss(&mut self, token: Token) -> Option<Waker> {
        self.drivers.0.remove(&token.epoch)?.waker
    }
}
