//! Error types.
//!
//! Each leads to a [`FailureInfo`] by its `source()`, and that to its cause, if it has one.
use crate::{
    end::{Answer, Refusal},
    failure::RecordedFailure,
};
use std::{error::Error, fmt, sync::Arc};
use tr_core::{
    BoxError, Effect, Event, FailureInfo, InvalidKey, MatchedOn, Ran, Replay, Verdict, code,
};

/// Makes the error types that say no more than their text.
macro_rules! leaves {
    ($($(#[$doc:meta])* $name:ident: $text:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, thiserror::Error)]
        #[error($text)]
        pub struct $name(#[source] FailureInfo);
    )*};
}

leaves! {
    /// The call's key is invalid, or not allowed in this scope; its source says why. The tool did
    /// not run. Code `invalid_envelope`, permanent.
    KeyRejected: "the idempotency key cannot be used";

    /// The key was used before with other params. The tool did not run with these. Code
    /// `idempotency_conflict`, permanent.
    Conflict: "the idempotency key was used before with other params";

    /// Another call with this key is running, and this one does not wait, or has waited for
    /// [`max_wait`](crate::Builder::max_wait): the 409 marker. The tool may have run for that other
    /// call. Code `idempotency_in_flight`, transient.
    InFlight: "the same call is in flight";

    /// Another call with this key is running, and [`max_waiters`](crate::Builder::max_waiters)
    /// callers wait for it. The tool may have run for that other call. Code
    /// `idempotency_in_flight`, transient.
    TooManyWaiters: "too many callers wait for the same call, which is in flight";

    /// Another call with this key did not end before this call's deadline. That call goes on; the
    /// tool may have run. Code `timeout`, transient.
    WaitTimedOut: "timed out while waiting for the same call, which is in flight";

    /// An earlier call with this key may have run, and its outcome was not recorded. The source
    /// leads to its last error, if that is known. The tool may have run. Code `outcome_unknown`,
    /// permanent for a mutating tool; transient for any other, which may be called again.
    OutcomeUnknown: "the outcome of this call is unknown";

    /// An earlier call with this key has ended, but its response could not be kept (it streamed,
    /// was too large, or could not be read). The tool ran, and is not run again. Code
    /// `answer_not_kept`, permanent.
    AnswerNotKept: "the same call was made before and has ended, and its answer was not kept";

    /// There is no room for the call's record, and none may be evicted; its source says why. The tool did
    /// not run. Code `store_full`, transient.
    StoreFull: "the call was not run, because the records are full";

    /// The record of this key cannot be read: a newer version wrote it, it is corrupt, or its
    /// encryption key is missing. Its source says which and what to do. The tool has run or may
    /// have run, and is not run again. Code `record_unreadable`, permanent.
    RecordUnreadable: "the record of the same call cannot be read";

    /// The call was [cancelled](crate::Handle::cancel). The failure info says whether the tool may
    /// have run, in this process or in another. Code `cancelled`.
    Cancelled: "the call was cancelled";
}

/// The record store is unavailable, so this call could not be claimed and was not run. Its source
/// leads to the [`StoreError`](crate::store::StoreError). The tool did not run, or may have run for an earlier call with this
/// key if the store reported that. Code `store_unavailable`, transient; permanent if the store
/// refuses.
#[derive(Debug, thiserror::Error)]
pub struct StoreUnavailable(#[source] FailureInfo);

impl fmt::Display for StoreUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the call was not run, because it could not be recorded")?;
        match self.0.ran() {
            Ran::No => Ok(()),
            Ran::Yes => f.write_str("; an earlier call with its key has run"),
            Ran::Unknown => f.write_str("; an earlier call with its key may have run"),
        }
    }
}

/// The call failed, and its duplicates get the same failure. Its text is that of the tool's own
/// error, and its source leads to it. Code and verdict are those of that error; the failure info
/// says whether the tool ran.
#[derive(Debug, thiserror::Error)]
pub struct SharedFailure(#[source] FailureInfo);

impl fmt::Display for SharedFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.source() {
            Some(cause) => fmt::Display::fmt(cause, f),
            None => fmt::Display::fmt(&self.0, f),
        }
    }
}

/// Why there is no room where records are evicted.
const ALL_PINNED: &str = "every record is of a call in flight or of unknown outcome: settle those, or raise the capacity";

/// What a layer says of a failure.
const fn facts(code: &'static str, ran: Ran, verdict: Verdict) -> FailureInfo {
    FailureInfo::new(code, ran, verdict).by_layer()
}

