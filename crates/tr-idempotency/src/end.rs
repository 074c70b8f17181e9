//! From a call's end to the state of its record.
use crate::{
    codec::Recorded,
    protocol::{self, Again, Millis, Ttls},
    remote::obtain::Refused,
};
use std::{
    error::Error,
    fmt::{self, Display, Write},
    mem,
    sync::Arc,
};
use tr_core::{BoxError, Classification, Ran, Verdict, causes, shortened, shortened_code};

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

/// Failures of fewer bytes are not shortened.
pub(crate) const SMALL_FAILURE: usize = 1_024;

/// The most causes of an error that are measured and kept.
pub(crate) const CAUSES: usize = 8;

/// A failure as a record keeps it.
#[derive(Debug)]
pub(crate) struct RecordedFailure {
    pub(crate) code: Box<str>,
    pub(crate) verdict: Verdict,
    pub(crate) ran: Ran,
    pub(crate) exhausted: bool,
    pub(crate) error: Option<BoxError>,
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
    /// The outcome is unknown.
    Unknown { mutating: bool, cause: Option<Arc<RecordedFailure>> },
    /// The store refused the call for every caller; the flag says whether it was mutating.
    Refused(Refused, bool),
}

impl<V> State<V> {
    /// The response that it keeps.
    pub(crate) const fn kept(&self) -> Option<&V> {
        match self {
            Self::Done(value) => value.as_ref(),
            Self::Failed(failure, _)
            | Self::Cancelled(Some(failure))
            | Self::Unknown(Some(failure)) => failure.response.as_ref(),
            Self::Inflight | Self::Cancelled(None) | Self::Unknown(None) => None,
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

    /// The name in events and records.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Inflight => "inflight",
            Self::Done(_) => "done",
            Self::Failed(..) => "failed",
            Self::Cancelled(_) => "cancelled",
            Self::Unknown(_) => "unknown",
        }
    }
}

impl<V> Failure<V> {
    /// A failure that was returned as an error.
    pub(crate) fn of_error(recorded: Arc<RecordedFailure>) -> Self {
        let brief = recorded
            .brief()
            .map(|recorded| Self::new(Arc::new(recorded), None, None))
            .map(Box::new);
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

impl RecordedFailure {
    fn bare(&self) -> Self {
        let Self { verdict, ran, exhausted, .. } = *self;
        Self { code: self.code.clone(), verdict, ran, exhausted, error: None }
    }

    /// The size in bytes of the texts of the error and its causes.
    pub(crate) fn size(&self) -> usize {
        let error = self.error.as_deref().map(|error| error as &(dyn Error + 'static));
        let links = error.into_iter().flat_map(|error| causes(error).take(CAUSES));
        links.map(|link| length(&link)).sum()
    }

    /// The shortened failure, if its text is long.
    fn brief(&self) -> Option<Self> {
        let bytes = self.size();
        let error = self.error.as_ref().filter(|_| bytes >= SMALL_FAILURE)?;
        let text = shortened(&error.to_string(), bytes);
        Some(Self {
            code: self.code.clone(),
            error: Some(Box::new(Recorded::new(text, None))),
            ..*self
        })
    }

    pub(crate) fn new(end: Classification<'_>, error: Option<BoxError>) -> Self {
        let Classification { verdict, ran, code, exhausted, .. } = end;
        Self { code: shortened_code(code).into(), verdict, ran, exhausted, error }
    }

    pub(crate) fn classification(&self) -> Classification<'_> {
        let Self { verdict, ran, ref code, exhausted, .. } = *self;
        let mut end = Classification::new(verdict, ran, code);
        end.exhausted = exhausted;
        end
    }
}

/// The length of a `Display` text, without building the text.
fn length(text: &dyn Display) -> usize {
    struct Count(usize);
    impl Write for Count {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 += text.len();
            Ok(())
        }
    }
    let mut count = Count(0);
    // `Count` never fails; text that a failing `Display` did not write does not count.
    let _ = write!(count, "{text}");
    count.0
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
        State::Failed(failure, _) => failure.answer(),
        State::Cancelled(Some(failure)) | State::Unknown(Some(failure)) => failure.answer(),
        State::Inflight | State::Cancelled(None) | State::Unknown(None) => {
            Answer::Unknown { mutating, cause: None }
        }
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
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_recorded_by_what_is_known_of_its_run() {
        let of = |mutating, verdict, ran| {
            let recorded = RecordedFailure::new(Classification::new(verdict, ran, "x"), None);
            match failed::<()>(mutating, Failure::of_error(Arc::new(recorded))) {
                State::Failed(_, again) => format!("failed {again:?}"),
                State::Cancelled(_) => "cancelled".into(),
                State::Unknown(_) => "unknown".into(),
                other => format!("{other:?}"),
            }
        };
        use Ran::{No, Unknown, Yes};
        use Verdict::{Cancelled, Permanent};
        let transient = Verdict::TRANSIENT;
        for (verdict, ran, mutating, other) in [
            (transient, No, "failed Freely", "failed Freely"),
            (transient, Yes, "failed Never", "failed WhenAsked"),
            (transient, Unknown, "unknown", "failed WhenAsked"),
            (Permanent, No, "failed Never", "failed Never"),
            (Permanent, Yes, "failed Never", "failed Never"),
            (Permanent, Unknown, "unknown", "failed Never"),
            (Cancelled, No, "cancelled", "cancelled"),
            (Cancelled, Yes, "unknown", "unknown"),
            (Cancelled, Unknown, "unknown", "unknown"),
        ] {
            assert_eq!(of(true, verdict, ran), mutating, "mutating, {verdict:?}, {ran:?}");
            assert_eq!(of(false, verdict, ran), other, "other, {verdict:?}, {ran:?}");
        }
    }
}
