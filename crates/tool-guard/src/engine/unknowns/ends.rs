//! Whether a call ran, as its end says.
use super::{BlockedByEqual, Earlier, Ended};
use tr_core::{
    BoxError, Ran, SystemClock, ToolOutcome, Verdict, WallClock as _, canonical::Key, classify,
    code,
};

/// What is known of a call that may have run; `None` if its end tells whether it did.
pub(crate) fn left_unknown(end: &Result<ToolOutcome, BoxError>) -> Option<Earlier> {
    match end {
        Ok(outcome) => leaves_unknown(outcome).then_some(Earlier::Failure),
        Err(error) if error.is::<BlockedByEqual>() => None,
        Err(error) => {
            let found = classify::error(&**error).end;
            let earlier = match found.code {
                code::CANCELLED => Earlier::Cancelled,
                code::TIMEOUT | code::OUTCOME_UNKNOWN => Earlier::NoAnswer,
                "server_gone" | "connection_reset" => Earlier::NoAnswer,
                _ => Earlier::Failure,
            };
            (found.ran == Ran::Unknown).then_some(earlier)
        }
    }
}

/// Whether the answer leaves a mutating call unknown, by the rule of the recording layer.
pub(crate) fn leaves_unknown(outcome: &ToolOutcome) -> bool {
    let Some(error) = outcome.error() else { return false };
    let end = classify::tool_error(error).end;
    end.ran == Ran::Unknown || (end.verdict == Verdict::Cancelled && end.ran != Ran::No)
}

/// How a call ended that has this record, for those who ask for an equal one.
pub(crate) fn ended(end: &Result<ToolOutcome, BoxError>, record: Option<Key>) -> Ended {
    let ran = match end {
        _ if left_unknown(end).is_some() => return Ended::Unknown,
        Ok(outcome) => {
            outcome.error().map_or(Ran::Yes, |error| classify::tool_error(error).end.ran)
        }
        Err(error) if error.is::<BlockedByEqual>() => Ran::No,
        Err(error) => classify::error(&**error).end.ran,
    };
    match ran {
        Ran::No => Ended::Not,
        _ => Ended::At { unix_ms: SystemClock.unix_ms(), record },
    }
}
