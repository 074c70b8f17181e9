//! The state machine behind a word that says "closed" without a lock.
use crate::{
    hub::Hub,
    lane::Lane,
    settings::{Mode, Row, Settings},
    state::{Edge, End, Machine, Refusal, Ticket},
    sync::{
        AtomicU64, Mutex, MutexGuard,
        Ordering::{Acquire, Relaxed, Release},
        STRIPES, held,
    },
};
use std::{array, fmt, sync::Arc, time::Instant};
use tr_core::{BreakerState, CallInfo, Event, KeyRef};

/// One breaker.
///
/// While it is closed and far from opening, a call reads one word when it starts and adds one to
/// the lane of its threads when it succeeds. All else goes through the machine, under a lock.
pub(crate) struct Gate {
    name: Arc<str>,
    hash: u64,
    /// What events call the tool.
    label: Box<str>,
    settings: Arc<Settings>,
    hub: Arc<Hub>,
    born: Instant,
    /// The generation, above [`CLOSED`] and [`FREE`].
    word: AtomicU64,
    /// Nanoseconds since birth at which successes have to look at the machine again.
    lap_end: AtomicU64,
    times_calls: bool,
    lanes: [Lane; STRIPES],
    guarded: Mutex<Guarded>,
}

struct Guarded {
    machine: Machine,
    /// What the last failure said.
    last_failure: Option<Arc<str>>,
    /// Some thread is telling the observers.
    is_telling: bool,
}

/// Calls pass and are counted.
const CLOSED: u64 = 1;
/// Calls pass and are not counted.
const FREE: u64 = 2;

/// What becomes of a call.
#[derive(Debug)]
pub(crate) enum Admission {
    Counted(Ticket),
    Free,
    Refused(Refusal, Option<Arc<str>>),
}

impl Gate {
    pub(crate) fn new(
        key: KeyRef<'_>,
        label: &str,
        settings: Arc<Settings>,
        hub: Arc<Hub>,
        now: Instant,
    ) -> Self {
        let machine = Machine::new(settings.clone());
        Self {
            name: key.name.into(),
            hash: key.hash,
            label: label.into(),
            hub,
            times_calls: settings.slow.is_some(),
            settings,
            born: now,
            word: AtomicU64::new(word_of(&machine)),
            lap_end: AtomicU64::new(0),
            lanes: array::from_fn(|_| Lane::shut_from_the_start()),
            guarded: Mutex::new(Guarded { machine, last_failure: None, is_telling: false }),
        }
    }

