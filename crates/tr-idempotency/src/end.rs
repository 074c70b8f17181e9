//! What ends as what: from a call's end to its record.
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

/// How a call stands, as this crate stores it. A success may be known without its answer.
pub(crate) type State<V> = protocol::State<Option<V>, Failure<V>>;

/// A failure that several callers share.
#[derive(Clone, Debug)]
pub(crate) struct Failure<V> {
    pub(crate) recorded: Arc<RecordedFailure>,
    /// The response that reported it, if one did and it can be kept.
    pub(crate) response: Option<V>,
    /// The same in few words, where these are many.
    pub(crate) brief: Option<Box<Self>>,
}

/// What a record has given up: the answer, or a failure's words.
#[derive(Debug)]
pub(crate) enum Dropped<V> {
    Answer(V),
    Words(Failure<V>),
}

/// Failures of fewer bytes are kept as they are.
pub(crate) const SMALL_FAILURE: usize = 1_024;

/// Causes beyond these are neither measured nor kept.
pub(crate) const CAUSES: usize = 8;

/// What is known of a failure.
#[derive(Debug)]
pub(crate) struct RecordedFailure {
    pub(crate) code: Box<str>,
    pub(crate) verdict: Verdict,
    pub(crate) ran: Ran,
    pub(crate) exhausted: bool,
    pub(crate) error: Option<BoxError>,
}

/// What a duplicate is told.
#[derive(Clone, Debug)]
pub(crate) enum Answer<V> {
    /// The same.
    Response(V),
    /// The same failure, which no response can tell.
    Failure(Arc<RecordedFailure>),
    /// It succeeded, but what it answered was not kept.
    NotKept,
    /// Nobody knows.
    Unknown { mutating: bool, cause: Option<Arc<RecordedFailure>> },
    /// The store of records refused the call for all of them; whether it was mutating.
    Refused(Refused, bool),
}

impl<V> State<V> {
    /// The answer that it keeps.
    pub(crate) const fn kept(&self) -> Option<&V> {
        match self {
            Self::Done(value) => value.as_ref(),
            Self::Failed(failure, _)
            | Self::Cancelled(Some(failure))
            | Self::Unknown(Some(failure)) => failure.response.as_ref(),
            Self::Inflight | Self::Cancelled(None) | Self::Unknown(None) => None,
        }
    }

    /// The failure that it tells of.
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

    /// Keeps how the call ended, and not what it answered; of a failure the beginning of its words.
    pub(crate) fn shrink(&mut self) -> Option<Dropped<V>> {
        match self {
            Self::Done(value) => value.take().map(Dropped::Answer),
            Self::Failed(failure, _)
            | Self::Cancelled(Some(failure))
            | Self::Unknown(Some(failure)) => failure.shrink(),
            Self::Inflight | Self::Cancelled(None) | Self::Unknown(None) => None,
        }
    }

    /// How the call ended, in its code alone: nothing that it answered or said.
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

    /// As events and records spell it.
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
    /// What no response tells of.
    pub(crate) fn of_error(recorded: Arc<RecordedFailure>) -> Self {
        let brief = recorded
            .brief()
            .map(|recorded| Self::new(Arc::new(recorded), None, None))
            .map(Box::new);
        Self { recorded, response: None, brief }
    }

    /// What a response tells of, and the same in few words.
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

    /// How many bytes the words of an error and its causes have, if they are many.
    pub(crate) fn size(&self) -> usize {
        let error = self.error.as_deref().map(|error| error as &(dyn Error + 'static));
        let links = error.into_iter().flat_map(|error| causes(error).take(CAUSES));
        links.map(|link| length(&link)).sum()
    }

    /// The same in few words, if it has many.
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

/// The bytes of a text that is not made.
fn length(text: &dyn Display) -> usize {
    struct Count(usize);
    impl Write for Count {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 += text.len();
            Ok(())
        }
    }
    let mut count = Count(0);
    // It never fails by itself, and what an error fails to say has no length.
    let _ = write!(count, "{text}");
    count.0
}

/// The state in which a failure leaves its record.
pub(crate) fn failed<V>(mutating: bool, failure: Failure<V>) -> State<V> {
    match (failure.recorded.verdict, failure.recorded.ran) {
        (Verdict::Cancelled, Ran::No) => State::Cancelled(Some(failure)),
        (Verdict::Cancelled, _) => State::Unknown(Some(failure)),
        (_, Ran::Unknown) if mutating => State::Unknown(Some(failure)),
        // Nothing ran, and the reason will pass (an open breaker, a refused connection, no time
        // left to start): replaying that for minutes would make a short outage a long one.
        (Verdict::Transient { .. }, Ran::No) => State::Failed(failure, Again::Freely),
        // It ran, and a second run may do harm, whoever wishes for it.
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

/// What those who asked for the call meanwhile, or ask for it later, are told.
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
