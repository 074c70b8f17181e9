//! Who wants to know what happens in turns.
use crate::trace::Entry;
use std::fmt::Debug;

/// Is told everything that a turn's trace records, as it happens: each error with its call, its
/// tool, the attempt and the turn, and each decision.
///
/// Called on the turn's path, so it must not block.
pub trait Watch: Debug + Send + Sync {
    /// Something happened.
    fn on_entry(&self, turn: &TurnInfo<'_>, entry: &Entry);
}

/// The turn in which something happened.
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
