//! What to do about loops.

/// What to do about loops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// Nothing: calls pass, and nothing is counted.
    Off,
    /// The model is warned, and nothing is refused.
    Note,
    /// Calls are refused by the limits of their turn. Where the start of a turn is not known, only
    /// a call is refused that is identical to ones that failed because of their args alone. Other
    /// identical failures and the limit of failures only warn, a success of the tool resets its
    /// count, and a failure counts for [`memory`](crate::Builder::memory).
    #[default]
    Block,
    /// Calls are refused by the limits also where the start of a turn is not known: within
    /// `memory`.
    Strict,
}
