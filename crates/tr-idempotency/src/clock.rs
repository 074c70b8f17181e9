//! The clocks of records.
use crate::protocol::Millis;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};
use tokio::time::Instant;
pub(crate) use tr_core::internal::millis;
use tr_core::{RequestPolicy, SystemClock, WallClock, internal::CoarseInstant};

/// The clock of this process's tables: milliseconds since it was made.
///
/// Reads the exact time, or the last tick of a janitor while one lives: reading the clock would be
/// half the cost of a replay.
#[derive(Debug)]
pub(crate) struct Clock {
    made: CoarseInstant,
    /// The wall time at `made`; a record's times do not change when the wall clock jumps.
    made_unix_ms: u64,
    /// Shared with each janitor that lives.
    janitors: Arc<()>,
    tick: AtomicU64,
}

impl Clock {
    pub(crate) fn new(wall: &dyn WallClock) -> Self {
        Self {
            made: now(),
            made_unix_ms: wall.unix_ms(),
            janitors: Arc::new(()),
            tick: AtomicU64::new(0),
        }
    }

    /// Milliseconds since the Unix epoch.
    pub(crate) const fn unix_ms(&self, at: Millis) -> u64 {
        self.made_unix_ms.saturating_add(at)
    }

    /// The time: `stamp` if the call carries one, else the tick, else the exact time.
    #[inline]
    pub(crate) fn now(&self, stamp: Option<CoarseInstant>) -> Millis {
        match stamp {
            Some(stamp) => self.since_made(stamp),
            None if self.has_janitor() => self.tick.load(Relaxed),
            None => self.exactly(),
        }
    }

    /// Like [`now`](Self::now); stamps the request if the clock had to be read.
    #[inline]
    pub(crate) fn now_for<Req>(&self, req: &mut Req, answers: &impl RequestPolicy<Req>) -> Millis {
        let stamp = answers.stamp(req);
        if stamp.is_none() && !self.has_janitor() {
            let now = now();
            answers.set_stamp(req, Some(now));
            return self.now(Some(now));
        }
        self.now(stamp)
    }

    pub(crate) fn exactly(&self) -> Millis {
        self.since_made(now())
    }

    #[inline]
    const fn since_made(&self, at: CoarseInstant) -> Millis {
        at.nanos_since(self.made) / 1_000_000
    }

    pub(crate) fn tick(&self) {
        self.tick.fetch_max(self.exactly(), Relaxed);
    }

    /// While what it returns lives, a janitor keeps the tick current.
    pub(crate) fn start_janitor(&self) -> Arc<()> {
        self.tick();
        self.janitors.clone()
    }

    #[inline]
    fn has_janitor(&self) -> bool {
        Arc::strong_count(&self.janitors) > 1
    }
}

/// The clock of a store: the machine's time, read once and then advanced by a monotonic clock, so it
/// does not jump when the machine's clock does.
#[derive(Debug)]
pub(crate) struct SteadyClock {
    made: Instant,
    made_unix_ms: u64,
}

impl SteadyClock {
    pub(crate) fn new() -> Self {
        Self { made: Instant::now(), made_unix_ms: SystemClock.unix_ms() }
    }
}

impl WallClock for SteadyClock {
    fn unix_ms(&self) -> u64 {
        self.made_unix_ms.saturating_add(millis(self.made.elapsed()))
    }
}

#[inline]
fn now() -> CoarseInstant {
    CoarseInstant::at(Instant::now().into_std())
}
