//! The state machine of one breaker: pure; it takes the time as an argument and has no locks.
//!
//! ```text
//!            failures in a row, or their rate
//!   CLOSED ──────────────────────────────────▶ OPEN ◀──────────┐
//!      ▲                                        │ cooldown     │ a probe fails, or its lease ends
//!      │ enough probes succeed                  ▼              │
//!      └─────────────────────────────────── HALF_OPEN ─────────┘
//!
//!   any ── force_open ──▶ FORCED_OPEN        any ── reset ──▶ CLOSED
//! ```
mod saving;
#[cfg(feature = "redis")]
mod sharing;
mod steps;

use crate::{
    ramp::Ramp,
    settings::{Mode, Row, Settings},
    window::{Tally, Window},
};
use std::{
    collections::VecDeque,
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};
use tr_core::BreakerState;

#[cfg(feature = "redis")]
pub(crate) use self::sharing::View;

/// The state machine of one breaker.
#[derive(Debug)]
pub(crate) struct Machine {
    name: Arc<str>,
    settings: Arc<Settings>,
    mode: Mode,
    phase: Phase,
    /// Counts the steps: a call that was admitted in another generation changes nothing.
    generation: u32,
    /// The generation that it began with.
    first: u32,
    window: Window,
    /// Since probes have closed it, where not all calls pass at once.
    ramp: Option<Ramp>,
    /// Transitions that observers were not notified of yet.
    edges: VecDeque<Edge>,
}

#[derive(Debug)]
enum Phase {
    Closed,
    Open { since: Instant, cooldown: Duration },
    HalfOpen { probes: Vec<Probe>, successes: u32, next: NonZeroU32 },
    Forced,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    id: NonZeroU32,
    since: Instant,
    row: Row,
}

/// A change of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) from: BreakerState,
    pub(crate) to: BreakerState,
}

/// The right to make one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) generation: u32,
    pub(crate) row: Row,
    /// Which probe, if it is one.
    pub(crate) probe: Option<NonZeroU32>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Success {
        slow: bool,
    },
    Failure {
        slow: bool,
    },
    /// The tool answered that it never will.
    Permanent,
    /// Nothing can be said of the tool.
    Neither,
}

/// Why a call may not go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) state: BreakerState,
    /// Until a probe is let through; unknown while others are out, and when forced open.
    pub(crate) left: Option<Duration>,
    /// It only would be refused.
    pub(crate) shadow: bool,
}

impl Phase {
    const fn state(&self) -> BreakerState {
        match self {
            Self::Closed => BreakerState::Closed,
            Self::Open { .. } => BreakerState::Open,
            Self::HalfOpen { .. } => BreakerState::HalfOpen,
            Self::Forced => BreakerState::ForcedOpen,
        }
    }
}

impl Machine {
    pub(crate) fn new(name: Arc<str>, settings: Arc<Settings>) -> Self {
        let phase = if settings.force_open { Phase::Forced } else { Phase::Closed };
        Self {
            name,
            mode: settings.mode,
            settings,
            phase,
            generation: 0,
            first: 0,
            window: Window::default(),
            ramp: None,
            edges: VecDeque::new(),
        }
    }

    /// A closed one that knows of nothing but successes, all of them as old as that.
    pub(crate) fn resumed(
        name: Arc<str>,
        settings: Arc<Settings>,
        (first, generation): (u32, u32),
        since: Option<Instant>,
    ) -> Self {
        let window = since.map_or_else(Window::default, Window::begun);
        Self { first, generation, window, ..Self::new(name, settings) }
    }

    /// How many successes it knows of, if [`resumed`](Self::resumed) could take its place.
    pub(crate) fn only_successes(&self) -> Option<u64> {
        let is_plain = self.is_closed() && self.is_as_set() && self.edges.is_empty();
        self.window.only_successes().filter(|_| is_plain)
    }

    pub(crate) const fn generation(&self) -> u32 {
        self.generation
    }

    pub(crate) const fn mode(&self) -> Mode {
        self.mode
    }

    /// The mode, and whether it is forced open.
    pub(crate) const fn orders(&self) -> (Mode, bool) {
        (self.mode, matches!(self.phase, Phase::Forced))
    }

    /// The mode, where it is not the one of the settings.
    fn order(&self) -> Option<Mode> {
        (self.mode != self.settings.mode).then_some(self.mode)
    }

    /// Whether it is closed, and remembers nothing that speaks against the tool.
    pub(crate) const fn is_clean(&self) -> bool {
        self.is_closed() && self.window.is_clean()
    }

