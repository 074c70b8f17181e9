//! A breaker for loom: compiled with `--cfg tr_loom` only, and no part of the library.
use crate::{
    builder::Builder,
    gate::{Admission, Gate},
    ground::Ground,
    lane::Lanes,
    permit::Held,
    settings::{Row, Settings},
    state::{End, Machine, Ticket},
};
use std::{sync::Arc, time::Duration, time::Instant};
use tr_core::{BreakerState, CoarseInstant, KeyRef};

/// A breaker with an explicit clock.
#[derive(Debug)]
pub struct Model {
    gate: Arc<Gate>,
    zero: Instant,
}

/// A call in flight. It does not hold its breaker.
#[derive(Debug)]
pub struct Call {
    ticket: Ticket,
    held: Held,
    zero: Instant,
}

impl Model {
    /// A new breaker with these settings.
    #[must_use]
    pub fn new(builder: &Builder) -> Self {
        Self::with(builder, Lanes::striped)
    }

    /// The same with one lane for all threads.
    #[must_use]
    pub fn of_one_lane(builder: &Builder) -> Self {
        Self::with(builder, Lanes::one)
    }

    fn with(builder: &Builder, lanes: fn(&Settings) -> Lanes) -> Self {
        let zero = crate::clock::now();
        let ground = Arc::new(Ground::new(builder.settings(), Arc::default()));
        let lanes = lanes(&ground.settings);
        let gate = Gate::shared(KeyRef::new("tool"), "tool", ground, lanes);
        Self { gate, zero }
    }

    /// Whether its calls leave their successes where this call, perhaps of another one, will.
    #[must_use]
    pub fn stands_where(&self, call: &Call) -> bool {
        let stand = self.gate.stand().map(std::ptr::from_ref);
        stand.is_some_and(|own| matches!(call.held, Held::Apart(its) if std::ptr::eq(own, its)))
    }

    fn at(&self, ms: u64) -> Instant {
        self.zero + Duration::from_millis(ms)
    }

    /// Asks for a call; `None`: refused.
    pub fn admit(&self, ms: u64) -> Option<Call> {
        let held = self.gate.stand().map_or_else(|| Held::Shared(self.gate.clone()), Held::Apart);
        match self.gate.admit(Row::Undeclared, || self.at(ms)) {
            Admission::Counted(ticket) => Some(Call { ticket, held, zero: self.zero }),
            Admission::Free | Admission::Refused(..) => None,
        }
    }

    /// Resets the breaker.
    pub fn reset(&self, ms: u64) {
        self.gate.control(self.at(ms), Machine::reset);
    }

    /// For how long a call is refused, where it is and that is known.
    pub fn left(&self, ms: u64) -> Option<Duration> {
        self.gate.refuse(|| CoarseInstant::at(self.at(ms)))?.left
    }

    /// The state.
    pub fn state(&self, ms: u64) -> BreakerState {
        self.gate.state(self.at(ms))
    }

    /// Calls and failures in the window, and probes in flight and succeeded.
    pub fn counts(&self, ms: u64) -> (u32, u32, (u32, u32)) {
        let now = self.at(ms);
        self.gate.inspect(now, |machine, _| {
            let tally = machine.tally(now);
            (tally.calls, tally.failures, machine.probes())
        })
    }
}

impl Call {
    /// It succeeded, on a thread of this stripe.
    pub fn succeed(self, stripe: usize, ms: u64) {
        let (Ticket { generation, probe, .. }, now) =
            (self.ticket, || CoarseInstant::at(self.at(ms)));
        let is_counted = probe.is_none()
            && match &self.held {
                Held::Apart(stand) => stand.count(generation, stripe, None, now),
                Held::Shared(gate) => gate.count(self.ticket, stripe, None, now),
            };
        if !is_counted {
            self.end(End::Success { slow: false }, ms);
        }
    }

    /// It failed.
    pub fn fail(self, ms: u64) {
        self.end(End::Failure { slow: false }, ms);
    }

    /// It was dropped.
    pub fn give_up(self, ms: u64) {
        self.end(End::Neither, ms);
    }

    fn end(self, end: End, ms: u64) {
        let now = self.at(ms);
        let gate = match self.held {
            Held::Apart(stand) => stand.gate(),
            Held::Shared(gate) => Some(gate),
        };
        if let Some(gate) = gate {
            gate.end(self.ticket, end, now, None);
        }
    }

    fn at(&self, ms: u64) -> Instant {
        self.zero + Duration::from_millis(ms)
    }
}
