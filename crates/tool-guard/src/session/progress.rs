//! A progress bar while a large file is read.
use indicatif::{ProgressBar, ProgressStyle};

/// Smaller files need no progress bar.
const LARGE: u64 = 64 << 20;

/// The bar moves after this many bytes: that takes a look at the clock.
const STEP: u64 = 1 << 20;

/// A bar on standard error; hidden unless that is a terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    next: u64,
}

impl Progress {
    /// A bar for `bytes`.
    pub(crate) fn of(bytes: u64) -> Self {
        if bytes < LARGE {
            return Self { bar: ProgressBar::hidden(), next: u64::MAX };
        }
        let look = "{bar:40} {bytes} of {total_bytes}, {eta} left";
        let style = ProgressStyle::with_template(look);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        Self { bar: ProgressBar::new(bytes).with_style(style), next: 0 }
    }

    /// Moves the bar; `done` counts from the beginning.
    pub(crate) fn at(&mut self, done: u64) {
        if done >= self.next {
            self.bar.set_position(done);
            self.next = done.saturating_add(STEP);
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}
