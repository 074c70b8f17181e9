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
mod steps;

use crate::{
    fast_path::Published,
    ramp::Ramp,
    settings::{Mode, Settings, salt_of},
    window::{Tally, Window},
};
use std::{
    collections::VecDeque,
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};
use tr_policy::{BreakerState, Effect};

/// The state machine of one breaker. There may be a million of these, so what few of them need is boxed.
#[derive(Debug)]
pub(crate) struct Circuit {
    settings: Arc<Settings>,
    pub(crate) mode: Mode,
    phase: Phase,
    /// Counts the steps, from 1, and is never 0: a call that was admitted in another generation changes
    /// nothing.
    generation: u32,
    /// Makes its cooldowns differ from those of others.
    salt: u16,
    window: Window,
    /// Those that observers were not notified of yet.
    transitions: Option<Box<Transitions>>,
}

#[derive(Debug, Default)]
struct Transitions(VecDeque<Transition>);

#[derive(Debug)]
enum Phase {
    /// After probes have closed it, a ramp may hold back some calls.
    Closed {
        ramp: Option<Box<Ramp>>,
    },
    Open(Box<Open>),
    HalfOpen(Box<HalfOpen>),
    Forced,
}

#[derive(Debug)]
struct Open {
    since: Instant,
    cooldown: Duration,
}

#[derive(Debug)]
struct HalfOpen {
    probes: Vec<Probe>,
    successes: u32,
    next: NonZeroU32,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    id: NonZeroU32,
    since: Instant,
    effect: Option<Effect>,
}

/// A change of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transition {
    pub(crate) from: BreakerState,
    pub(crate) to: BreakerState,
}

/// The right to make one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) generation: u32,
    pub(crate) effect: Option<Effect>,
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
    /// A repeat would end in the same way.
    Permanent {
        /// The tool itself said so: it works.
        answered: bool,
    },
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
    const CLOSED: Self = Self::Closed { ramp: None };

    fn open(since: Instant, cooldown: Duration) -> Self {
        Self::Open(Box::new(Open { since, cooldown }))
    }

    fn half_open(successes: u32) -> Self {
        Self::HalfOpen(Box::new(HalfOpen { probes: Vec::new(), successes, next: NonZeroU32::MIN }))
    }

    const fn state(&self) -> BreakerState {
        match self {
            Self::Closed { .. } => BreakerState::Closed,
            Self::Open(_) => BreakerState::Open,
            Self::HalfOpen(_) => BreakerState::HalfOpen,
            Self::Forced => BreakerState::ForcedOpen,
        }
    }
}

impl Circuit {
    /// A new one, in the state that its settings say.
    pub(crate) fn new(name: &str, settings: Arc<Settings>) -> Self {
        Self {
            mode: settings.mode,
            phase: if settings.force_open { Phase::Forced } else { Phase::CLOSED },
            generation: 1,
            salt: salt_of(name),
            window: Window::default(),
            transitions: None,
            settings,
        }
    }

    /// The mode, and whether it is forced open.
    pub(crate) const fn orders(&self) -> (Mode, bool) {
        (self.mode, matches!(self.phase, Phase::Forced))
    }

    /// Whether it is closed, and remembers nothing that speaks against the tool.
    pub(crate) const fn is_clean(&self) -> bool {
        self.is_closed() && self.window.is_clean()
    }

