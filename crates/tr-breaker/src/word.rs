//! The published state that calls read: one word, and two more while a breaker is open.
use crate::{
    settings::Mode,
    state::{Machine, Refusal},
    sync::{
        AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
};
use std::time::Duration;
use tr_core::{BreakerState, CoarseInstant};

/// The state that calls read, as the machine published it last.
#[derive(Debug)]
pub(crate) struct Words {
    word: AtomicU64,
    /// While it is open: from when until when it refuses. Written before the word that says so.
    since: AtomicU64,
    until: AtomicU64,
}

/// The generation, above flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(u64);

/// Calls pass and are counted.
const CLOSED: u64 = 1;
/// Calls pass and are not counted.
const FREE: u64 = 2;
/// Calls are refused until [`Words::until`].
const OPEN: u64 = 4;
/// They only would be.
const SHADOW: u64 = 8;
/// It matters how long calls take.
const TIMED: u64 = 16;
const GENERATION: u32 = 8;

/// In place of a time: it never ends.
const FOREVER: u64 = u64::MAX;

impl Word {
    #[inline]
    pub(crate) const fn generation(self) -> u32 {
        (self.0 >> GENERATION) as u32
    }

    #[inline]
    pub(crate) const fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    /// Whether calls are admitted and counted, without their duration.
    #[inline]
    pub(crate) const fn is_plain(self) -> bool {
        self.0 & (CLOSED | TIMED) == CLOSED
    }

    pub(crate) const fn is_free(self) -> bool {
        self.0 & FREE != 0
    }

    pub(crate) const fn is_timed(self) -> bool {
        self.0 & TIMED != 0
    }

    fn of(machine: &Machine) -> Self {
        let flags = match machine.mode() {
            Mode::Disabled => FREE,
            Mode::Enforce | Mode::Shadow if machine.lets_all_pass() => CLOSED,
            mode => {
                let open = if machine.refuses().is_some() { OPEN } else { 0 };
                open | if mode == Mode::Shadow { SHADOW } else { 0 }
            }
        };
        let timed = if machine.times_calls() { TIMED } else { 0 };
        Self(u64::from(machine.generation()) << GENERATION | flags | timed)
    }
}

impl Words {
    pub(crate) fn new(machine: &Machine) -> Self {
        let (since, until) = times(machine);
        Self {
            word: AtomicU64::new(Word::of(machine).0),
            since: AtomicU64::new(since),
            until: AtomicU64::new(until),
        }
    }

    #[inline]
    pub(crate) fn word(&self) -> Word {
        Word(self.word.load(Acquire))
    }

    /// Every call reads these: their line stays shared unless there is news.
    pub(crate) fn publish(&self, machine: &Machine) {
        let word = Word::of(machine);
        if word.0 & OPEN != 0 {
            let (since, until) = times(machine);
            self.since.store(since, Relaxed);
            self.until.store(until, Release);
        }
        if self.word.load(Relaxed) != word.0 {
            self.word.store(word.0, Release);
        }
    }

    /// Why a call may not go through, where that takes no decision: it is open, and the time has
    /// not come. Asks for the time only if that matters.
    #[inline]
    pub(crate) fn refusal(&self, now: impl FnOnce() -> CoarseInstant) -> Option<Refusal> {
        let word = self.word().0;
        if word & OPEN == 0 {
            return None;
        }
        let shadow = word & SHADOW != 0;
        // First the end, written last: it never comes with the beginning of an earlier time.
        let until = self.until.load(Acquire);
        if until == FOREVER {
            return Some(Refusal { state: BreakerState::ForcedOpen, left: None, shadow });
        }
        let now = now().to_word();
        // Before that it was not open: the clock went back, or was read earlier.
        let is_open = self.since.load(Relaxed) <= now && now < until;
        let left = Some(Duration::from_nanos(until.wrapping_sub(now)));
        is_open.then_some(Refusal { state: BreakerState::Open, left, shadow })
    }
}

/// From when until when it refuses.
fn times(machine: &Machine) -> (u64, u64) {
    match machine.refuses() {
        Some(Some((since, until))) => {
            (CoarseInstant::at(since).to_word(), CoarseInstant::at(until).to_word())
        }
        Some(None) => (0, FOREVER),
        None => (0, 0),
    }
}
