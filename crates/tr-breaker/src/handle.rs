//! Asking and controlling breakers while they work.
use crate::{
    clock, gate::Gate, registry::Breakers, settings::Mode, snapshot::Snapshot, state::Machine,
};
use std::{fmt, sync::Arc, time::Duration};
use tr_core::{BreakerState, KeyRef, Observer, Sharded, WallClock};

/// The breakers of one [`BreakerLayer`](crate::BreakerLayer), and of all services that it made.
///
/// ```
/// use tr_breaker::BreakerLayer;
/// use tr_core::{BreakerState, ToolId};
///
/// let layer = BreakerLayer::default();
/// let registry = layer.registry();
/// registry.breaker(ToolId::new("payments").key()).force_open();
///
/// let open = registry.all().into_iter().filter(|b| b.state() != BreakerState::Closed);
/// assert_eq!(open.map(|b| b.name().to_owned()).collect::<Vec<_>>(), ["payments"]);
/// ```
pub struct Registry {
    breakers: Sharded<Breakers>,
}

impl Registry {
    pub(crate) fn new(breakers: Breakers) -> Self {
        Self { breakers: Sharded::new(breakers) }
    }

    pub(crate) fn breakers(&self) -> Sharded<Breakers> {
        self.breakers.whole()
    }

    /// The breaker of this key, if there is one.
    #[must_use]
    pub fn get(&self, key: KeyRef<'_>) -> Option<BreakerHandle> {
        self.breakers.get(key).map(|gate| self.handle(gate))
    }

    /// The breaker of this key, created if needed: then it uses the layer's settings, without a
    /// manifest's overrides. At capacity it is the overflow breaker that such keys share.
    #[must_use]
    pub fn breaker(&self, key: KeyRef<'_>) -> BreakerHandle {
        self.handle(self.breakers.get_or_make(key))
    }

    /// All breakers but the one that overflowing keys share.
    #[must_use]
    pub fn all(&self) -> Vec<BreakerHandle> {
        self.breakers.all().into_iter().map(|gate| self.handle(gate)).collect()
    }

    /// The breaker that overflowing keys share; its name is `_overflow`.
    #[must_use]
    pub fn overflow(&self) -> BreakerHandle {
        self.handle(self.breakers.overflow().clone())
    }

    fn handle(&self, gate: Arc<Gate>) -> BreakerHandle {
        BreakerHandle { gate, breakers: self.breakers.whole() }
    }

    /// What the breakers know, with wall times.
    #[must_use]
    pub fn save(&self, clock: &dyn WallClock) -> Snapshot {
        self.breakers.save(clock.unix_ms())
    }

    /// Gives back to breakers what was saved: to those that there are, and to the others when they
    /// are made. What is left of a cooldown is at least nothing and at most a cooldown, whatever
    /// the wall clock did meanwhile. Today's settings hold: for the mode where no handle had ordered
    /// another, for what they force open or disable, for how long a cooldown is. What an earlier call
    /// has left for breakers still to be made stays, unless this snapshot knows of them too; as many
    /// wait as the layer has capacity for. Observers get each change of state.
    ///
    /// ```
    /// use tr_breaker::BreakerLayer;
    /// use tr_core::{BreakerState, SystemClock, ToolId};
    ///
    /// let (payments, before) = (ToolId::new("payments"), BreakerLayer::default());
    /// before.registry().breaker(payments.key()).force_open();
    /// let saved = before.registry().save(&SystemClock);
    ///
    /// let after = BreakerLayer::default();
    /// after.registry().restore(&saved, &SystemClock);
    /// let breaker = after.registry().breaker(payments.key());
    /// assert_eq!(breaker.state(), BreakerState::ForcedOpen);
    /// ```
    pub fn restore(&self, snapshot: &Snapshot, clock: &dyn WallClock) {
        self.breakers.restore(snapshot, clock.unix_ms());
    }

    /// Tells `observer` of every step of every breaker from now on: each once, in the order of the
    /// breaker, and of every refused call.
    ///
    /// The step from `OPEN` to `HALF_OPEN` is made by the clock and noticed by the next call or
    /// question.
    pub fn subscribe(&self, observer: Arc<dyn Observer>) {
        self.breakers.hub().add(observer);
    }
}

