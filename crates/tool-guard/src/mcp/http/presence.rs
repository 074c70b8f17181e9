//! Whether the client of a request still reads its response.
use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

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
