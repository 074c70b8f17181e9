//! What a machine knows, to be kept over a restart.
use super::{Machine, Phase};
use crate::{
    epoch::Epoch,
    snapshot::{Saved, SavedState},
    window::Window,
};
use std::num::NonZeroU32;

impl Machine {
    /// What it knows, with wall times; the name and the last failure are for others to add.
    pub(crate) fn saved(&self, epoch: Epoch) -> Saved {
        let state = match &self.phase {
            Phase::Closed => SavedState::Closed,
            Phase::Open { .. } => {
                let left = self.time_left(epoch.now).unwrap_or_default();
                SavedState::Open { until: epoch.wall_after(left) }
            }
            Phase::HalfOpen { successes, .. } => SavedState::HalfOpen { successes: *successes },
            Phase::Forced => SavedState::ForcedOpen,
        };
        let (name, window) = (self.name.as_ref().to_owned(), self.window.saved(epoch));
        Saved { name, mode: self.mode, state, window, last_failure: None }
    }

    /// Takes over what another one knew.
    pub(crate) fn restore(&mut self, saved: &Saved, epoch: Epoch) {
        let settings = &self.settings;
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
        (self.mode, self.window) = (saved.mode, Window::restored(&saved.window, epoch, settings));
        self.step(phase);
    }
}
