//! What calls read before they take a circuit's lock.
//!
//! The lock alone is right, and plain. But with a turn of it at both ends of a call, a success takes about
//! 0.35 of tower-resilience's time (row P1 of `lab/NOTEBOOK.md`), where the goal is 0.25, and a rejection
//! misses row P3. So three decisions that most calls need read a word instead. The words are written
//! under the lock, at the end of each change, and each decision reads one of them once. So it is the
//! circuit's own decision, made at the moment of that read, and no order of two reads can make it wrong:
//!
//! - **A call passes**: it gets the generation that it read. Where the circuit has gone on since, the
//!   end of the call is ignored, as that of any call of an earlier generation.
//! - **A call is refused** until a time, which is all that the answer needs. A time that is farther
//!   away than any cooldown means that the clock went back: the circuit decides.
//! - **A success changes nothing** up to a time: the window holds nothing but successes, as many as any
//!   rule looks at, and this one is counted as just as old.
use crate::sync::{AtomicU32, AtomicU64, Relaxed};
use std::time::{Duration, Instant};
use tr_policy::internal::CoarseInstant;

/// What calls read before they take a circuit's lock.
#[derive(Debug)]
pub(crate) struct FastPath {
    /// The generation in which every call passes; 0: ask the circuit.
    passes: AtomicU32,
    /// A time, above a bit that says of what: [`REFUSED`] or [`QUIET`]. 0: ask the circuit.
    until: AtomicU64,
}

/// What a circuit has come to, as far as calls read it without the lock.
#[derive(Debug)]
pub(crate) struct Published {
    /// The generation in which every call passes, while that is so.
    pub(crate) passes: Option<u32>,
    /// Until when every call is refused, while that is so.
    pub(crate) refused_until: Option<Instant>,
    /// Until when a success changes nothing, while that is so.
    pub(crate) quiet_until: Option<Instant>,
}

/// Calls are refused until then.
const REFUSED: u64 = 1;
/// Successes change nothing until then.
const QUIET: u64 = 0;
/// Set in the word of each time after the first that was converted.
const LATER: u64 = 1 << 63;

impl FastPath {
    pub(crate) fn new(published: &Published) -> Self {
        let new = Self { passes: AtomicU32::new(0), until: AtomicU64::new(0) };
        new.publish(published);
        new
    }

    /// Publishes what the circuit has come to, under its lock.
    #[inline]
    pub(crate) fn publish(&self, published: &Published) {
        let passes = published.passes.unwrap_or(0);
        let refused = published.refused_until.map(|until| word(until, REFUSED));
        let until = refused.or_else(|| Some(word(published.quiet_until?, QUIET)));
        // All calls read these: their line stays shared unless they change.
        if self.passes.load(Relaxed) != passes {
            self.passes.store(passes, Relaxed);
        }
        if self.until.load(Relaxed) != until.unwrap_or(0) {
            self.until.store(until.unwrap_or(0), Relaxed);
        }
    }

    /// The generation of a call that passes.
    #[inline]
    pub(crate) fn pass(&self) -> Option<u32> {
        Some(self.passes.load(Relaxed)).filter(|generation| *generation != 0)
    }

    /// For how long a call is refused, where that is no longer than the longest cooldown. `now` may be
    /// somewhat old.
    #[inline]
    pub(crate) fn refuse(
        &self,
        now: impl FnOnce() -> CoarseInstant,
        longest: Duration,
    ) -> Option<Duration> {
        let until = self.until(REFUSED)?;
        let left = until.saturating_sub(now().to_word());
        (left != 0).then(|| Duration::from_nanos(left)).filter(|left| *left <= longest)
    }

    /// Whether a success changes nothing, whatever the time.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        self.until(QUIET).is_some()
    }

    /// Whether a success that ends now changes nothing.
    #[inline]
    pub(crate) fn is_quiet_at(&self, now: CoarseInstant) -> bool {
        self.until(QUIET).is_some_and(|until| now.to_word() < until)
    }

    #[inline]
    fn until(&self, what: u64) -> Option<u64> {
        let word = self.until.load(Relaxed);
        (word != 0 && word & 1 == what).then_some(word >> 1 | LATER)
    }
}

fn word(time: Instant, what: u64) -> u64 {
    match CoarseInstant::at(time).to_word() {
        later if later & LATER != 0 => later << 1 | what,
        _ => 0,
    }
}
