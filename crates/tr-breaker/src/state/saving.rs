//! What a machine knows, to be kept over a restart.
use super::{Machine, Phase};
use crate::{
    epoch::Epoch,
    settings::Mode,
    snapshot::{Saved, SavedState},
    window::Window,
};
use std::num::NonZeroU32;

impl Machine {
    /// What it knows, with wall times; the name and the last failure are for others to add.
    pub(crate) fn saved(&self, epoch: Epoch) -> Saved {
        let state = match &self.phase {
            Phase::Closed => SavedState::Closed,
            // The settings say so, as long as they do.
            Phase::Forced if self.settings.force_open => SavedState::Closed,
            Phase::Open { .. } => {
                let left = self.time_left(epoch.now).unwrap_or_default();
                SavedState::Open { until: epoch.wall_after(left) }
            }
            Phase::HalfOpen { successes, .. } => SavedState::HalfOpen { successes: *successes },
            Phase::Forced => SavedState::ForcedOpen,
        };
        let (name, window) = (self.name.as_ref().to_owned(), self.window.saved(epoch));
        Saved { name, order: self.order(), state, window, last_failure: None }
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
            SavedState::Closed => Phase::Closed,
            SavedState::Open { until } => {
                let cooldown = epoch.until(until).min(settings.longest_cooldown());
                Phase::Open { since: epoch.now, cooldown }
            }
            SavedState::HalfOpen { successes } => Phase::HalfOpen {
                probes: Vec::new(),
                // The last one that it takes is still to come.
                successes: successes.min(settings.successes_to_close - 1),
                next: NonZeroU32::MIN,
            },
            SavedState::ForcedOpen => Phase::Forced,
        };
        (self.mode, self.window) = (mode, Window::restored(&saved.window, epoch, settings));
        self.step(phase);
    }
}
