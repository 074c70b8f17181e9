//! [`Watch`]: gets the trace entries of running turns (`Turns::watch`).
use crate::trace::Entry;
use std::fmt::Debug;

/// Gets each entry of a turn's trace as it happens: each error with its call, tool, attempt and
/// turn, and each decision.
///
/// Called while the turn is polled, so it must not block.
pub trait Watch: Debug + Send + Sync {
    /// Called for each entry.
    fn on_entry(&self, turn: &TurnInfo<'_>, entry: &Entry);
}

/// The turn of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TurnInfo<'t> {
    /// Its name.
    pub turn: &'t str,
    /// The session on whose behalf it runs.
    pub session: Option<&'t str>,
    /// How many calls it has.
    pub calls: usize,
}
