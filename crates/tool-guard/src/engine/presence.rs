//! Whether the client of a request still reads its response.
use super::{
    equal_calls::{End, Uncut},
    unknowns::Ended,
};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU8, Ordering},
};
use tr_core::internal::lock;

const HERE: u8 = 0;
const AWAY: u8 = 1;
const GONE: u8 = 2;

/// Whether a client still reads the response to its request: what the server says meanwhile is said elsewhere if it
/// does not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Presence(Arc<AtomicU8>);

impl Presence {
    /// It reads.
    pub(crate) fn here(&self) {
        let _ = self.0.compare_exchange(AWAY, HERE, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// It does not read now, and may come back.
    pub(crate) fn away(&self) {
        let _ = self.0.compare_exchange(HERE, AWAY, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// It has left for good.
    pub(crate) fn gone(&self) {
        self.0.store(GONE, Ordering::Relaxed);
    }

    pub(crate) fn is_here(&self) -> bool {
        self.0.load(Ordering::Relaxed) == HERE
    }

    /// Whether it may read, now or later.
    pub(crate) fn may_read(&self) -> bool {
        self.0.load(Ordering::Relaxed) != GONE
    }
}

/// What carries the answer to the client knows of it: whether it is there, and its call if that has no strong id, over
/// which the first that takes it watches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched {
    call: Arc<Mutex<Option<Uncut>>>,
    end: Option<End>,
    /// Whether its client is there.
    pub(crate) presence: Presence,
}

impl Watched {
    pub(crate) fn new(call: Option<Uncut>) -> Self {
        let end = call.as_ref().map(|call| call.end.clone());
        Self { call: Arc::new(Mutex::new(call)), end, presence: Presence::default() }
    }

    pub(crate) fn take(&self) -> Option<Uncut> {
        lock(&self.call).take()
    }

    /// Notes how the call ended.
    pub(crate) fn ended(&self, ended: Ended) {
        if let Some(end) = &self.end {
            *lock(end) = Some(ended);
        }
    }
}
