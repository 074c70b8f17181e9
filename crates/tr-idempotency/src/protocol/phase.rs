//! States as a column, which stores write beside the bytes that they do not interpret.
use super::{Again, State};
use std::{error::Error, fmt, str::FromStr};

/// A [`State`] without what is kept of the call, for a column of a table or a field of a hash.
///
/// ```
/// use tr_idempotency::protocol::Phase;
///
/// assert_eq!(Phase::FailedFreely.as_str(), "failed_freely");
/// assert_eq!("unknown".parse(), Ok(Phase::Unknown));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// [`State::Inflight`]
    Inflight,
    /// [`State::Done`]
    Done,
    /// [`State::Failed`], [`Again::Never`]
    FailedNever,
    /// [`State::Failed`], [`Again::WhenAsked`]
    FailedWhenAsked,
    /// [`State::Failed`], [`Again::Freely`]
    FailedFreely,
    /// [`State::Cancelled`]
    Cancelled,
    /// [`State::Unknown`]
    Unknown,
}

/// A text that names no phase known to this version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPhase(Box<str>);

const ALL: [Phase; 7] = [
    Phase::Inflight,
    Phase::Done,
    Phase::FailedNever,
    Phase::FailedWhenAsked,
    Phase::FailedFreely,
    Phase::Cancelled,
    Phase::Unknown,
];

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

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for UnknownPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unknown state `{}`; a newer version may have written it: update this program",
            self.0
        )
    }
}

impl Error for UnknownPhase {}

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
