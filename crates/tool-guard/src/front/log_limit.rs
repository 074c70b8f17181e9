//! How often the same thing is logged.
use std::sync::Mutex;
use tokio::time::{Duration, Instant};
use tr_core::internal::lock;

/// So many lines for each [`WHILE`].
const MOST: u32 = 10;
const WHILE: Duration = Duration::from_secs(1);

/// Counts what was logged: clients could fill a disk with requests that are refused.
#[derive(Debug, Default)]
pub(crate) struct LogLimit(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    since: Option<Instant>,
    lines: u32,
    left_out: u64,
}

impl LogLimit {
    /// Whether to log it now, and how many were left out since the last line.
    pub(crate) fn now(&self) -> Option<u64> {
        let mut counts = lock(&self.0);
        let now = Instant::now();
        if counts.since.is_none_or(|since| now.duration_since(since) >= WHILE) {
            (counts.since, counts.lines) = (Some(now), 0);
        }
        if counts.lines == MOST {
            counts.left_out += 1;
            return None;
        }
        counts.lines += 1;
        Some(std::mem::take(&mut counts.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn ten_lines_a_second_and_the_number_of_the_others() {
        let told = LogLimit::default();
        let lines: Vec<_> = (0..1_000).map(|_| told.now()).collect();
        assert_eq!(lines.iter().flatten().count(), 10);
        advance(WHILE).await;
        assert_eq!((told.now(), told.now()), (Some(990), Some(0)));
    }
}
