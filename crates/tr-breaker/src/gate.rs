//! The state machine behind a word that says "closed" without a lock.
use crate::{
    epoch::Epoch,
    error::LastFailure,
    ground::Ground,
    hub::Hub,
    lane::Lanes,
    settings::{Mode, Row, Settings},
    snapshot::Saved,
    stand::Stand,
    state::{End, Machine, Refusal, Ticket},
    sync::{Mutex, held},
    why,
    word::Words,
};
use std::{fmt, sync::Arc, time::Instant};
use tr_core::{BreakerState, CoarseInstant, KeyRef};

/// One breaker.
///
/// While it is closed and far from opening, a call reads one word when it starts and adds one to
/// a lane when it succeeds; while it is open, a call reads three words. All else goes through the
/// machine, under a lock.
///
/// There may be a million of these. One that knows of nothing but a few successes has no machine:
/// the words tell all of it, and it is made when it is needed.
pub(crate) struct Gate {
    name: Arc<str>,
    hash: u64,
    /// It is that of what a tool reaches.
    is_target: bool,
    /// What events call the tool, where that is not the name.
    label: Option<Box<str>>,
    ground: Arc<Ground>,
    words: Words,
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

/// What becomes of a call.
#[derive(Debug)]
pub(crate) enum Admission {
    Counted(Ticket),
    Free,
    Refused(Refusal),
}

impl Gate {
    pub(crate) fn new(key: KeyRef<'_>, label: &str, ground: Arc<Ground>, lanes: Lanes) -> Self {
        let name: Arc<str> = key.to_string().into();
        let (settings, first) = (ground.settings.clone(), lanes.first_generation());
        let words = Words::new(&Machine::resumed(name.clone(), settings, (first, first), None));
        Self {
            hash: key.hash,
            is_target: key.is_target(),
            label: (label != &*name).then(|| label.into()),
            name,
            ground,
            words,
            lanes,
            guarded: Mutex::new(None),
        }
    }

    /// One that calls find again from where they left their successes.
    pub(crate) fn shared(
        key: KeyRef<'_>,
        label: &str,
        ground: Arc<Ground>,
        lanes: Lanes,
    ) -> Arc<Self> {
        let gate = Arc::new(Self::new(key, label, ground, lanes));
        if let Lanes::Sharded(stand) = &gate.lanes {
            stand.settle(Arc::downgrade(&gate));
        }
        gate
    }

    pub(crate) const fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Whether it is that of what the tool of this name reaches.
    pub(crate) fn is_target_of(&self, tool: &str) -> bool {
        let rest = || self.name.strip_prefix(tool)?.strip_prefix(' ');
        self.is_target && rest().is_some_and(|origin| !origin.contains(' '))
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

    /// Where all calls of this breaker leave their successes, if it has such a place.
    pub(crate) const fn stand(&self) -> Option<&'static Stand> {
        match &self.lanes {
            Lanes::Sharded(lease) => Some(lease.stand()),
            Lanes::One(..) => None,
        }
    }

    /// Whether it matters how long calls take.
    pub(crate) fn times_calls(&self) -> bool {
        self.words.word().is_timed()
    }

    #[inline]
    pub(crate) fn is(&self, key: KeyRef<'_>) -> bool {
        self.hash == key.hash && key.is_named(&self.name)
    }

    /// Lets a call pass that needs no decision, and no look at the clock.
    #[inline]
    pub(crate) fn pass(&self, row: Row) -> Option<Ticket> {
        let word = self.words.word();
        let ticket = Ticket { generation: word.generation(), row, probe: None };
        word.is_plain().then_some(ticket)
    }

    /// Refuses a call where that takes no decision. `now` may be somewhat old: what it says of a
    /// time before the breaker opened is no matter.
    #[inline]
    pub(crate) fn refuse(&self, now: impl FnOnce() -> CoarseInstant) -> Option<Refusal> {
        self.words.refusal(now)
    }

