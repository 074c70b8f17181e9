//! What a circuit knows, to be kept over a restart.
use super::{Circuit, Phase};
use crate::{
    settings::Mode,
    snapshot::{Saved, SavedState},
    window::{Epoch, Window},
};

impl Circuit {
    /// What it knows, with wall times.
    pub(crate) fn saved(&self, name: &str, last_failure: Option<&str>, epoch: Epoch) -> Saved {
        let state = match &self.phase {
            Phase::Closed { .. } => SavedState::Closed,
            // The settings say so, as long as they do.
            Phase::Forced if self.settings.force_open => SavedState::Closed,
            Phase::Open(_) => {
                let left = self.time_left(epoch.now).unwrap_or_default();
                SavedState::Open { until: epoch.wall_after(left) }
            }
            Phase::HalfOpen(half) => SavedState::HalfOpen { successes: half.successes },
            Phase::Forced => SavedState::ForcedOpen,
        };
        Saved {
            name: name.to_owned(),
            order: (self.mode != self.settings.mode).then_some(self.mode),
            state,
            window: self.window.saved(epoch),
            last_failure: last_failure.map(str::to_owned),
        }
    }

    /// Restores the state of another one. A state that its own settings force stays.
    pub(crate) fn restore(&mut self, saved: &Saved, epoch: Epoch) {
        let settings = &self.settings;
        if settings.force_open && matches!(self.phase, Phase::Forced) {
            return;
        }
        let mode = saved.order.unwrap_or(settings.mode);
        if mode == Mode::Disabled {
            return self.set_mode(mode);
        }
        let phase = match saved.state {
            SavedState::Closed => Phase::CLOSED,
            SavedState::Open { until } => {
                Phase::open(epoch.now, epoch.until(until).min(settings.derived.longest_cooldown))
            }
            // The last success that it takes is still to come.
            SavedState::HalfOpen { successes } => {
                Phase::half_open(successes.min(settings.successes_to_close - 1))
            }
            SavedState::ForcedOpen => Phase::Forced,
        };
        (self.mode, self.window) = (mode, Window::restored(&saved.window, epoch, settings));
        self.step(phase);
    }
}