    pub(crate) const fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) const fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Whether it matters how long calls take.
    #[inline]
    pub(crate) const fn times_calls(&self) -> bool {
        self.times_calls
    }

    #[inline]
    pub(crate) fn is(&self, key: KeyRef<'_>) -> bool {
        self.hash == key.hash && *self.name == *key.name
    }

    /// Decides about a call.
    #[inline]
    pub(crate) fn admit(&self, row: Row, now: impl FnOnce() -> Instant) -> Admission {
        let word = self.word.load(Acquire);
        if word & CLOSED != 0 {
            return Admission::Counted(Ticket { generation: (word >> 2) as u32, row, probe: None });
        }
        if word & FREE != 0 {
            return Admission::Free;
        }
        self.ask(row, now())
    }

    /// Counts a success.
    #[inline]
    pub(crate) fn succeed(&self, ticket: Ticket, stripe: usize, now: Instant) {
        let added = ticket.probe.is_none()
            && self.nanos(now) < self.lap_end.load(Relaxed)
            && self.lanes[stripe].add(ticket.generation);
        if !added {
            self.end(ticket, End::Success { slow: false }, now, None);
        }
    }

    /// Counts any end.
    #[cold]
    pub(crate) fn end(&self, ticket: Ticket, end: End, now: Instant, why: Option<Arc<str>>) {
        self.work(now, |guarded| {
            if guarded.machine.end(ticket, end, now) && why.is_some() {
                guarded.last_failure = why;
            }
        });
    }

    /// The state, as the clock and the machine have it.
    pub(crate) fn state(&self, now: Instant) -> BreakerState {
        match self.word.load(Acquire) & (CLOSED | FREE) {
            0 => self.inspect(now, |machine, _| machine.state(now)),
            _ => BreakerState::Closed,
        }
    }

    /// Looks at the machine, once time has done its part.
    pub(crate) fn inspect<R>(
        &self,
        now: Instant,
        look: impl FnOnce(&mut Machine, Option<&Arc<str>>) -> R,
    ) -> R {
        self.work(now, |guarded| {
            guarded.machine.state(now);
            look(&mut guarded.machine, guarded.last_failure.as_ref())
        })
    }

    /// Whether a new breaker would decide the same.
    pub(crate) fn is_blank(&self, now: Instant) -> bool {
        held(self.guarded.lock()).machine.is_blank(now)
    }

    /// Interferes by hand, once time has done its part.
    pub(crate) fn control(&self, now: Instant, change: impl FnOnce(&mut Machine)) {
        self.inspect(now, |machine, _| change(machine));
    }

    #[cold]
    fn ask(&self, row: Row, now: Instant) -> Admission {
        self.work(now, |guarded| match guarded.machine.admit(row, now) {
            Ok(Some(ticket)) => Admission::Counted(ticket),
            Ok(None) => Admission::Free,
            Err(refusal) => Admission::Refused(refusal, guarded.last_failure.clone()),
        })
    }

    /// The one way to the machine: takes in what the lanes have counted, works, and publishes.
    fn work<R>(&self, now: Instant, job: impl FnOnce(&mut Guarded) -> R) -> R {
        let mut guarded = held(self.guarded.lock());
        let before = guarded.machine.generation();
        if guarded.machine.is_closed() {
            let counted = self.lanes.iter().map(|lane| u64::from(lane.shut())).sum();
            guarded.machine.add_successes(counted);
        }
        let done = job(&mut guarded);
        if guarded.machine.is_closed() && guarded.machine.generation() != before {
            guarded.last_failure = None;
        }
        self.publish(&guarded.machine, now);
        let has_edges = guarded.machine.has_edges();
        drop(guarded);
        if has_edges {
            self.tell();
        }
        done
    }

    fn publish(&self, machine: &Machine, now: Instant) {
        if let Some(end) = machine.fast_lane(now) {
            self.lap_end.store(self.nanos(end), Relaxed);
            for lane in &self.lanes {
                lane.open(machine.generation());
            }
        }
        // Every call reads this word: its line stays shared unless there is news.
        let word = word_of(machine);
        if self.word.load(Relaxed) != word {
            self.word.store(word, Release);
        }
    }

    /// Tells the observers of all steps, without a lock. One thread at a time does so, that they
    /// hear them in their order; who finds another at it leaves its own steps to that one.
    fn tell(&self) {
        while let Some((Edge { from, to }, _turn)) = self.next_edge() {
            let event = Event::Breaker { breaker: &self.name, from, to };
            self.hub.tell(&CallInfo::of(&self.label), &event);
        }
    }

    fn next_edge(&self) -> Option<(Edge, Turn<'_>)> {
        let mut guarded = held(self.guarded.lock());
        if guarded.is_telling {
            return None;
        }
        let edge = guarded.machine.next_edge()?;
        guarded.is_telling = true;
        Some((edge, Turn(&self.guarded)))
    }

    #[inline]
    fn nanos(&self, at: Instant) -> u64 {
        let age = at.saturating_duration_since(self.born);
        age.as_secs().wrapping_mul(1_000_000_000).wrapping_add(age.subsec_nanos().into())
    }
}

fn word_of(machine: &Machine) -> u64 {
    let flags = match machine.mode() {
        Mode::Disabled => FREE,
        Mode::Enforce | Mode::Shadow if machine.is_closed() => CLOSED,
        Mode::Enforce | Mode::Shadow => 0,
    };
    u64::from(machine.generation()) << 2 | flags
}

/// The turn to tell the observers; given back also when one of them panics.
struct Turn<'g>(&'g Mutex<Guarded>);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut guarded: MutexGuard<'_, Guarded> = held(self.0.lock());
        guarded.is_telling = false;
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(tr_loom)))]
mod tests;
