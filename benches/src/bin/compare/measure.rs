//! Times and allocations of runs.
use benches::run::Run;
use rustix::time::{ClockId, clock_gettime};
use tr_testkit::alloc;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Batches of each side; the median counts.
    pub(crate) batches: usize,
    /// How long a batch lasts at least, in nanoseconds.
    pub(crate) batch: f64,
    /// Pairs of windows that are tried for one figure of two threads.
    pub(crate) windows: usize,
}

impl Effort {
    pub(crate) const FULL: Self = Self { batches: 201, batch: 1e6, windows: 2_000 };
    pub(crate) const QUICK: Self = Self { batches: 41, batch: 2e5, windows: 200 };
}

/// Nanoseconds that this thread has worked. Other programs on the machine don't count.
pub(crate) fn worked() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Nanoseconds per operation of each, from batches that take turns.
pub(crate) fn side_by_side<const N: usize>(runs: [Run; N], effort: Effort) -> [f64; N] {
    let mut sides = runs.map(|run| {
        let mut run = run.warm();
        let times = batch_size(&mut run, effort.batch);
        (run, times, Vec::with_capacity(effort.batches))
    });
    for _ in 0..effort.batches {
        for (run, times, taken) in &mut sides {
            taken.push(batch(run, *times) / *times as f64);
        }
    }
    sides.map(|(_, _, mut taken)| median(&mut taken))
}

fn batch(run: &mut Run, times: u64) -> f64 {
    let before = worked();
    run.times(times);
    worked() - before
}

fn batch_size(run: &mut Run, lasting: f64) -> u64 {
    let mut times = 64;
    while batch(run, times) < lasting {
        times *= 2;
    }
    times
}

/// Allocations per operation.
pub(crate) fn allocations(run: Run) -> f64 {
    const TIMES: u64 = 10_000;
    let mut run = run.warm();
    alloc::count(|| run.times(TIMES)).count as f64 / TIMES as f64
}

pub(crate) fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
