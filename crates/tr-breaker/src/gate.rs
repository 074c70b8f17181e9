//! The state machine behind a word that says "closed" without a lock.
use crate::{
    epoch::Epoch,
    error::LastFailure,
    ground::Ground,
    hub::Hub,
    lane::Lanes,
    settings::{Mode, Row, Settings},
    snapshot::Saved,
    state::{Edge, End, Machine, Refusal, Ticket},
    sync::{
        AtomicU64, Mutex,
        Ordering::{Acquire, Relaxed, Release},
        held,
    },
    why,
};
use std::{fmt, sync::Arc, time::Instant};
use tr_core::{BreakerState, CallInfo, Event, KeyRef};

/// One breaker.
///
/// While it is closed and far from opening, a call reads one word when it starts and adds one to
/// a lane when it succeeds. All else goes through the machine, under a lock.
///
/// There may be a million of these. One that knows of nothing but a few successes has no machine:
/// the words tell all of it, and it is made when it is needed.
pub(crate) struct Gate {
    name: Arc<str>,
    hash: u64,
    /// What events call the tool, where that is not the name.
    label: Option<Box<str>>,
    ground: Arc<Ground>,
    /// The generation, above [`CLOSED`] and [`FREE`].
    word: AtomicU64,
    /// When successes have to look at the machine again, as the ground tells the time; 0 before
    /// the first of them.
    lap_end: AtomicU64,
    lanes: Lanes,
    guarded: Mutex<Option<Box<Guarded>>>,
}

struct Guarded {
    machine: Machine,
    /// What the last failure said.
    last_failure: Option<Arc<LastFailure>>,
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
    Refused(Refusal, Option<Arc<LastFailure>>),
}

impl Gate {
    pub(crate) fn new(key: KeyRef<'_>, label: &str, ground: Arc<Ground>, lanes: Lanes) -> Self {
        let name: Arc<str> = key.name.into();
        let machine = Machine::new(name.clone(), ground.settings.clone());
        let word = AtomicU64::new(word_of(&machine));
        Self {
            name,
            hash: key.hash,
            label: (label != key.name).then(|| label.into()),
            ground,
            word,
            lap_end: AtomicU64::new(0),
            lanes,
            guarded: Mutex::new(None),
        }
    }

