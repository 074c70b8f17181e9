//! The circuit of one key, behind a lock.
use crate::{
    circuit::{Circuit, End, Refusal, Ticket, Transition},
    clock,
    fast_path::FastPath,
    observers::Observers,
    settings::{Mode, Settings},
    shortened::LastFailure,
    snapshot::Saved,
    window::Epoch,
};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Instant,
};
use tr_policy::{
    BreakerState, CallInfo, Effect, Event, KeyRef,
    internal::{CoarseInstant, ignore_poison},
};

/// The circuit of one key. There may be a million of these.
pub(crate) struct KeyedCircuit {
    /// The key's name, then what events call the tool, where that is not the name.
    names: Box<str>,
    name_len: u32,
    /// It is that of what a tool reaches.
    is_target: bool,
    /// A thread is notifying the observers.
    is_notifying: AtomicBool,
    /// It matters how long calls take.
    pub(crate) is_timed: bool,
    /// No rule asks when successes end.
    is_timeless: bool,
    fast_path: FastPath,
    pub(crate) hash: u64,
    pub(crate) settings: Arc<Settings>,
    pub(crate) observers: Arc<Observers>,
    locked: Mutex<Locked>,
}

struct Locked {
    circuit: Circuit,
    last_failure: Option<Arc<LastFailure>>,
}

impl KeyedCircuit {
    pub(crate) fn new(
        key: KeyRef<'_>,
        label: &str,
        settings: Arc<Settings>,
        observers: Arc<Observers>,
    ) -> Self {
        let mut names = key.to_string();
        let name_len = u32::try_from(names.len()).expect("a name is shorter than 4 GiB");
        let circuit = Circuit::new(&names, settings.clone());
        if *label != *names {
            names.push_str(label);
        }
        Self {
            names: names.into(),
            name_len,
            is_target: key.is_target(),
            is_notifying: AtomicBool::new(false),
            is_timed: settings.slow.is_some(),
            is_timeless: settings.derived.is_timeless,
            fast_path: FastPath::new(&circuit.published()),
            hash: key.hash,
            settings,
            observers,
            locked: Mutex::new(Locked { circuit, last_failure: None }),
        }
    }

    #[inline]
    pub(crate) fn name(&self) -> &str {
        &self.names[..self.name_len as usize]
    }

    /// What events call the tool.
    fn label(&self) -> &str {
        match &self.names[self.name_len as usize..] {
            "" => &self.names,
            label => label,
        }
    }

    #[inline]
    pub(crate) fn is(&self, key: KeyRef<'_>) -> bool {
        self.hash == key.hash && key.is_named(self.name())
    }

    /// Whether it is that of what the tool of this name reaches.
    pub(crate) fn is_target_of(&self, tool: &str) -> bool {
        let rest = || self.name().strip_prefix(tool)?.strip_prefix(' ');
        self.is_target && rest().is_some_and(|origin| !origin.contains(' '))
    }

    /// Lets a call pass without the lock, where that is possible.
    #[inline]
    pub(crate) fn pass(&self, effect: Option<Effect>) -> Option<Ticket> {
        let generation = self.fast_path.pass()?;
        Some(Ticket { generation, effect, probe: None })
    }

    /// Asks for the right to make a call; `None`: it passes and does not count. `began` is when the call
    /// began, if it carries that.
    #[inline]
    pub(crate) fn admit(
        &self,
        effect: Option<Effect>,
        began: Option<CoarseInstant>,
        now: impl Fn() -> Instant,
    ) -> Result<Option<Ticket>, Refusal> {
        if let Some(ticket) = self.pass(effect) {
            return Ok(Some(ticket));
        }
        match self.refuse(|| began.unwrap_or_else(|| CoarseInstant::at(now()))) {
            Some(refusal) => Err(refusal),
            // What the call carries may be from before it opened.
            None => self.admit_locked(effect, now()),
        }
    }

    #[inline(never)]
    fn admit_locked(
        &self,
        effect: Option<Effect>,
        now: Instant,
    ) -> Result<Option<Ticket>, Refusal> {
        self.change(|locked| locked.circuit.admit(effect, now))
    }

    /// Refuses a call without the lock, where that is possible.
    #[inline]
    fn refuse(&self, now: impl FnOnce() -> CoarseInstant) -> Option<Refusal> {
        let left = self.fast_path.refuse(now, self.settings.derived.longest_cooldown)?;
        Some(Refusal { state: BreakerState::Open, left: Some(left), shadow: false })
    }

    /// Why any call would be refused now.
    #[inline]
    pub(crate) fn refuses(&self) -> Option<Refusal> {
        match self.fast_path.pass() {
            Some(_) => None,
            None => self.change(|locked| locked.circuit.refuses(clock::now())),
        }
    }

    /// A call succeeded, having taken so long if that matters.
    #[inline]
    pub(crate) fn succeed(
        &self,
        ticket: Ticket,
        began: Option<CoarseInstant>,
        now: impl Fn() -> CoarseInstant,
    ) {
        if self.is_timeless && ticket.probe.is_none() && self.succeed_untimed(ticket) {
            return;
        }
        let now = now();
        let slow = self.is_timed && self.is_slow(began, now);
        if slow || ticket.probe.is_some() || !self.fast_path.is_quiet_at(now) {
            self.end(ticket, End::Success { slow }, now.instant(), None);
        }
    }

