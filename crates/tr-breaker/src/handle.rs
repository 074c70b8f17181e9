//! Reading and controlling breakers at run time.
use crate::{
    circuit::Circuit, clock, keyed::KeyedCircuit, registry::Breakers, settings::Mode,
    snapshot::Snapshot,
};
use std::{fmt, sync::Arc, time::Duration};
use tr_policy::{BreakerOrder, BreakerState, KeyRef, Observer, WallClock, internal::Sharded};

/// The breakers of one [`BreakerLayer`](crate::BreakerLayer), and of all services that it made.
///
/// ```
/// use tr_breaker::BreakerLayer;
/// use tr_policy::{BreakerState, ToolId};
///
/// let layer = BreakerLayer::default();
/// let registry = layer.registry();
/// registry.breaker(ToolId::new("payments").key()).force_open();
///
/// let open = registry.all().into_iter().filter(|b| b.state() != BreakerState::Closed);
/// assert_eq!(open.map(|b| b.name().to_owned()).collect::<Vec<_>>(), ["payments"]);
/// ```
#[derive(Clone)]
pub struct Registry {
    pub(crate) breakers: Sharded<Breakers>,
}

impl Registry {
    /// The breaker of this key, if there is one.
    #[must_use]
    pub fn get(&self, key: KeyRef<'_>) -> Option<BreakerHandle> {
        self.breakers.get(key).map(|circuit| self.handle(circuit))
    }

    /// The breaker of this key, created if needed: then it uses the layer's settings, without a
    /// manifest's overrides. At capacity it is the [`overflow`](Self::overflow).
    #[must_use]
    pub fn breaker(&self, key: KeyRef<'_>) -> BreakerHandle {
        self.handle(self.breakers.get_or_make(key))
    }

    /// All breakers except the [`overflow`](Self::overflow).
    #[must_use]
    pub fn all(&self) -> Vec<BreakerHandle> {
        self.breakers.all().into_iter().map(|circuit| self.handle(circuit)).collect()
    }

    /// What keys share that come at capacity, called `_overflow`. It is disabled: their calls pass and do not count,
    /// since the failures of some keys say nothing of the others. By hand it can be forced open.
    #[must_use]
    pub fn overflow(&self) -> BreakerHandle {
        self.handle(self.breakers.overflow.clone())
    }

    fn handle(&self, circuit: Arc<KeyedCircuit>) -> BreakerHandle {
        BreakerHandle { circuit, breakers: self.breakers.clone() }
    }

    /// The state of all breakers, with wall times.
    #[must_use]
    pub fn save(&self, clock: &dyn WallClock) -> Snapshot {
        self.breakers.save(clock.unix_ms())
    }

    /// Restores the saved state: of existing breakers at once, of others when they are created. The rest
    /// of a cooldown is between zero and a full cooldown, whatever the wall clock did meanwhile. The
    /// current settings apply to the mode (unless a handle had set another), to what they force open or
    /// disable, and to the length of cooldowns. State from an earlier call for breakers that do not
    /// exist yet stays, unless this snapshot has it too, up to the layer's capacity. Observers get each
    /// change of state.
    ///
    /// ```
    /// use tr_breaker::BreakerLayer;
    /// use tr_policy::{BreakerState, SystemClock, ToolId};
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

    /// Reports every change of state of every breaker to `observer`, each once and in order for each
    /// breaker, and every refused call.
    ///
    /// A breaker becomes `HALF_OPEN` by the clock; the next call or read of its state reports it.
    pub fn subscribe(&self, observer: Arc<dyn Observer>) {
        self.breakers.observers.add(observer);
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all()).finish()
    }
}

/// One breaker. While a handle exists, its breaker is not evicted.
///
/// Changes to a tool's breaker also apply to those of the tool's [targets](KeyRef::is_target), also to
/// targets that appear later.
#[derive(Clone)]
pub struct BreakerHandle {
    circuit: Arc<KeyedCircuit>,
    breakers: Sharded<Breakers>,
}