    /// Decides about a call.
    pub(crate) fn admit(&self, row: Row, now: impl Fn() -> Instant) -> Admission {
        let word = self.words.word();
        if word.is_closed() {
            let generation = word.generation();
            return Admission::Counted(Ticket { generation, row, probe: None });
        }
        if word.is_free() {
            return Admission::Free;
        }
        let now = now();
        match self.refuse(|| CoarseInstant::at(now)) {
            Some(refusal) => Admission::Refused(refusal),
            None => self.ask(row, now),
        }
    }

    /// Counts a success, unless the machine has to be asked.
    #[inline]
    pub(crate) fn count(
        &self,
        ticket: Ticket,
        stripe: usize,
        began: Option<CoarseInstant>,
        now: impl Fn() -> CoarseInstant,
    ) -> bool {
        self.lanes.count(ticket.generation, stripe, began, now)
    }

    /// Counts a success that was not slow.
    #[cfg(all(test, not(tr_loom)))]
    pub(crate) fn succeed(&self, ticket: Ticket, stripe: usize, now: impl Fn() -> Instant) {
        if ticket.probe.is_some() || !self.count(ticket, stripe, None, || CoarseInstant::at(now()))
        {
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
        match self.words.word() {
            word if word.is_closed() || word.is_free() => BreakerState::Closed,
            _ => self.inspect(now, |machine, _| machine.state(now)),
        }
    }

    /// What the last failure said, without looking at the clock.
    pub(crate) fn last_failure(&self) -> Option<Arc<LastFailure>> {
        held(self.guarded.lock()).as_ref()?.last_failure.clone()
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

    /// What it does with its decisions, and whether it is forced open.
    pub(crate) fn orders(&self) -> (Mode, bool) {
        match &*held(self.guarded.lock()) {
            Some(guarded) => guarded.machine.orders(),
            None => (self.settings().mode, self.settings().force_open),
        }
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

    /// Restores the state of another one; its own calls in flight no longer count.
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
    fn ask(&self, row: Row, now: Instant) -> Admission {
        self.work(now, |guarded| match guarded.machine.admit(row, now) {
            Ok(Some(ticket)) => Admission::Counted(ticket),
            Ok(None) => Admission::Free,
            Err(refusal) => Admission::Refused(refusal),
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
        if guarded.machine.is_closed() {
            guarded.machine.add_successes(self.lanes.shut());
        }
        let done = job(guarded);
        if guarded.machine.is_clean() {
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
        // An observer that panics while a call's panic unwinds would abort the process: the next call
        // notifies.
        if has_edges && !std::thread::panicking() {
            self.tell();
        }
        done
    }

    /// The machine as the words tell it, but for what the lanes have counted.
    fn wake(&self) -> Box<Guarded> {
        let end = self.lanes.pace().lap_end();
        let since = end.and_then(|end| end.instant().checked_sub(self.settings().lap()));
        let generations = (self.lanes.first_generation(), self.words.word().generation());
        let machine =
            Machine::resumed(self.name.clone(), self.ground.settings.clone(), generations, since);
        Box::new(Guarded { machine, last_failure: None, is_telling: false })
    }

    /// Publishes the state for the fast path; all of it, if the machine has counted this many successes.
    fn publish(&self, machine: &Machine, now: Instant, plain: Option<u64>) {
        let lap_end = machine.fast_lane(now);
        self.lanes.pace().set_lap_end(lap_end.map(CoarseInstant::at));
        if lap_end.is_some() {
            // More than a window holds need not be known.
            let counted = plain.unwrap_or(0).min(self.settings().window.into()) as u32;
            self.lanes.open(machine.generation(), counted);
        }
        self.words.publish(machine);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        if let Lanes::Sharded(stand) = &self.lanes {
            stand.leave(self.words.word().generation());
        }
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("name", &self.name).finish_non_exhaustive()
    }
}

mod telling;

#[cfg(all(test, not(tr_loom)))]
mod tests;