    pub(crate) const fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) const fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.ground.settings
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.ground.hub
    }

    /// Whether it matters how long calls take.
    #[inline]
    pub(crate) fn times_calls(&self) -> bool {
        self.ground.times_calls
    }

    #[inline]
    pub(crate) fn is(&self, key: KeyRef<'_>) -> bool {
        self.hash == key.hash && *self.name == *key.name
    }

    /// Lets a call pass that needs no decision.
    #[inline]
    pub(crate) fn pass(&self, row: Row) -> Option<Ticket> {
        let word = self.word.load(Acquire);
        let ticket = Ticket { generation: (word >> 2) as u32, row, probe: None };
        (word & CLOSED != 0).then_some(ticket)
    }

    /// Decides about a call, for which somebody has looked at the clock perhaps.
    pub(crate) fn admit(
        &self,
        row: Row,
        stamp: Option<Instant>,
        now: impl Fn() -> Instant,
    ) -> Admission {
        match self.pass(row) {
            Some(ticket) => Admission::Counted(ticket),
            None if self.word.load(Acquire) & FREE != 0 => Admission::Free,
            None => self.ask(row, stamp, now),
        }
    }

    /// Counts a success.
    #[inline]
    pub(crate) fn succeed(&self, ticket: Ticket, stripe: usize, now: impl Fn() -> Instant) {
        let is_in_lap =
            || self.ground.is_timeless || self.ground.nanos(now()) < self.lap_end.load(Relaxed);
        let added =
            ticket.probe.is_none() && is_in_lap() && self.lanes.of(stripe).add(ticket.generation);
        if !added {
            self.end(ticket, End::Success { slow: false }, now(), None);
        }
    }

    /// Counts any end.
    #[cold]
    pub(crate) fn end(&self, ticket: Ticket, end: End, now: Instant, why: Option<Arc<str>>) {
        self.work(now, |guarded| {
            if guarded.machine.end(ticket, end, now)
                && let Some(why) = why
            {
                guarded.last_failure = Some(Arc::new(LastFailure(why)));
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
        look: impl FnOnce(&mut Machine, Option<&LastFailure>) -> R,
    ) -> R {
        self.work(now, |guarded| {
            guarded.machine.state(now);
            look(&mut guarded.machine, guarded.last_failure.as_deref())
        })
    }

    /// Whether a new breaker would decide the same.
    pub(crate) fn is_blank(&self, now: Instant) -> bool {
        match &*held(self.guarded.lock()) {
            Some(guarded) => guarded.machine.is_blank(now),
            None => !self.settings().force_open,
        }
    }

    /// What it knows, if a new breaker would not know the same.
    pub(crate) fn saved(&self, epoch: Epoch) -> Option<Saved> {
        (!self.is_blank(epoch.now)).then(|| {
            self.inspect(epoch.now, |machine, last| {
                let last_failure = last.map(|last| last.0.as_ref().to_owned());
                Saved { last_failure, ..machine.saved(epoch) }
            })
        })
    }

    /// Takes over what another one knew; its own calls in flight change nothing any more.
    pub(crate) fn restore(&self, saved: &Saved, epoch: Epoch) {
        self.work(epoch.now, |guarded| {
            guarded.machine.restore(saved, epoch);
            let why = saved.last_failure.as_ref().map(|why| why::shortened(why));
            guarded.last_failure = why.map(|why| Arc::new(LastFailure(why)));
        });
    }

    /// Interferes by hand, once time has done its part.
    pub(crate) fn control(&self, now: Instant, change: impl FnOnce(&mut Machine)) {
        self.inspect(now, |machine, _| change(machine));
    }

    #[cold]
    fn ask(&self, row: Row, stamp: Option<Instant>, now: impl Fn() -> Instant) -> Admission {
        if let Some(guarded) = &*held(self.guarded.lock())
            && let Some(refusal) = guarded.machine.refuses(stamp.unwrap_or_else(&now))
        {
            return Admission::Refused(refusal, guarded.last_failure.clone());
        }
        // The stamp may be older than the state, which must not seem to have begun before it did.
        let now = now();
        self.work(now, |guarded| match guarded.machine.admit(row, now) {
            Ok(Some(ticket)) => Admission::Counted(ticket),
            Ok(None) => Admission::Free,
            Err(refusal) => Admission::Refused(refusal, guarded.last_failure.clone()),
        })
    }

    /// The one way to change the machine: takes in what the lanes have counted, works, and
    /// publishes.
    fn work<R>(&self, now: Instant, job: impl FnOnce(&mut Guarded) -> R) -> R {
        let mut place = held(self.guarded.lock());
        let mut woken = None;
        let guarded = match &mut *place {
            Some(guarded) => guarded,
            None => woken.insert(self.wake()),
        };
        let before = guarded.machine.generation();
        if guarded.machine.is_closed() {
            guarded.machine.add_successes(self.lanes.shut());
        }
        let done = job(guarded);
        if guarded.machine.is_closed() && guarded.machine.generation() != before {
            guarded.last_failure = None;
        }
        let plain = guarded.machine.only_successes().filter(|_| !guarded.is_telling);
        self.publish(&guarded.machine, now, plain);
        let has_edges = guarded.machine.has_edges();
        if plain.is_some() {
            *place = None;
        } else if woken.is_some() {
            *place = woken;
        }
        drop(place);
        if has_edges {
            self.tell();
        }
        done
    }

    /// The machine as the words tell it, but for what the lanes have counted.
    fn wake(&self) -> Box<Guarded> {
        let since = match self.lap_end.load(Relaxed) {
            0 => None,
            end => self.ground.instant(end).checked_sub(self.settings().lap()),
        };
        let generation = (self.word.load(Relaxed) >> 2) as u32;
        let machine =
            Machine::resumed(self.name.clone(), self.ground.settings.clone(), generation, since);
        Box::new(Guarded { machine, last_failure: None, is_telling: false })
    }

    /// Puts in words what calls go by; all of it, if the machine knows of so many successes only.
    fn publish(&self, machine: &Machine, now: Instant, plain: Option<u64>) {
        match machine.fast_lane(now) {
            Some(end) => {
                // More than a window holds need not be known.
                let counted = plain.unwrap_or(0).min(self.settings().window.into()) as u32;
                self.lap_end.store(self.ground.nanos(end), Relaxed);
                self.lanes.open(machine.generation(), counted);
            }
            None => self.lap_end.store(0, Relaxed),
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
            let label = self.label.as_deref().unwrap_or(&self.name);
            self.hub().tell(&CallInfo::of(label), &event);
        }
    }

    fn next_edge(&self) -> Option<(Edge, Turn<'_>)> {
        let mut place = held(self.guarded.lock());
        let guarded = place.as_mut().filter(|guarded| !guarded.is_telling)?;
        let edge = guarded.machine.next_edge()?;
        guarded.is_telling = true;
        Some((edge, Turn(&self.guarded)))
    }
}

fn word_of(machine: &Machine) -> u64 {
    let flags = match machine.mode() {
        Mode::Disabled => FREE,
        Mode::Enforce | Mode::Shadow if machine.lets_all_pass() => CLOSED,
        Mode::Enforce | Mode::Shadow => 0,
    };
    u64::from(machine.generation()) << 2 | flags
}

/// The turn to tell the observers; given back also when one of them panics.
struct Turn<'g>(&'g Mutex<Option<Box<Guarded>>>);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(guarded) = &mut *held(self.0.lock()) {
            guarded.is_telling = false;
        }
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(tr_loom)))]
mod tests;
