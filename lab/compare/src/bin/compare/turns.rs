//! Two ways to a server that take turns.
use benches::measure::Effort;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt as _,
    path::Path,
};
use tokio::time::Instant;
use tr_core::BoxError;

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// A read without an ID.
    Read,
    /// A mutating call with a key.
    Pay,
    /// A read with an answer of 10 MiB.
    Large,
    /// A mutating call with a key, and an answer of 10 MiB.
    PayLarge,
    /// A read that an event answers.
    Stream,
}

impl Call {
    /// The tool that is called. One that no list has is not declared read-only.
    pub(crate) const fn tool(self) -> &'static str {
        match self {
            Self::Read => "echo",
            Self::Pay => "pay",
            Self::Large => "large",
            Self::PayLarge => "pay-large",
            Self::Stream => "stream",
        }
    }

    /// The key, as a member of the params, if the call has one.
    pub(crate) fn key(self, session: u32, id: u64) -> String {
        match self {
            Self::Pay | Self::PayLarge => {
                format!(r#","_meta":{{"idempotencyKey":"{session}-{id}"}}"#)
            }
            _ => String::new(),
        }
    }

    /// Whether an answer is that of the call with this number; with `None`, of any.
    pub(crate) fn is_answered_by(self, answer: &str, id: Option<u64>) -> bool {
        if matches!(self, Self::Large | Self::PayLarge) {
            return answer.len() > compare::echo::LARGE;
        }
        let text = id.map_or(r#""text":"00"#.to_owned(), |id| format!(r#""text":"{id:016}"#));
        // Some servers put a blank behind a colon.
        answer.replace(r#""text": ""#, r#""text":""#).contains(&text)
            && !answer.contains(r#""isError":true"#)
    }
}

/// A way to a server.
pub(crate) trait Way {
    /// Makes so many calls at once, and hears all answers.
    fn calls(&mut self, call: Call, at_once: u64) -> Result<(), BoxError>;
}

/// Pages of a file on the same disk that does not grow, as SQLite's log does not once it is in use.
pub(crate) struct Page {
    file: File,
    next: u64,
}

impl Page {
    const BYTES: [u8; 4096] = [1; 4096];
    const PAGES: u64 = 256;

    pub(crate) fn new(file: &Path) -> Result<Self, BoxError> {
        fs::write(file, Self::BYTES.repeat(Self::PAGES as usize))?;
        let file = File::options().write(true).open(file)?;
        file.sync_all()?;
        Ok(Self { file, next: 0 })
    }

    /// Nanoseconds of one sync.
    pub(crate) fn sync(&mut self) -> Result<f64, BoxError> {
        self.file.write_all_at(&Self::BYTES, self.next * Self::BYTES.len() as u64)?;
        self.next = (self.next + 1) % Self::PAGES;
        let begin = Instant::now();
        self.file.sync_data()?;
        Ok(begin.elapsed().as_nanos() as f64)
    }
}

/// How two ways take turns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// Calls of one way before it is the other's turn.
    pub(crate) calls: u64,
    pub(crate) rounds: usize,
    /// The first rounds, which warm caches.
    pub(crate) skipped: usize,
}

impl Turn {
    pub(crate) const fn of(effort: Effort) -> Self {
        Self { calls: 50, rounds: effort.batches, skipped: 3 }
    }
}

/// Keeps this thread, and the programs that it starts, on one core. Where the system puts the processes of two
/// sessions decides more than what they do, and differs from run to run.
pub(crate) struct OneCore(CpuSet);

impl OneCore {
    pub(crate) fn new() -> io::Result<Self> {
        let all = sched_getaffinity(None)?;
        let mut one = CpuSet::new();
        one.set((0..CpuSet::MAX_CPU).find(|core| all.is_set(*core)).unwrap_or_default());
        sched_setaffinity(None, &one)?;
        Ok(Self(all))
    }
}

impl Drop for OneCore {
    fn drop(&mut self) {
        let _ = sched_setaffinity(None, &self.0);
    }
}

/// Nanoseconds per call of each way, which take turns.
pub(crate) fn side_by_side<W: Way>(
    mut ways: [W; 2],
    (turn, call, at_once): (Turn, Call, u64),
    quantile: f64,
    mut between: impl FnMut() -> Result<(), BoxError>,
) -> Result<[f64; 2], BoxError> {
    let mut taken = [Vec::new(), Vec::new()];
    for round in 0..turn.rounds + turn.skipped {
        between()?;
        for (way, taken) in ways.iter_mut().zip(&mut taken) {
            for _ in 0..turn.calls.div_ceil(at_once) {
                let since = Instant::now();
                way.calls(call, at_once)?;
                if round >= turn.skipped {
                    taken.push(since.elapsed().as_nanos() as f64 / at_once as f64);
                }
            }
        }
    }
    Ok(taken.map(|mut taken| {
        taken.sort_by(f64::total_cmp);
        taken[((taken.len() - 1) as f64 * quantile) as usize]
    }))
}
