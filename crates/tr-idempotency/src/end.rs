//! What ends as what: from a call's end to its record.
use crate::{
    protocol::{self, Again, Millis, Ttls},
    remote::obtain::Refused,
};
use std::sync::Arc;
use tr_core::{BoxError, Classification, Ran, Verdict};

/// How a call stands, as this crate stores it. A success may be known without its answer.
pub(crate) type State<V> = protocol::State<Option<V>, Failure<V>>;

/// A failure that several callers share.
#[derive(Clone, Debug)]
pub(crate) struct Failure<V> {
    pub(crate) flaw: Arc<Flaw>,
    /// The response that reported it, if one did and it can be kept.
    pub(crate) response: Option<V>,
}

/// What is known of a failure.
#[derive(Debug)]
pub(crate) struct Flaw {
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
    Failure(Arc<Flaw>),
    /// It succeeded, but what it answered was not kept.
    NotKept,
    /// Nobody knows.
    Unknown { mutating: bool, cause: Option<Arc<Flaw>> },
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

    pub(crate) const fn keeps_answer(&self) -> bool {
        self.kept().is_some()
    }

    /// Keeps how the call ended, and not what it answered.
    pub(crate) fn drop_answer(&mut self) -> Option<V> {
        match self {
            Self::Done(value) => value.take(),
            Self::Failed(failure, _)
            | Self::Cancelled(Some(failure))
            | Self::Unknown(Some(failure)) => failure.response.take(),
            Self::Inflight | Self::Cancelled(None) | Self::Unknown(None) => None,
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

impl Flaw {
    pub(crate) fn new(end: Classification<'_>, error: Option<BoxError>) -> Self {
        let Classification { verdict, ran, code, exhausted, .. } = end;
        Self { code: code.into(), verdict, ran, exhausted, error }
    }

    pub(crate) fn classification(&self) -> Classification<'_> {
        let Self { verdict, ran, ref code, exhausted, .. } = *self;
        let mut end = Classification::new(verdict, ran, code);
        end.exhausted = exhausted;
        end
    }
}

/// The state in which a failure leaves its record.
pub(crate) fn failed<V>(mutating: bool, failure: Failure<V>) -> State<V> {
    match (failure.flaw.verdict, failure.flaw.ran) {
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
        State::Failed(failure, _) if mutating && failure.flaw.ran != Ran::No => {
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
            None => Answer::Failure(self.flaw.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_recorded_by_what_is_known_of_its_run() {
        let of = |mutating, verdict, ran| {
            let flaw = Flaw::new(Classification::new(verdict, ran, "x"), None);
            match failed::<()>(mutating, Failure { flaw: Arc::new(flaw), response: None }) {
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
