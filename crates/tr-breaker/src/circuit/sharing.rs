//! What a circuit has decided, and how it adopts what others have.
use super::{Circuit, Phase};
use crate::{
    decision::{Decision, State, View},
    settings::Mode,
    window::Window,
};
use std::time::Instant;

impl Circuit {
    /// How it is now, once time has done its part.
    pub(crate) fn view(&mut self, now: Instant) -> View {
        self.settle(now);
        let state = match self.phase {
            Phase::Closed { .. } => Some(State::Closed),
            Phase::Open(_) => Some(State::Open { left: self.time_left(now).unwrap_or_default() }),
            Phase::HalfOpen(_) => None,
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
            State::Closed => Phase::CLOSED,
            State::Open { left } => {
                Phase::open(now, left.min(self.settings.derived.longest_cooldown))
            }
            State::Forced => Phase::Forced,
        };
        match (&self.phase, &phase) {
            // What it has counted says nothing of when others closed theirs.
            (Phase::Closed { .. }, Phase::Closed { .. }) | (Phase::Forced, Phase::Forced) => {}
            _ => {
                self.window = Window::default();
                self.step(phase);
            }
        }
    }
}
