//! A progress bar while a large file is read.
use indicatif::{ProgressBar, ProgressStyle};

/// Smaller files need no progress bar.
const LARGE: u64 = 64 << 20;

/// A bar for `bytes`, on standard error; hidden unless that is a terminal.
pub(crate) fn bar(bytes: u64) -> ProgressBar {
    if bytes < LARGE {
        return ProgressBar::hidden();
    }
    let look = "{bar:40} {bytes} of {total_bytes}, {eta} left";
    let style = ProgressStyle::with_template(look).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(bytes).with_style(style)
}
