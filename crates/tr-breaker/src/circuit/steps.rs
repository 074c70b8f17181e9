//! Every step from one state to another, and what makes it.
use super::{Circuit, End, Phase, Transition};
use crate::{
    ramp::Ramp,
    window::{BadCall, Window},
};
use std::{num::NonZeroU32, time::Instant};
use tr_policy::Effect;

impl Circuit {
    /// Makes the steps that time alone makes, each at its own moment.
    #[inline]
    pub(super) fn settle(&mut self, now: Instant) {
        if !matches!(self.phase, Phase::Closed { ramp: None }) {
            self.settle_by_clock(now);
        }
    }

    #[inline(never)]
    fn settle_by_clock(&mut self, now: Instant) {
        loop {
            match &mut self.phase {
                Phase::Open(open) => {
                    // A clock that went back must not prolong the cooldown.
                    open.since = open.since.min(now);
                    if now.duration_since(open.since) < open.cooldown {
                        return;
                    }
                    self.step(Phase::half_open(0));
                }
                Phase::HalfOpen(half) => {
                    for probe in &mut half.probes {
                        probe.since = probe.since.min(now);
                    }
                    let ends = half.probes.iter();
                    let ends = ends.map(|p| (p.since + self.settings.lease(p.effect), p.effect));
                    let Some((hung, effect)) = ends.min_by_key(|(end, _)| *end) else { return };
                    if now < hung {
                        return;
                    }
                    self.open(hung, effect);
                }
                Phase::Closed { ramp } => {
                    if ramp.as_mut().is_some_and(|ramp| ramp.left(now).is_none()) {
                        *ramp = None;
                    }
                    return;
                }
                Phase::Forced => return,
            }
        }
    }

    pub(super) fn call_ended(&mut self, effect: Option<Effect>, end: End, now: Instant) {
        let settings = &*self.settings;
        match end {
            End::Success { slow: false } => {
                self.window.success(now, settings);
                // By filling up the least number of calls, or by coming when older ones have left
                // the window, a success can open it.
                if !self.window.is_watched(now, settings) {
                    return;
                }
            }
            End::Success { slow } => {
                self.window.bad(now, BadCall { failed: false, slow }, settings);
            }
            End::Failure { slow } => self.window.bad(now, BadCall { failed: true, slow }, settings),
            End::Permanent { .. } => return self.window.end_run(),
            End::Neither => return,
        }
        if self.window.trips(now, settings.rules(effect), settings) {
            self.open(now, effect);
        }
    }

    pub(super) fn probe_ended(
        &mut self,
        id: NonZeroU32,
        effect: Option<Effect>,
        end: End,
        now: Instant,
    ) {
        let Phase::HalfOpen(half) = &mut self.phase else { return };
        half.probes.retain(|probe| probe.id != id);
        match end {
            // A service that answers 404 is back.
            End::Success { slow: false } | End::Permanent { answered: true } => {
                half.successes += 1;
                if half.successes >= self.settings.successes_to_close {
                    self.close(self.settings.ramp.map(|lasts| Box::new(Ramp::new(now, lasts))));
                }
            }
            End::Success { .. } | End::Failure { .. } => self.open(now, effect),
            End::Permanent { answered: false } | End::Neither => {}
        }
    }

    fn open(&mut self, since: Instant, effect: Option<Effect>) {
        let mut cooldown = self.settings.rules(effect).cooldown;
        if let Some(jitter) = self.settings.jitter {
            // The previous state leaves nothing else behind.
            cooldown = jitter.lengthen(cooldown, self.salt, self.generation);
        }
        self.step(Phase::open(since, cooldown));
    }

    pub(super) fn close(&mut self, ramp: Option<Box<Ramp>>) {
        self.window = Window::default();
        self.step(Phase::Closed { ramp });
    }

    pub(super) fn step(&mut self, phase: Phase) {
        let transition = Transition { from: self.phase.state(), to: phase.state() };
        self.phase = phase;
        self.generation = self.generation.wrapping_add(1).max(1);
        if transition.from != transition.to {
            self.transitions.get_or_insert_default().0.push_back(transition);
        }
    }
}
