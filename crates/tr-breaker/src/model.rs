//! A breaker for loom: compiled with `--cfg tr_loom` only, and no part of the library.
use crate::{
    builder::Builder,
    gate::{Admission, Gate},
    ground::Ground,
    lane::Lanes,
    settings::Row,
    state::{End, Machine, Ticket},
};
use std::{sync::Arc, time::Duration, time::Instant};
use tr_core::{BreakerState, KeyRef};

/// A breaker that is told the time.
#[derive(Debug)]
pub struct Model {
    gate: Gate,
    zero: Instant,
}

/// A call in flight.
#[derive(Debug)]
pub struct Call(Ticket);

impl Model {
    /// Goes by these settings; its life begins now.
    #[must_use]
    pub fn new(builder: &Builder) -> Self {
        Self::with(builder, Lanes::striped())
    }

    /// The same with one lane for all threads.
    #[must_use]
    pub fn of_one_lane(builder: &Builder) -> Self {
        Self::with(builder, Lanes::one())
    }

    fn with(builder: &Builder, lanes: Lanes) -> Self {
        let zero = crate::clock::now();
        let ground = Arc::new(Ground::new(builder.settings(), Arc::default(), zero));
        let gate = Gate::new(KeyRef::new("tool"), "tool", ground, lanes);
        Self { gate, zero }
    }

    fn at(&self, ms: u64) -> Instant {
        self.zero + Duration::from_millis(ms)
    }

    /// Asks for a call; `None`: refused.
    pub fn admit(&self, ms: u64) -> Option<Call> {
        match self.gate.admit(Row::Undeclared, None, || self.at(ms)) {
            Admission::Counted(ticket) => Some(Call(ticket)),
            Admission::Free | Admission::Refused(..) => None,
        }
    }

    /// The call succeeded, on a thread of this stripe.
    pub fn succeed(&self, call: Call, stripe: usize, ms: u64) {
        self.gate.succeed(call.0, stripe, || self.at(ms));
    }

    /// The call failed.
    pub fn fail(&self, call: Call, ms: u64) {
        self.gate.end(call.0, End::Failure { slow: false }, self.at(ms), None);
    }

    /// The call was dropped.
    pub fn drop_call(&self, call: Call, ms: u64) {
        self.gate.end(call.0, End::Neither, self.at(ms), None);
    }

    /// Resets the breaker.
    pub fn reset(&self, ms: u64) {
        self.gate.control(self.at(ms), Machine::reset);
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
