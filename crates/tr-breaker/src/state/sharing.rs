//! What a machine shares with those of other processes.
use super::{Machine, Phase};
use crate::{
    settings::Mode,
    share::decision::{Decision, State},
    window::Window,
};
use std::time::Instant;

/// A machine, as sharing sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) generation: u32,
    pub(crate) mode: Mode,
    /// `None` while it is half open: each process probes for itself.
    pub(crate) state: Option<State>,
    pub(crate) configured: Mode,
    /// The mode, where it is not the one that was configured.
    pub(crate) order: Option<Mode>,
    /// Its state and its mode are those of a new one.
    pub(crate) is_as_configured: bool,
}

impl Machine {
    /// How it is now, once time has done its part.
    pub(crate) fn view(&mut self, now: Instant) -> View {
        self.settle(now);
        let state = match self.phase {
            Phase::Closed => Some(State::Closed),
            Phase::Open { .. } => {
                Some(State::Open { left: self.time_left(now).unwrap_or_default() })
            }
            Phase::HalfOpen { .. } => None,
            Phase::Forced => Some(State::Forced),
        };
        let configured = if self.settings.force_open { State::Forced } else { State::Closed };
        let order = self.order();
        View {
            generation: self.generation,
            mode: self.mode,
            configured: self.settings.mode,
            state,
            order,
            is_as_configured: state == Some(configured) && order.is_none(),
        }
    }

    /// Does as another process has decided. What its own configuration forces open stays so.
    pub(crate) fn adopt(&mut self, decision: &Decision, now: Instant) {
        if self.settings.force_open && matches!(self.phase, Phase::Forced) {
            return;
        }
        let mode = decision.order.unwrap_or(self.settings.mode);
        if mode == Mode::Disabled {
            return self.set_mode(mode);
        }
        self.mode = mode;
        let phase = match decision.state {
            State::Closed => Phase::Closed,
            State::Open { left } => {
                let cooldown = left.min(self.settings.longest_cooldown());
                Phase::Open { since: now, cooldown }
            }
            State::Forced => Phase::Forced,
        };
        match (&self.phase, &phase) {
            // What it has counted says nothing of when others closed theirs.
            (Phase::Closed, Phase::Closed) | (Phase::Forced, Phase::Forced) => {}
            _ => {
                self.window = Window::default();
                self.step(phase);
            }
        }
    }
}
