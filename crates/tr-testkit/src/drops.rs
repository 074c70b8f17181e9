//! Drops futures at random points, again and again, a few at a time.
//!
//! # When to use
//!
//! To show that a layer leaks nothing (permits, tokens, claims, waiters) when calls are dropped.
//! The laws drop one call at each of its await points; this drops calls that overlap and wait for
//! one another.
//!
//! # Example
//!
//! ```
//! use tower::{ServiceExt, limit::ConcurrencyLimit};
//! use std::time::Duration;
//! use tr_testkit::{drops, tool::{Scripted, Step}};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
//! let tool = Scripted::script([Step::after(Duration::from_millis(5), Step::Ok(()))]).then_repeat_last();
//! let asked = tool.handle();
//! let limited = ConcurrencyLimit::new(tool, 2);
//!
//! let report = drops::at_random(7, 1_000, || limited.clone().oneshot(())).await;
//!
//! assert_eq!(report.finished + report.dropped, 1_000);
//! assert_eq!(report.stuck, 0); // no call waited for a leaked permit
//! assert_eq!(asked.in_flight(), 0);
//! limited.oneshot(()).await.unwrap(); // and it still works
//! # }
//! ```
//!
//! The clock must be paused (`start_paused = true`): waiting then costs nothing, and one seed gives one run.

use crate::drive::{Driven, End, PATIENCE};
use std::{future::poll_fn, task::Poll};

/// The most futures that are alive at once.
const GROUP: u64 = 8;

/// The ends of the futures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Ran to their end.
    pub finished: u64,
    /// Were dropped before it, some before the first poll.
    pub dropped: u64,
    /// Were not woken for an hour of tokio's time, and then dropped: a lost wake-up, or a tool that
    /// hangs.
    pub stuck: u64,
}

/// Makes `rounds` futures in groups of one to eight and drops each after a random number of polls, or lets it end.
///
/// The number of polls is random, up to just past the longest run so far, so that nearly every
/// await point is reached. The same `seed` gives the same drops.
pub async fn at_random<F: Future>(seed: u64, rounds: u64, mut make: impl FnMut() -> F) -> Report {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut report = Report::default();
    let mut longest = 1;
    let mut left = rounds;
    while left > 0 {
        let size = rng.u64(1..=GROUP.min(left));
        left -= size;
        let mut group: Vec<_> =
            (0..size).map(|_| (Driven::new(make()), rng.usize(0..=longest))).collect();
        let all_gone = poll_fn(|cx| {
            group.retain_mut(|(future, allowance)| {
                let Poll::Ready(end) = future.poll_within(cx, *allowance) else { return true };
                longest = longest.max(future.polls + 1);
                match end {
                    End::Finished(_) => report.finished += 1,
                    End::Spent | End::Stuck => report.dropped += 1,
                }
                false
            });
            if group.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        });
        if tokio::time::timeout(PATIENCE, all_gone).await.is_err() {
            report.stuck += group.len() as u64;
        }
    }
    report
}