    const fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed { .. })
    }

    /// The state; where the clock alone changed it, that counts from now on.
    pub(crate) fn state(&mut self, now: Instant) -> BreakerState {
        self.settle(now);
        self.phase.state()
    }

    /// What calls read instead of asking it.
    #[inline]
    pub(crate) fn published(&self) -> Published {
        let (mut passes, mut refused_until, mut quiet_until) = (None, None, None);
        match &self.phase {
            Phase::Closed { ramp } => {
                let all_pass = ramp.is_none() && self.mode != Mode::Disabled;
                passes = all_pass.then_some(self.generation);
                quiet_until = self.window.quiet_until(&self.settings);
            }
            Phase::Open(open) if self.mode == Mode::Enforce => {
                refused_until = Some(open.since + open.cooldown);
            }
            Phase::Open(_) | Phase::HalfOpen(_) | Phase::Forced => {}
        }
        Published { passes, refused_until, quiet_until }
    }

    /// Asks for the right to make a call; `None`: it passes and does not count.
    pub(crate) fn admit(
        &mut self,
        effect: Option<Effect>,
        now: Instant,
    ) -> Result<Option<Ticket>, Refusal> {
        self.settle(now);
        let generation = self.generation;
        let ticket = |probe| Ok(Some(Ticket { generation, effect, probe }));
        match &mut self.phase {
            Phase::Closed { .. } if self.mode == Mode::Disabled => Ok(None),
            Phase::Closed { ramp } => match ramp.as_mut().is_none_or(|ramp| ramp.admits(now)) {
                true => ticket(None),
                false => Err(self.refusal(now)),
            },
            Phase::HalfOpen(half) if half.probes.len() < self.settings.max_probes as usize => {
                let id = half.next;
                half.next = id.checked_add(1).unwrap_or(NonZeroU32::MIN);
                half.probes.push(Probe { id, since: now, effect });
                ticket(Some(id))
            }
            _ => Err(self.refusal(now)),
        }
    }

    /// Why a call would be refused now, whatever it is; `None` also where that is not known before it comes.
    pub(crate) fn refuses(&mut self, now: Instant) -> Option<Refusal> {
        self.settle(now);
        let refuses = match &self.phase {
            Phase::Closed { .. } => false,
            Phase::HalfOpen(half) => half.probes.len() >= self.settings.max_probes as usize,
            Phase::Open(_) | Phase::Forced => true,
        };
        (refuses && self.mode == Mode::Enforce).then(|| self.refusal(now))
    }

    fn refusal(&self, now: Instant) -> Refusal {
        let (left, shadow) = (self.time_left(now), self.mode == Mode::Shadow);
        Refusal { state: self.phase.state(), left, shadow }
    }

    /// Counts a success without its time, where no rule asks for that. `false`: it has to be asked with
    /// the time all the same.
    #[inline]
    pub(crate) fn succeed_untimed(&mut self, ticket: Ticket) -> bool {
        ticket.generation == self.generation
            && ticket.probe.is_none()
            && self.window.success_untimed(&self.settings)
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
            Some(id) => self.probe_ended(id, ticket.effect, end, now),
            None => self.call_ended(ticket.effect, end, now),
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
        self.close(None);
    }

    pub(crate) fn set_mode(&mut self, mode: Mode) {
        if mode == Mode::Disabled {
            self.close(None);
        }
        self.mode = mode;
    }

    /// The oldest transition that observers were not notified of.
    pub(crate) fn next_transition(&mut self) -> Option<Transition> {
        let next = self.transitions.as_mut()?.0.pop_front();
        if next.is_none() {
            self.transitions = None;
        }
        next
    }

    #[inline]
    pub(crate) const fn has_transitions(&self) -> bool {
        self.transitions.is_some()
    }

    pub(crate) fn tally(&self, now: Instant) -> Tally {
        self.window.tally(now, &self.settings)
    }

    pub(crate) const fn consecutive_failures(&self) -> u32 {
        self.window.run
    }

    /// Until a probe is let through, if the breaker is open.
    pub(crate) fn time_left(&self, now: Instant) -> Option<Duration> {
        let Phase::Open(open) = &self.phase else { return None };
        Some(open.cooldown.saturating_sub(now.saturating_duration_since(open.since)))
    }

    /// Probes in flight, and how many have succeeded.
    pub(crate) fn probes(&self) -> (u32, u32) {
        match &self.phase {
            Phase::HalfOpen(half) => {
                (u32::try_from(half.probes.len()).unwrap_or(u32::MAX), half.successes)
            }
            _ => (0, 0),
        }
    }

    /// Whether a new breaker would decide the same for the same key.
    pub(crate) fn is_blank(&self, now: Instant) -> bool {
        let tally = self.tally(now);
        let is_as_set = self.mode == self.settings.mode && !self.settings.force_open;
        let is_plain = matches!(self.phase, Phase::Closed { ramp: None });
        is_plain && is_as_set && (tally.failures, tally.slow) == (0, 0)
    }
}

#[cfg(test)]
mod tests;
