//! From a call's end to the state of its record.
use crate::{
    failure::RecordedFailure,
    protocol::{self, Again, Millis, Ttls},
    store::StoreError,
};
use serde::{Deserialize, Serialize};
use std::{mem, sync::Arc};
use tr_core::{BoxError, Classification, Ran, Verdict, code};

/// The state of a call, as this crate keeps it. A success may be kept without its response.
pub(crate) type State<V> = protocol::State<Option<V>, Failure<V>>;

/// A failure that several callers share.
#[derive(Clone, Debug)]
pub(crate) struct Failure<V> {
    pub(crate) recorded: Arc<RecordedFailure>,
    /// The response that reported it, if there is one and it can be kept.
    pub(crate) response: Option<V>,
    /// The shortened failure, if this one is large.
    pub(crate) brief: Option<Box<Self>>,
}

/// What was dropped from a record to save memory: its response, or the text of its failure.
#[derive(Debug)]
pub(crate) enum Dropped<V> {
    Answer(V),
    Words(Failure<V>),
}

/// What a duplicate gets.
#[derive(Clone, Debug)]
pub(crate) enum Answer<V> {
    /// The same response.
    Response(V),
    /// The same failure, which was an error and not a response.
    Failure(Arc<RecordedFailure>),
    /// It succeeded, but its response was not kept.
    NotKept,
    /// The store refused the call for every caller, or the outcome is unknown; the flag says whether it was
    /// mutating.
    Refused(Refusal, bool),
}

/// Why a call is not run.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    Conflict,
    InFlight,
    TooManyWaiters,
    WaitTimedOut,
    /// With the store's own error; `None` if every record is pinned.
    Full(Option<Arc<StoreError>>),
    Unknown(Option<Arc<RecordedFailure>>),
    /// The store is unavailable: the tool did not run, except perhaps in another process.
    Unavailable(Arc<StoreError>, Ran),
    /// The record cannot be read.
    Unreadable(Arc<StoreError>, Ran),
}

/// The most earlier runs that are kept; the oldest is dropped first.
pub(crate) const RUNS: usize = 16;

/// One run that has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Run {
    pub(crate) started_at: Millis,
    pub(crate) finished_at: Millis,
    pub(crate) success: bool,
    pub(crate) retriable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<Box<str>>,
    /// By an operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) settled: Option<Box<Settlement>>,
}

/// Who recorded how a call of unknown outcome ended, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Settlement {
    /// The person or program.
    pub by: String,
    /// The reason; empty if none was given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// The longest text of a settlement, in characters.
const LONGEST: usize = 1_000;

impl Settlement {
    /// The first 1,000 characters of each text.
    #[must_use]
    pub fn new(by: &str, why: &str) -> Self {
        let cut = |text: &str| text.chars().take(LONGEST).collect();
        Self { by: cut(by), why: cut(why) }
    }
}

impl<V> State<V> {
    /// The response that it keeps.
    pub(crate) fn kept(&self) -> Option<&V> {
        match self {
            Self::Done(value) => value.as_ref(),
            _ => self.failure()?.response.as_ref(),
        }
    }

    /// The failure that it keeps.
    pub(crate) const fn failure(&self) -> Option<&Failure<V>> {
        match self {
            Self::Failed(failure, _)
            | Self::Cancelled(Some(failure))
            | Self::Unknown(Some(failure)) => Some(failure),
            _ => None,
        }
    }

    /// What a record says of that failure.
    pub(crate) fn recorded(&self) -> Option<&RecordedFailure> {
        self.failure().map(|failure| &*failure.recorded)
    }

    /// Whether there is something that [`shrink`](Self::shrink) drops.
    pub(crate) fn can_shrink(&self) -> bool {
        self.kept().is_some() || self.failure().is_some_and(|failure| failure.brief.is_some())
    }

    /// Drops the response and keeps the state; of a failure, keeps the beginning of its text.
    pub(crate) fn shrink(&mut self) -> Option<Dropped<V>> {
        match self {
            Self::Done(value) => value.take().map(Dropped::Answer),
            Self::Failed(failure, _)
            | Self::Cancelled(Some(failure))
            | Self::Unknown(Some(failure)) => failure.shrink(),
            Self::Inflight | Self::Cancelled(None) | Self::Unknown(None) => None,
        }
    }

    /// The state and code alone, without response or error text.
    pub(crate) fn bare(&self) -> Self {
        let bare = |failure: &Failure<V>| Failure {
            recorded: Arc::new(failure.recorded.bare()),
            response: None,
            brief: None,
        };
        match self {
            Self::Inflight => Self::Inflight,
            Self::Done(_) => Self::Done(None),
            Self::Failed(failure, again) => Self::Failed(bare(failure), *again),
            Self::Cancelled(failure) => Self::Cancelled(failure.as_ref().map(bare)),
            Self::Unknown(failure) => Self::Unknown(failure.as_ref().map(bare)),
        }
    }

