//! The states of a call, how long each lasts, and their names in a store.
use std::{str::FromStr, time::Duration};

/// Milliseconds on the store's clock: since the Unix epoch, for records that outlive a process.
pub type Millis = u64;

/// How long each state lasts, in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Ttls {
    /// A success.
    pub done: Millis,
    /// A failure, or a call that was cancelled before it started.
    pub failed: Millis,
    /// The lease of a call that runs.
    pub inflight: Millis,
    /// A call of unknown outcome.
    pub unknown: Millis,
}

tr_core::debug_parts! { Ttls, |it|
    done = Duration::from_millis(it.done),
    failed = Duration::from_millis(it.failed),
    inflight = Duration::from_millis(it.inflight),
    unknown = Duration::from_millis(it.unknown)
}

/// The state of a call. `D` is what is kept of a success, `F` of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State<D, F> {
    /// It is running.
    Inflight,
    /// It succeeded.
    Done(D),
    /// It failed, and whether it ran is known, or does not matter.
    Failed(F, Again),
    /// It was cancelled before it started.
    Cancelled(Option<F>),
    /// It may have run, and its end was not recorded.
    Unknown(Option<F>),
}

/// Whether a failed call may be run again before its record expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Again {
    /// It would fail again.
    Never,
    /// If the caller asks for it.
    WhenAsked,
    /// It never started.
    Freely,
}

/// A [`State`] without what is kept of the call, for a column of a table or a field of a hash.
///
/// ```
/// use tr_idempotency::protocol::Phase;
///
/// assert_eq!(Phase::FailedFreely.as_str(), "failed_freely");
/// assert_eq!("unknown".parse(), Ok(Phase::Unknown));
/// ```
// Sealed records have these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// [`State::Inflight`]
    Inflight = 1,
    /// [`State::Done`]
    Done = 2,
    /// [`State::Failed`], [`Again::Never`]
    FailedNever = 3,
    /// [`State::Failed`], [`Again::WhenAsked`]
    FailedWhenAsked = 4,
    /// [`State::Failed`], [`Again::Freely`]
    FailedFreely = 5,
    /// [`State::Cancelled`]
    Cancelled = 6,
    /// [`State::Unknown`]
    Unknown = 7,
}

/// A text that names no phase known to this version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown state `{0}`; a newer version may have written it: update this program")]
pub struct UnknownPhase(Box<str>);

/// All phases, in the order of their numbers.
pub(crate) const ALL: [Phase; 7] = [
    Phase::Inflight,
    Phase::Done,
    Phase::FailedNever,
    Phase::FailedWhenAsked,
    Phase::FailedFreely,
    Phase::Cancelled,
    Phase::Unknown,
];

impl Ttls {
    /// How long this state lasts.
    #[must_use]
    pub const fn of<D, F>(&self, state: &State<D, F>) -> Millis {
        match state {
            State::Inflight => self.inflight,
            State::Done(_) => self.done,
            State::Failed(..) | State::Cancelled(_) => self.failed,
            State::Unknown(_) => self.unknown,
        }
    }
}

impl Phase {
    /// The name that stores write.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Inflight => "inflight",
            Self::Done => "done",
            Self::FailedNever => "failed_never",
            Self::FailedWhenAsked => "failed_when_asked",
            Self::FailedFreely => "failed_freely",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
        }
    }
}

impl FromStr for Phase {
    type Err = UnknownPhase;

    fn from_str(text: &str) -> Result<Self, UnknownPhase> {
        ALL.into_iter().find(|it| it.as_str() == text).ok_or_else(|| UnknownPhase(text.into()))
    }
}

impl<D, F> State<D, F> {
    /// The state without what is kept.
    pub const fn phase(&self) -> Phase {
        match self {
            Self::Inflight => Phase::Inflight,
            Self::Done(_) => Phase::Done,
            Self::Failed(_, Again::Never) => Phase::FailedNever,
            Self::Failed(_, Again::WhenAsked) => Phase::FailedWhenAsked,
            Self::Failed(_, Again::Freely) => Phase::FailedFreely,
            Self::Cancelled(_) => Phase::Cancelled,
            Self::Unknown(_) => Phase::Unknown,
        }
    }
}

impl<B> State<B, B> {
    /// What is kept of the call.
    pub const fn body(&self) -> Option<&B> {
        match self {
            Self::Inflight => None,
            Self::Done(body) | Self::Failed(body, _) => Some(body),
            Self::Cancelled(body) | Self::Unknown(body) => body.as_ref(),
        }
    }

    /// The state of this [`phase`](Self::phase) and [`body`](Self::body).
    pub fn of(phase: Phase, body: Option<B>) -> Self
    where
        B: Default,
    {
        let failed = |body: Option<B>, again| Self::Failed(body.unwrap_or_default(), again);
        match phase {
            Phase::Inflight => Self::Inflight,
            Phase::Done => Self::Done(body.unwrap_or_default()),
            Phase::FailedNever => failed(body, Again::Never),
            Phase::FailedWhenAsked => failed(body, Again::WhenAsked),
            Phase::FailedFreely => failed(body, Again::Freely),
            Phase::Cancelled => Self::Cancelled(body),
            Phase::Unknown => Self::Unknown(body),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_from_its_columns() {
        for phase in ALL {
            assert_eq!(phase.as_str().parse(), Ok(phase));
            let state = State::of(phase, Some(7));
            assert_eq!(state.phase(), phase);
            let body = state.body().copied();
            assert_eq!(body.is_none(), phase == Phase::Inflight);
            assert_eq!(State::of(phase, body), state);
        }
        assert!("later".parse::<Phase>().is_err());
    }
}
