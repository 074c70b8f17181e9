//! Every step from one state to another, and what makes it.
use super::{Edge, End, Machine, Phase};
use crate::{
    ramp::Ramp,
    settings::Row,
    window::{Bad, Window},
};
use std::{num::NonZeroU32, time::Instant};

impl Machine {
    /// Makes the steps that time alone makes, each at its own moment.
    pub(super) fn settle(&mut self, now: Instant) {
        loop {
            match &mut self.phase {
                Phase::Open { since, cooldown } => {
                    // A clock that went back must not prolong the cooldown.
                    *since = (*since).min(now);
                    if now.duration_since(*since) < *cooldown {
                        return;
                    }
                    self.step(Phase::HalfOpen {
                        probes: Vec::new(),
                        successes: 0,
                        next: NonZeroU32::MIN,
                    });
                }
                Phase::HalfOpen { probes, .. } => {
                    for probe in probes.iter_mut() {
                        probe.since = probe.since.min(now);
                    }
                    let ends = probes.iter().map(|p| (p.since + self.settings.lease(p.row), p.row));
                    let Some((hung, row)) = ends.min_by_key(|(end, _)| *end) else { return };
                    if now < hung {
                        return;
                    }
                    self.open(hung, row);
                }
                Phase::Closed => {
                    if self.ramp.as_mut().is_some_and(|ramp| ramp.left(now).is_none()) {
                        self.ramp = None;
                    }
                    return;
                }
                Phase::Forced => return,
            }
        }
    }

    pub(super) fn call_ended(&mut self, row: Row, end: End, now: Instant) {
        let settings = &*self.settings;
        match end {
            End::Success { slow: false } => self.window.success(now, settings),
            End::Success { slow } => self.window.bad(now, Bad { failed: false, slow }, settings),
            End::Failure { slow } => self.window.bad(now, Bad { failed: true, slow }, settings),
            End::Permanent => return self.window.end_run(),
            End::Neither => return,
        }
        if self.window.trips(now, settings.rules(row), settings) {
            self.open(now, row);
        }
    }

    pub(super) fn probe_ended(&mut self, id: NonZeroU32, row: Row, end: End, now: Instant) {
        let Phase::HalfOpen { probes, successes, .. } = &mut self.phase else { return };
        probes.retain(|probe| probe.id != id);
        match end {
            End::Success { slow: false } => {
                *successes += 1;
                if *successes >= self.settings.successes_to_close {
                    self.close();
                    self.ramp = self.settings.ramp.map(|lasts| Ramp::new(now, lasts));
                }
            }
            End::Success { .. } | End::Failure { .. } => self.open(now, row),
            End::Permanent | End::Neither => {}
        }
    }

    pub(super) fn open(&mut self, since: Instant, row: Row) {
        let mut cooldown = self.settings.rules(row).cooldown;
        if let Some(jitter) = self.settings.jitter {
            // The previous state leaves nothing else behind.
            let steps = self.generation.wrapping_sub(self.first);
            cooldown = jitter.lengthen(cooldown, &self.name, steps);
        }
        self.step(Phase::Open { since, cooldown });
    }

    pub(super) fn close(&mut self) {
        self.window = Window::default();
        self.step(Phase::Closed);
    }

    pub(super) fn step(&mut self, phase: Phase) {
        let edge = Edge { from: self.phase.state(), to: phase.state() };
        (self.phase, self.ramp) = (phase, None);
        self.generation = self.generation.wrapping_add(1);
        if edge.from != edge.to {
            self.edges.push_back(edge);
        }
    }
}