    #[inline]
    fn succeed_untimed(&self, ticket: Ticket) -> bool {
        self.fast_path.is_quiet() || self.change(|locked| locked.circuit.succeed_untimed(ticket))
    }

    /// Whether a call that began then took too long.
    pub(crate) fn is_slow(&self, began: Option<CoarseInstant>, now: CoarseInstant) -> bool {
        let limit = self.settings.slow.map(|slow| slow.longer_than);
        limit.zip(began).is_some_and(|(limit, began)| now.since(began) > limit)
    }

    /// A call ended.
    #[inline(never)]
    pub(crate) fn end(&self, ticket: Ticket, end: End, now: Instant, message: Option<Arc<str>>) {
        self.change(|locked| {
            if locked.circuit.end(ticket, end, now)
                && let Some(message) = message
            {
                locked.last_failure = Some(Arc::new(LastFailure(message)));
            }
        });
    }

    /// The state, as the clock has it.
    pub(crate) fn state(&self, now: Instant) -> BreakerState {
        self.change(|locked| locked.circuit.state(now))
    }

    /// The message of the last failure, without looking at the clock.
    pub(crate) fn last_failure(&self) -> Option<Arc<LastFailure>> {
        ignore_poison(self.locked.lock()).last_failure.clone()
    }

    /// Looks at the circuit, or changes it, once time has done its part.
    pub(crate) fn inspect<R>(
        &self,
        now: Instant,
        look: impl FnOnce(&mut Circuit, Option<&LastFailure>) -> R,
    ) -> R {
        self.change(|locked| {
            locked.circuit.state(now);
            look(&mut locked.circuit, locked.last_failure.as_deref())
        })
    }

    /// Interferes by hand, once time has done its part.
    pub(crate) fn control(&self, now: Instant, change: impl FnOnce(&mut Circuit)) {
        self.inspect(now, |circuit, _| change(circuit));
    }

    /// Its mode, and whether it is forced open.
    pub(crate) fn orders(&self) -> (Mode, bool) {
        ignore_poison(self.locked.lock()).circuit.orders()
    }

    /// Whether a new breaker would decide the same.
    pub(crate) fn is_blank(&self, now: Instant) -> bool {
        ignore_poison(self.locked.lock()).circuit.is_blank(now)
    }

    /// What it knows, if a new breaker would not know the same.
    pub(crate) fn saved(&self, epoch: Epoch) -> Option<Saved> {
        (!self.is_blank(epoch.now)).then(|| {
            self.inspect(epoch.now, |circuit, last| {
                circuit.saved(self.name(), last.map(|last| &*last.0), epoch)
            })
        })
    }

    /// Restores the state of another one; its own calls in flight no longer count.
    pub(crate) fn restore(&self, saved: &Saved, epoch: Epoch) {
        self.change(|locked| {
            locked.circuit.restore(saved, epoch);
            locked.last_failure = saved.last_failure.as_ref().map(LastFailure::of);
        });
    }

    /// The one way to change the circuit: it publishes the result and notifies observers.
    #[inline]
    fn change<R>(&self, job: impl FnOnce(&mut Locked) -> R) -> R {
        let mut locked = ignore_poison(self.locked.lock());
        let done = job(&mut locked);
        if locked.last_failure.is_some() && locked.circuit.is_clean() {
            locked.last_failure = None;
        }
        self.fast_path.publish(&locked.circuit.published());
        let has_transitions = locked.circuit.has_transitions();
        drop(locked);
        if has_transitions {
            self.notify();
        }
        done
    }

    /// Notifies the observers of all transitions, without the lock. One thread at a time does so, that
    /// they get them in their order; a second one leaves its own transitions to the first.
    #[cold]
    fn notify(&self) {
        // An observer that panics while a call's panic unwinds would abort the process: the next call
        // notifies.
        if std::thread::panicking() {
            return;
        }
        while let Some((Transition { from, to }, _turn)) = self.next_transition() {
            let event = Event::Breaker { breaker: self.name(), from, to };
            self.observers.notify(&CallInfo::of(self.label()), &event);
        }
    }

    fn next_transition(&self) -> Option<(Transition, NotifyTurn<'_>)> {
        let mut locked = ignore_poison(self.locked.lock());
        if self.is_notifying.load(Relaxed) {
            return None;
        }
        let next = locked.circuit.next_transition()?;
        self.is_notifying.store(true, Relaxed);
        Some((next, NotifyTurn(&self.is_notifying)))
    }
}

/// The turn to notify the observers, which ends also when one of them panics. The thread that ends it looks
/// again, under the lock.
struct NotifyTurn<'k>(&'k AtomicBool);

impl Drop for NotifyTurn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Relaxed);
    }
}

tr_policy::debug_parts! { KeyedCircuit, |it| name = it.name() }

#[cfg(test)]
mod tests;
