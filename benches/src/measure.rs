//! Times of runs, side by side.
use crate::run::Run;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Batches of each side; the median counts.
    pub batches: usize,
    /// How long a batch lasts at least, in nanoseconds.
    pub batch: f64,
    /// Pairs of windows that are tried for one figure of two threads.
    pub windows: usize,
}

impl Effort {
    /// For figures that are kept.
    pub const FULL: Self = Self { batches: 201, batch: 1e6, windows: 2_000 };
    /// For a look.
    pub const QUICK: Self = Self { batches: 41, batch: 2e5, windows: 200 };
}

/// Nanoseconds per operation of each, from batches that take turns: the median.
#[must_use]
pub fn side_by_side<const N: usize>(runs: [Run; N], effort: Effort) -> [f64; N] {
    turns(runs, effort).map(|mut taken| median(&mut taken))
}

/// Nanoseconds per operation of each, batch by batch. The batches take turns, so that what slows the machine slows all.
#[must_use]
pub fn turns<const N: usize>(runs: [Run; N], effort: Effort) -> [Vec<f64>; N] {
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
    sides.map(|(_, _, taken)| taken)
}

fn batch(run: &mut Run, times: u64) -> f64 {
    run.timed(times).as_nanos() as f64
}

fn batch_size(run: &mut Run, lasting: f64) -> u64 {
    let mut times = 64;
    while batch(run, times) < lasting {
        times *= 2;
    }
    times
}

/// The middle one.
#[must_use]
pub fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
