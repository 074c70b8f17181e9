//! What is recorded of a run: counts by the second.
use crate::plan::index;
use std::time::Duration;

/// The counts of one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Second {
    /// Calls that began in it,
    pub(crate) calls: u32,
    /// and those of them that ended well, whenever that was,
    pub(crate) good: u32,
    /// and those that did not.
    pub(crate) bad: u32,
    /// Attempts that reached the backend in it,
    pub(crate) attempts: u32,
    /// and those of them that brought their callers nothing.
    pub(crate) wasted: u32,
    /// Attempts that the backend finished in it, whether anybody still waited or not.
    pub(crate) served: u32,
}

impl Second {
    /// The share of its calls that ended well; all, if there were none.
    pub(crate) fn goodput(&self) -> f64 {
        if self.calls == 0 { 1.0 } else { f64::from(self.good) / f64::from(self.calls) }
    }
}

/// A run, second by second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tape(Vec<Second>);

impl Tape {
    pub(crate) fn seconds(&self) -> &[Second] {
        &self.0
    }

    pub(crate) fn at(&mut self, at: Duration) -> &mut Second {
        let index = index(at);
        if index >= self.0.len() {
            self.0.resize(index + 1, Second::default());
        }
        &mut self.0[index]
    }
}
