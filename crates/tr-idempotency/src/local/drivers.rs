//! Who runs the calls in flight, so that they can be cancelled.
use super::table::Table;
use crate::{end::State, protocol::Token};
use std::{collections::HashMap, mem, task::Waker};
use tr_core::canonical::Key;

/// Calls that had to wait, by where their records lie. A call that never waits is not among them.
#[derive(Debug, Default)]
pub(crate) struct Drivers(HashMap<usize, Driver>);

#[derive(Debug)]
struct Driver {
    token: Token,
    waker: Option<Waker>,
    cancelled: bool,
}

impl Drivers {
    fn of(&mut self, at: usize, token: Token) -> &mut Driver {
        let new = || Driver { token, waker: None, cancelled: false };
        let driver = self.0.entry(at).or_insert_with(new);
        if driver.token != token {
            *driver = new();
        }
        driver
    }
}

impl<V> Table<V> {
    /// Who runs this claim's call waits, and wants to be woken if it is cancelled: whether it is.
    pub(crate) fn attend(&mut self, at: usize, token: Token, waker: &Waker) -> bool {
        if self.held(at, token).is_none() {
            return false;
        }
        let driver = self.drivers.of(at, token);
        match &mut driver.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        driver.cancelled
    }

    /// Has a call in flight cancelled; gives back who is to be woken. `None` if there is none.
    pub(crate) fn cancel(&mut self, key: &Key) -> Option<Option<Waker>> {
        let at = self.find(key)?;
        let record = &self.slots[at].entry.as_ref()?.record;
        if !matches!(record.state, State::Inflight) {
            return None;
        }
        let token = record.token;
        // Calls that were cancelled before they waited, and ended all the same.
        let mut drivers = mem::take(&mut self.drivers);
        drivers.0.retain(|&at, driver| self.held(at, driver.token).is_some());
        let driver = drivers.of(at, token);
        driver.cancelled = true;
        let waker = driver.waker.take();
        self.drivers = drivers;
        Some(waker)
    }

    /// Whoever runs the call waits no more, or somebody else does.
    pub(crate) fn unattend(&mut self, at: usize, token: Token) -> Option<Waker> {
        self.drivers.0.get_mut(&at).filter(|driver| driver.token == token)?.waker.take()
    }

    /// The call of this claim is over.
    pub(crate) fn dismiss(&mut self, at: usize, token: Token) -> Option<Waker> {
        let waker = self.unattend(at, token);
        if self.drivers.0.get(&at).is_some_and(|driver| driver.token == token) {
            self.drivers.0.remove(&at);
        }
        waker
    }
}