    pub(crate) const fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed)
    }

    /// Whether it is closed, and no call is refused.
    pub(crate) const fn lets_all_pass(&self) -> bool {
        self.is_closed() && self.ramp.is_none()
    }

    /// The state; where the clock alone changed it, that counts from now on.
    pub(crate) fn state(&mut self, now: Instant) -> BreakerState {
        self.settle(now);
        self.phase.state()
    }

    /// Asks for the right to make a call; `None`: it passes and does not count.
    pub(crate) fn admit(&mut self, row: Row, now: Instant) -> Result<Option<Ticket>, Refusal> {
        self.settle(now);
        let generation = self.generation;
        let ticket = |probe| Some(Ticket { generation, row, probe });
        match &mut self.phase {
            Phase::Closed if self.mode == Mode::Disabled => return Ok(None),
            Phase::Closed if self.ramp.as_mut().is_none_or(|ramp| ramp.admits(now)) => {
                return Ok(ticket(None));
            }
            Phase::HalfOpen { probes, next, .. }
                if probes.len() < self.settings.max_probes as usize =>
            {
                let id = *next;
                *next = next.checked_add(1).unwrap_or(NonZeroU32::MIN);
                probes.push(Probe { id, since: now, row });
                return Ok(ticket(Some(id)));
            }
            Phase::Closed | Phase::HalfOpen { .. } | Phase::Open { .. } | Phase::Forced => {}
        }
        let (left, shadow) = (self.time_left(now), self.mode == Mode::Shadow);
        Err(Refusal { state: self.phase.state(), left, shadow })
    }

    /// From when until when it refuses all calls; without end while it is forced open. `None`: it
    /// does not.
    pub(crate) fn refuses(&self) -> Option<Option<(Instant, Instant)>> {
        match self.phase {
            Phase::Open { since, cooldown } => Some(Some((since, since + cooldown))),
            Phase::Forced => Some(None),
            Phase::Closed | Phase::HalfOpen { .. } => None,
        }
    }

    /// Whether it matters how long calls take.
    pub(crate) fn times_calls(&self) -> bool {
        self.settings.slow.is_some()
    }

    /// Counts successes of calls of this generation, while [`fast_lane`](Self::fast_lane) allows.
    pub(crate) fn add_successes(&mut self, count: u64) {
        self.window.add_successes(count);
    }

    /// Until when successes may be added up without asking the machine; `None` if never, because
    /// the breaker is not closed or a success could open it.
    pub(crate) fn fast_lane(&self, now: Instant) -> Option<Instant> {
        let open_to_all = self.is_closed() && !self.window.is_watched(now, &self.settings);
        self.window.lap_end(&self.settings).filter(|_| open_to_all)
    }

    /// A call ended. Says whether that counted: not if the breaker has changed its state since.
    pub(crate) fn end(&mut self, ticket: Ticket, end: End, now: Instant) -> bool {
        if ticket.generation == self.generation {
            self.settle(now);
        }
        if ticket.generation != self.generation {
            return false;
        }
        match ticket.probe {
            Some(id) => self.probe_ended(id, ticket.row, end, now),
            None => self.call_ended(ticket.row, end, now),
        }
        true
    }

    /// Refuses all calls until it is reset.
    pub(crate) fn force_open(&mut self) {
        if self.mode == Mode::Disabled {
            self.mode = Mode::Enforce;
        }
        self.step(Phase::Forced);
    }

    /// Back to the beginning, in the mode of the settings.
    pub(crate) fn reset(&mut self) {
        self.mode = self.settings.mode;
        self.close();
    }

    pub(crate) fn set_mode(&mut self, mode: Mode) {
        if mode == Mode::Disabled {
            self.close();
        }
        self.mode = mode;
    }

    /// The oldest transition that observers were not notified of.
    pub(crate) fn next_edge(&mut self) -> Option<Edge> {
        self.edges.pop_front()
    }

    pub(crate) fn has_edges(&self) -> bool {
        !self.edges.is_empty()
    }

    pub(crate) fn tally(&self, now: Instant) -> Tally {
        self.window.tally(now, &self.settings)
    }

    pub(crate) fn consecutive_failures(&self) -> u32 {
        self.window.run()
    }

    /// Until a probe is let through, if the breaker is open.
    pub(crate) fn time_left(&self, now: Instant) -> Option<Duration> {
        let Phase::Open { since, cooldown } = &self.phase else { return None };
        Some(cooldown.saturating_sub(now.saturating_duration_since(*since)))
    }

    /// Probes in flight, and how many have succeeded.
    pub(crate) fn probes(&self) -> (u32, u32) {
        match &self.phase {
            Phase::HalfOpen { probes, successes, .. } => {
                (u32::try_from(probes.len()).unwrap_or(u32::MAX), *successes)
            }
            _ => (0, 0),
        }
    }

    /// Whether a new breaker would decide the same for the same key.
    pub(crate) fn is_blank(&self, now: Instant) -> bool {
        let tally = self.tally(now);
        self.is_closed() && self.is_as_set() && (tally.failures, tally.slow) == (0, 0)
    }

    /// Whether no operator has changed what a new machine would not know.
    fn is_as_set(&self) -> bool {
        self.mode == self.settings.mode && !self.settings.force_open && self.ramp.is_none()
    }
}

#[cfg(all(test, not(tr_loom)))]
mod tests;