    pub(crate) const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }
}

impl<V> Failure<V> {
    /// A failure that was returned as an error.
    pub(crate) fn of_error(recorded: Arc<RecordedFailure>) -> Self {
        let brief = recorded.brief();
        let brief = brief.map(|brief| Box::new(Self::new(Arc::new(brief), None, None)));
        Self { recorded, response: None, brief }
    }

    /// A failure that a response reported, with its shortened response.
    pub(crate) fn new(
        recorded: Arc<RecordedFailure>,
        response: Option<V>,
        brief: Option<V>,
    ) -> Self {
        let brief = brief.map(|brief| {
            Box::new(Self { recorded: recorded.clone(), response: Some(brief), brief: None })
        });
        Self { recorded, response, brief }
    }

    fn shrink(&mut self) -> Option<Dropped<V>> {
        match self.brief.take() {
            Some(brief) => Some(Dropped::Words(mem::replace(self, *brief))),
            None => self.response.take().map(Dropped::Answer),
        }
    }
}

impl Run {
    /// The run that led to a state, with its failure.
    pub(crate) fn of<D, F>(
        state: &protocol::State<D, F>,
        recorded: Option<&RecordedFailure>,
        started_at: Millis,
        finished_at: Millis,
    ) -> Option<Self> {
        let success = match state {
            protocol::State::Inflight => return None,
            protocol::State::Done(_) => true,
            _ => false,
        };
        let retriable = is_retriable(state);
        let code = recorded.map(|recorded| recorded.code.clone());
        Some(Self { started_at, finished_at, success, retriable, code, settled: None })
    }
}

/// Whether a repeat of the call may run, and may succeed: [`failed`] lets only those run again whose failure
/// is transient.
pub(crate) const fn is_retriable<D, F>(state: &protocol::State<D, F>) -> bool {
    matches!(state, protocol::State::Failed(_, Again::WhenAsked | Again::Freely))
}

/// The state in which a failure leaves its record.
pub(crate) fn failed<V>(mutating: bool, failure: Failure<V>) -> State<V> {
    match (failure.recorded.verdict, failure.recorded.ran) {
        (Verdict::Cancelled, Ran::No) => State::Cancelled(Some(failure)),
        (Verdict::Cancelled, _) => State::Unknown(Some(failure)),
        (_, Ran::Unknown) if mutating => State::Unknown(Some(failure)),
        // Nothing ran, and the reason is transient (an open breaker, a refused connection, no time
        // left to start): replaying it for minutes would prolong a short outage.
        (Verdict::Transient { .. }, Ran::No) => State::Failed(failure, Again::Freely),
        // It ran, and a second run may do harm, even where the caller asks for it.
        (Verdict::Transient { .. }, Ran::Yes) if mutating => State::Failed(failure, Again::Never),
        (Verdict::Transient { .. }, _) => State::Failed(failure, Again::WhenAsked),
        (Verdict::Permanent | Verdict::Success, _) => State::Failed(failure, Again::Never),
    }
}

/// The state of a call of which only this is known.
pub(crate) fn unknown<V>(verdict: Verdict, why: impl Into<BoxError>) -> State<V> {
    let end = Classification::new(verdict, Ran::Unknown, code::OUTCOME_UNKNOWN);
    let recorded = RecordedFailure::new(end, Some(why.into()));
    State::Unknown(Some(Failure::of_error(Arc::new(recorded))))
}

/// How long a record lasts. A mutating call that failed after it ran keeps its key for as long as
/// one that succeeded: a second run would do the same harm.
pub(crate) fn ttl<V>(ttls: &Ttls, state: &State<V>, mutating: bool) -> Millis {
    match state {
        State::Failed(failure, _) if mutating && failure.recorded.ran != Ran::No => {
            ttls.failed.max(ttls.done)
        }
        _ => ttls.of(state),
    }
}

/// What waiters and later duplicates get.
pub(crate) fn answer<V: Clone>(state: &State<V>, mutating: bool) -> Answer<V> {
    match state {
        State::Done(Some(value)) => Answer::Response(value.clone()),
        State::Done(None) => Answer::NotKept,
        _ => match state.failure() {
            Some(failure) => failure.answer(),
            None => Answer::Refused(Refusal::Unknown(None), mutating),
        },
    }
}

impl<V: Clone> Failure<V> {
    fn answer(&self) -> Answer<V> {
        match &self.response {
            Some(response) => Answer::Response(response.clone()),
            None => Answer::Failure(self.recorded.clone()),
        }
    }
}

#[cfg(test)]
mod tests;