impl KeyRejected {
    pub(crate) fn new(why: InvalidKey) -> Self {
        Self(facts(code::INVALID_ENVELOPE, Ran::No, Verdict::Permanent).because(why))
    }
}

impl OutcomeUnknown {
    pub(crate) fn new(mutating: bool, cause: Option<Arc<RecordedFailure>>) -> Self {
        let verdict = if mutating { Verdict::Permanent } else { Verdict::TRANSIENT };
        let facts = facts(code::OUTCOME_UNKNOWN, Ran::Unknown, verdict);
        Self(match cause {
            Some(recorded) => facts.because(Cause(recorded)),
            None => facts,
        })
    }
}

impl Cancelled {
    pub(crate) const fn new(ran: Ran) -> Self {
        Self(facts(code::CANCELLED, ran, Verdict::Cancelled))
    }
}

impl SharedFailure {
    pub(crate) fn new(recorded: Arc<RecordedFailure>) -> Self {
        Self(FailureInfo::of(recorded.classification()).by_layer().because(Cause(recorded)))
    }
}

impl<V> Answer<V> {
    /// The stored response, or the error in its place.
    pub(crate) fn into_result(self, replay: Replay) -> Result<V, BoxError> {
        Err(match self {
            Self::Response(value) => return Ok(value),
            Self::Failure(recorded) => {
                // A duplicate did not run the call.
                let SharedFailure(facts) = SharedFailure::new(recorded);
                SharedFailure(facts.replayed(replay)).into()
            }
            Self::NotKept => {
                let facts = facts(code::ANSWER_NOT_KEPT, Ran::Yes, Verdict::Permanent);
                let age = replay.age.as_secs();
                AnswerNotKept(facts.because(format!("its end was recorded {age} s ago"))).into()
            }
            Self::Refused(refused, mutating) => refused.into_error(mutating),
        })
    }
}

impl Refusal {
    /// The event for observers.
    pub(crate) fn event<'r>(&self, effect: Effect) -> Event<'r> {
        let refused = |code| Event::Refused { code, effect };
        let replayed = |matched, state| Event::Replayed { matched, state };
        match self {
            Self::Conflict => Event::KeyConflict,
            Self::Unknown(_) | Self::Unreadable(..) => replayed(MatchedOn::Completed, "unknown"),
            Self::InFlight | Self::TooManyWaiters => refused(code::IDEMPOTENCY_IN_FLIGHT),
            Self::WaitTimedOut => replayed(MatchedOn::Inflight, "inflight"),
            Self::Full(_) => refused(code::STORE_FULL),
            Self::Unavailable(..) => refused(code::STORE_UNAVAILABLE),
        }
    }

    pub(crate) fn into_error(self, mutating: bool) -> BoxError {
        let in_flight = facts(code::IDEMPOTENCY_IN_FLIGHT, Ran::Unknown, Verdict::TRANSIENT);
        match self {
            Self::Conflict => {
                Conflict(facts(code::IDEMPOTENCY_CONFLICT, Ran::No, Verdict::Permanent)).into()
            }
            Self::InFlight => InFlight(in_flight).into(),
            Self::TooManyWaiters => TooManyWaiters(in_flight).into(),
            Self::WaitTimedOut => {
                WaitTimedOut(facts(code::TIMEOUT, Ran::Unknown, Verdict::TRANSIENT)).into()
            }
            Self::Full(cause) => {
                let facts = facts(code::STORE_FULL, Ran::No, Verdict::TRANSIENT);
                StoreFull(match cause {
                    Some(cause) => facts.because_shared(cause),
                    None => facts.because(ALL_PINNED),
                })
                .into()
            }
            Self::Unknown(cause) => OutcomeUnknown::new(mutating, cause).into(),
            Self::Unavailable(cause, ran) => {
                let is_transient = cause.is_transient();
                let verdict = if is_transient { Verdict::TRANSIENT } else { Verdict::Permanent };
                let facts = facts(code::STORE_UNAVAILABLE, ran, verdict);
                StoreUnavailable(facts.because_shared(cause)).into()
            }
            Self::Unreadable(cause, ran) => {
                let facts = facts(code::RECORD_UNREADABLE, ran, Verdict::Permanent);
                RecordUnreadable(facts.because_shared(cause)).into()
            }
        }
    }
}

/// The failure that the errors of all callers share.
#[derive(Debug)]
struct Cause(Arc<RecordedFailure>);

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.error {
            Some(error) => error.fmt(f),
            None => f.write_str(&self.0.code),
        }
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.error.as_deref().map(|error| error as _)
    }
}
