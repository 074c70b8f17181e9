//! The state that the instances, futures and handles of one scripted tool share.

use std::{
    collections::BTreeMap,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Waker,
};
use tokio::time::Instant;

/// One attempt, as the tool saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// When `call` was called.
    pub started: Instant,
    /// When it ended, and how; `None` while it is in flight.
    pub ended: Option<(Instant, End)>,
    /// How often its future was polled.
    pub polls: usize,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// With a response.
    Ok,
    /// With an error.
    Err,
    /// With a panic from the script.
    Panicked,
    /// Its future was dropped before it ended.
    Cancelled,
}

/// A rule of `Service` or `Future` that the caller of the tool broke; the tool also panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Breach {
    /// `call` on an instance whose own `poll_ready` had not returned `Ready`.
    CalledUnready,
    /// The response future was polled after it had ended.
    PolledAfterEnd,
    /// More calls than the script has steps, and no `then_repeat_last`.
    ScriptOver,
}

pub(super) struct State<Req> {
    pub(super) born: Instant,
    pub(super) capacity: usize,
    /// Instances that are ready and calls in flight.
    pub(super) seats: usize,
    pub(super) in_flight: usize,
    pub(super) max_in_flight: usize,
    pub(super) calls: usize,
    pub(super) completed: usize,
    pub(super) cancelled: usize,
    pub(super) instances: u64,
    pub(super) waiters: BTreeMap<u64, Waker>,
    pub(super) logged: bool,
    pub(super) attempts: Vec<Attempt>,
    pub(super) requests: Vec<Req>,
    pub(super) breaches: Vec<Breach>,
}

/// Inspects and controls a [`Scripted`](super::Scripted) tool; a clone belongs to the same tool.
pub struct Handle<Req>(Arc<Mutex<State<Req>>>);

impl<Req> Clone for Handle<Req> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<Req> Handle<Req> {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            born: Instant::now(),
            capacity: usize::MAX,
            seats: 0,
            in_flight: 0,
            max_in_flight: 0,
            calls: 0,
            completed: 0,
            cancelled: 0,
            instances: 0,
            waiters: BTreeMap::new(),
            logged: true,
            attempts: Vec::new(),
            requests: Vec::new(),
            breaches: Vec::new(),
        })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State<Req>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn new_instance(&self) -> u64 {
        let mut state = self.lock();
        state.instances += 1;
        state.instances
    }

    /// Takes a seat for `instance`, or registers its waker until one is free.
    pub(super) fn reserve(&self, instance: u64, waker: &Waker) -> Option<Permit<Req>> {
        let mut state = self.lock();
        if state.seats >= state.capacity {
            state.waiters.insert(instance, waker.clone());
            return None;
        }
        state.waiters.remove(&instance);
        state.seats += 1;
        drop(state);
        Some(Permit { tool: self.clone(), in_flight: false, attempt: None })
    }

    /// Wakes outside the lock, since a waker may run any code.
    pub(super) fn wake_waiters(&self) {
        let waiters = mem::take(&mut self.lock().waiters);
        waiters.into_values().for_each(Waker::wake);
    }

    pub(super) fn breach(&self, breach: Breach) {
        self.lock().breaches.push(breach);
    }
}

/// One unit of capacity: reserved by `poll_ready`, used by `call`, released on drop.
pub(super) struct Permit<Req> {
    tool: Handle<Req>,
    in_flight: bool,
    attempt: Option<usize>,
}

impl<Req> Permit<Req> {
    /// The call begins; returns its number, from 0.
    pub(super) fn start(&mut self, request: &Req) -> usize
    where
        Req: Clone,
    {
        let mut state = self.tool.lock();
        let number = state.calls;
        state.calls += 1;
        state.in_flight += 1;
        state.max_in_flight = state.max_in_flight.max(state.in_flight);
        self.in_flight = true;
        if state.logged {
            self.attempt = Some(state.attempts.len());
            state.attempts.push(Attempt { started: Instant::now(), ended: None, polls: 0 });
            state.requests.push(request.clone());
        }
        number
    }

    pub(super) fn polled(&self) {
        if let Some(at) = self.attempt {
            self.tool.lock().attempts[at].polls += 1;
        }
    }

    pub(super) fn end(mut self, end: End) {
        self.close(end);
    }

    fn close(&mut self, end: End) {
        let mut state = self.tool.lock();
        if !mem::take(&mut self.in_flight) {
            return;
        }
        state.in_flight -= 1;
        match end {
            End::Ok | End::Err => state.completed += 1,
            End::Cancelled => state.cancelled += 1,
            End::Panicked => {}
        }
        if let Some(at) = self.attempt {
            state.attempts[at].ended = Some((Instant::now(), end));
        }
    }
}

impl<Req> Drop for Permit<Req> {
    fn drop(&mut self) {
        self.close(End::Cancelled);
        self.tool.lock().seats -= 1;
        self.tool.wake_waiters();
    }
}