/// The counts of a breaker.
///
/// Without a threshold for rates or slow calls, a success reads no clock: it counts with the time of the
/// last call that did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Successes and failures within the window: the last calls within the rolling time.
    pub calls: u32,
    /// Failures among them.
    pub failures: u32,
    /// Slow calls among them, if a threshold for slow calls is set.
    pub slow_calls: u32,
    /// Failures in a row, up to now; the ones that opened it, once it is open.
    pub consecutive_failures: u32,
    /// Probes in flight.
    pub probes: u32,
    /// Probes that have succeeded since it was half open.
    pub probe_successes: u32,
}

impl BreakerHandle {
    /// The breaker's key, for display.
    #[must_use]
    pub fn name(&self) -> &str {
        self.circuit.name()
    }

    /// The current state: `HALF_OPEN` once the cooldown has passed.
    #[must_use]
    pub fn state(&self) -> BreakerState {
        self.circuit.state(clock::now())
    }

    /// What it does with its decisions.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.circuit.inspect(clock::now(), |circuit, _| circuit.mode)
    }

    /// The counts. Closing and resetting set all to zero.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let now = clock::now();
        self.circuit.inspect(now, |circuit, _| {
            let tally = circuit.tally(now);
            let (probes, probe_successes) = circuit.probes();
            Counts {
                calls: tally.calls,
                failures: tally.failures,
                slow_calls: tally.slow,
                consecutive_failures: circuit.consecutive_failures(),
                probes,
                probe_successes,
            }
        })
    }

    /// The time until it is half open, if it is open.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        let now = clock::now();
        self.circuit.inspect(now, |circuit, _| circuit.time_left(now))
    }

    /// The message of the last failure, shortened; `None` after the breaker closed or was reset, or if the
    /// failure is too old to count.
    #[must_use]
    pub fn last_failure(&self) -> Option<Arc<str>> {
        self.circuit.inspect(clock::now(), |_, last| last.map(|last| last.0.clone()))
    }

    /// `FORCED_OPEN`: refuses all calls until it is [`reset`](Self::reset). In
    /// [`Mode::Shadow`] it only reports them; from [`Mode::Disabled`] it changes to enforcing.
    pub fn force_open(&self) {
        self.circuit.control(clock::now(), Circuit::force_open);
    }

    /// Sets any state to `CLOSED`, the counts to zero, and the mode to that of the layer.
    pub fn reset(&self) {
        let now = clock::now();
        for circuit in self.breakers.targets_of(&self.circuit).iter().chain([&self.circuit]) {
            circuit.control(now, Circuit::reset);
        }
    }

    /// Sets what it does with its decisions, whatever the mode of the layer, until it is [`reset`](Self::reset). In
    /// [`Mode::Disabled`] its state is `CLOSED`.
    pub fn set_mode(&self, mode: Mode) {
        self.circuit.control(clock::now(), |circuit| circuit.set_mode(mode));
    }

    /// Does what a manifest orders ([`BreakerOverride::order`](tr_policy::BreakerOverride::order)),
    /// as if the breaker had been made by it. `None` takes an earlier order back: the layer's settings
    /// hold again.
    pub fn order(&self, order: Option<BreakerOrder>) {
        let layer = &self.breakers.settings;
        let forced = match order {
            None => layer.force_open,
            Some(order) => order == BreakerOrder::ForcedOpen,
        };
        let mode = match order {
            Some(BreakerOrder::Disabled) => Mode::Disabled,
            Some(BreakerOrder::Shadow) => Mode::Shadow,
            _ => layer.mode,
        };
        if !forced && self.state() == BreakerState::ForcedOpen {
            self.reset();
        }
        self.set_mode(mode);
        if forced {
            self.force_open();
        }
    }
}

tr_policy::debug_parts! { BreakerHandle, |it| name = it.name(), state = it.state() }
