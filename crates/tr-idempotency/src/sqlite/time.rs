//! The two clocks of a file: the machine's, and how long the file has been in use.
//!
//! The machine's clock may jump ahead over a restart: a dead battery, a restored image. What the file counts
//! itself does not: each process adds the time that passes while it has the file open. It counts too little
//! where the last time was not written, and never too much. A record expires when both clocks say so.
use crate::{
    protocol::{Millis, State},
    store::StoredRecord,
};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};
use tr_core::WallClock;

/// The clocks of one process.
#[derive(Debug)]
pub(super) struct Clocks {
    /// Steady while the process lives.
    machine: Arc<dyn WallClock>,
    /// How far that clock is behind the latest time in the file.
    behind: AtomicU64,
    /// What both clocks said when this process opened the file.
    begun: Millis,
    ran: Millis,
}

/// What the clocks say within one transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// The machine's time.
    pub(super) machine: Millis,
    /// The store's time: the machine's, or the latest time in the file and what has passed since.
    pub(super) now: Millis,
    /// How long the file has been in use.
    pub(super) ran: Millis,
}

impl Clocks {
    /// For a file that has been in use for so long.
    pub(super) fn new(machine: Arc<dyn WallClock>, ran: Millis) -> Self {
        Self { begun: machine.unix_ms(), machine, behind: AtomicU64::new(0), ran }
    }

    /// The times, where the file has these.
    pub(super) fn read(&self, latest: Millis, ran: Millis) -> Times {
        let machine = self.machine.unix_ms();
        let behind = latest.saturating_sub(machine);
        let behind = self.behind.fetch_max(behind, Relaxed).max(behind);
        let passed = machine.saturating_sub(self.begun);
        let ran = ran.max(self.ran.saturating_add(passed));
        Times { machine, now: machine.saturating_add(behind), ran }
    }
}

impl Times {
    /// What the other clock says when this record is over.
    pub(super) const fn over_ran(&self, record: &StoredRecord) -> Millis {
        self.ran.saturating_add(record.over_at().saturating_sub(self.now))
    }

    /// Where the record is over by the store's time alone, moves it to a time at which it is not; a lease
    /// that has ended stays so.
    pub(super) fn keep(&self, record: &mut StoredRecord, over_ran: Millis) {
        let left = over_ran.saturating_sub(self.ran);
        if left > 0 && record.over_at() <= self.now {
            let most = match record.state {
                State::Inflight => self.now - record.until,
                _ => Millis::MAX,
            };
            let moved = (self.now.saturating_add(left) - record.over_at()).min(most);
            record.changed_at += moved;
            record.until += moved;
        }
    }
}