impl Clone for Registry {
    fn clone(&self) -> Self {
        Self { breakers: self.breakers.whole() }
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all()).finish()
    }
}

/// One breaker. While a handle exists, its breaker is not evicted.
///
/// What is ordered for a tool's breaker holds for those of the tool's
/// [targets](KeyRef::is_target), too, and for targets that are still to be met.
pub struct BreakerHandle {
    gate: Arc<Gate>,
    breakers: Sharded<Breakers>,
}

/// What a breaker has counted.
///
/// Where no rule looks at rates or slow calls, no success looks at the clock: it counts as old as
/// what came before it and did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Successes and failures within the window: the last calls within the rolling time.
    pub calls: u32,
    /// Failures among them.
    pub failures: u32,
    /// Slow calls among them, where a rule for slow calls is set.
    pub slow_calls: u32,
    /// Failures in a row, up to now; the ones that opened it, once it is open.
    pub consecutive_failures: u32,
    /// Probes in flight.
    pub probes: u32,
    /// Probes that have succeeded since it was half open.
    pub probe_successes: u32,
}

impl BreakerHandle {
    /// The breaker's key, as people read it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.gate.name()
    }

    /// Its state by the clock: `HALF_OPEN` from the moment on at which the cooldown has passed.
    #[must_use]
    pub fn state(&self) -> BreakerState {
        self.gate.state(clock::now())
    }

    /// What it does with its decisions.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.gate.inspect(clock::now(), |machine, _| machine.mode())
    }

    /// What it has counted. Closing and resetting set all to zero.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let now = clock::now();
        self.gate.inspect(now, |machine, _| {
            let tally = machine.tally(now);
            let (probes, probe_successes) = machine.probes();
            Counts {
                calls: tally.calls,
                failures: tally.failures,
                slow_calls: tally.slow,
                consecutive_failures: machine.consecutive_failures(),
                probes,
                probe_successes,
            }
        })
    }

    /// Until it is half open, if it is open.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        let now = clock::now();
        self.gate.inspect(now, |machine, _| machine.time_left(now))
    }

    /// What the last failure said, shortened; none since the breaker was closed or reset, or where
    /// the failure is so old that it counts for nothing.
    #[must_use]
    pub fn last_failure(&self) -> Option<Arc<str>> {
        self.gate.inspect(clock::now(), |_, last| last.map(|last| last.0.clone()))
    }

    /// `FORCED_OPEN`: refuses all calls until it is [`reset`](Self::reset). In
    /// [`Mode::Shadow`] it says so and refuses none; in [`Mode::Disabled`] it enforces from now on.
    pub fn force_open(&self) {
        self.gate.control(clock::now(), Machine::force_open);
    }

    /// From any state to `CLOSED`, with nothing counted, in the mode that the layer was given.
    pub fn reset(&self) {
        let now = clock::now();
        for gate in self.breakers.targets_of(&self.gate).iter().chain([&self.gate]) {
            gate.control(now, Machine::reset);
            gate.hub().changed(gate.name());
        }
    }

    /// Lets all calls through and counts none, until it is [`reset`](Self::reset) or told
    /// otherwise. Its state is `CLOSED` then.
    pub fn disable(&self) {
        self.set_mode(Mode::Disabled);
    }

    /// Goes on deciding, and refuses no call.
    pub fn shadow(&self) {
        self.set_mode(Mode::Shadow);
    }

    /// Refuses calls, whatever mode the layer was given.
    pub fn enforce(&self) {
        self.set_mode(Mode::Enforce);
    }

    fn set_mode(&self, mode: Mode) {
        self.gate.control(clock::now(), |machine| machine.set_mode(mode));
        // No step says so.
        self.gate.hub().changed(self.name());
    }
}

impl Clone for BreakerHandle {
    fn clone(&self) -> Self {
        Self { gate: self.gate.clone(), breakers: self.breakers.whole() }
    }
}

impl fmt::Debug for BreakerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreakerHandle")
            .field("name", &self.name())
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
