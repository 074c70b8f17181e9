//! What the model must know beside a failure: whether the call may have run, and where to turn to.
use super::failure::Failure;
use super::unknowns::{BlockedByEqual, Trace, Unknowns, ask_about, leaves_unknown};
use std::{borrow::Cow, time::Duration};
use tr_core::{
    BoxError, Classification, DefaultPolicy, Effect, Ran, RequestPolicy, ToolCall, ToolOutcome,
    canonical::Key, code,
};

/// The facts that decide whether a failed call may be repeated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeatable {
    effect: Effect,
    declared_safe: Option<bool>,
    /// The operator or the caller says that the effect matters: the catalog declares it, or the call
    /// has a key.
    is_told: bool,
}

impl Repeatable {
    pub(crate) fn of(call: &ToolCall) -> Self {
        let (effect, declared_safe) =
            (DefaultPolicy.effect(call), DefaultPolicy.is_repeat_safe(call));
        let parts = call.parts();
        let is_told = parts.effect_declared || parts.idempotency.key.is_some();
        Self { effect, declared_safe, is_told }
    }

    pub(super) fn after(self, end: Classification<'_>) -> bool {
        end.is_retriable(self.effect, self.declared_safe) && !end.exhausted
    }

    /// The warning for the model about a call that ended without the server's answer.
    const fn of_error(self, ran: Ran) -> &'static str {
        match (self.effect.may_repeat(ran, self.declared_safe), ran) {
            (true, _) => "",
            (false, Ran::Yes) => " (it has run; do not repeat it)",
            (false, _) => " (it may have run; do not repeat it; check first)",
        }
    }

    /// The warning for the model about a failure in the server's own words, such as "503" or "try again", that does
    /// not say whether the call ran.
    pub(super) fn note(self, outcome: &ToolOutcome, record: Option<Key>) -> Option<String> {
        let may_repeat = self.effect.may_repeat(Ran::Unknown, self.declared_safe);
        (!may_repeat && leaves_unknown(outcome)).then(|| {
            format!("{MAY_HAVE_RUN}{}", record.as_ref().map(ask_about).unwrap_or_default())
        })
    }

    /// What is known of a failure of an undeclared tool, whose call has no key: its own words say that
    /// it is not ready, or will not be asked now. It may be a poll, so that the same call may be made again.
    pub(crate) fn of_undeclared(self, mut outcome: ToolOutcome) -> ToolOutcome {
        if self.is_told || self.effect != Effect::Mutating || outcome.content().is_none() {
            return outcome;
        }
        let parts = outcome.parts_mut();
        if let Some(error) = &mut parts.error
            && error.ran == Ran::Unknown
            && NOT_NOW.contains(&&*error.code)
        {
            error.ran = Ran::Yes;
            parts.notes.push(MAY_HAVE_ACTED.into());
        }
        outcome
    }
}

/// The codes of failures after which a poll asks again.
const NOT_NOW: [&str; 8] = [
    "connection_refused",
    "dns_failure",
    code::RATE_LIMITED,
    "resource_exhausted",
    "overloaded",
    "busy",
    code::NOT_READY,
    code::CANCELLED,
];

/// The line below the server's own words, if these do not say whether the call ran.
const MAY_HAVE_RUN: &str = "[MAY HAVE RUN] The failure does not say whether the call ran: do not repeat it; \
                            check first.";

/// The same of a call that may be a poll.
const MAY_HAVE_ACTED: &str = "[CHECK FIRST] If this call changes something, check whether it did before \
                              you repeat it.";

/// The text for a duplicate of a call that has not ended.
const STILL_RUNS: &str = " (the first call still runs; this one was not made; ask again later with \
                          the same id)";

/// The text for a call that a breaker refused.
const BREAKER: &str = " (it did not run; try again later)";

/// The same, if calls of the tool may have run.
const BREAKER_OF_UNKNOWN: &str = " (this call did not run, but earlier calls of this tool may have: do not \
                                  repeat those; ask the user)";

/// The text for a call under the id of another.
const OTHER_ID: &str = " (this call did not run: its id belongs to another call)";

/// The same over HTTP, where an id holds for one credential.
const OTHER_CALLER: &str = " (the id belongs to a call of another credential, or with other \
                            arguments; this call did not run)";

/// The text for a call that may have been made before.
const CHECK_FIRST: &str = " (do not repeat it; check first whether the earlier call ran)";

/// The note of a call that has got the end of an equal one.
pub(super) fn joined(ran: Duration) -> String {
    let ran = ran.as_secs();
    format!(
        "[JOINED] This call was joined with an equal call that had been running for {ran} s; call again to make another."
    )
}

/// The note of a call that has got the late answer of an equal one, which came so long ago.
pub(super) fn late(age: Duration) -> String {
    let ago = age.as_secs();
    format!(
        "[LATE ANSWER] An equal call that had been given up has run, {ago} s ago: this is its answer, and this call was not made; call again to make another."
    )
}

/// The note of a call that has got the answer of an equal one, which succeeded so long ago.
pub(super) fn repeated(age: Duration) -> String {
    let ago = age.as_secs();
    format!(
        "[REPEATED] An equal call succeeded {ago} s ago: this is its answer, and this call was not made."
    )
}

/// What the model must know of a call without the server's answer.
pub(super) fn warning(
    tool: &str,
    trace: &Trace,
    repeatable: Repeatable,
    error: &BoxError,
    found: Classification<'_>,
    unknowns: &Unknowns,
) -> Cow<'static, str> {
    let text = match (found.code, found.ran) {
        _ if error.is::<BlockedByEqual>() => CHECK_FIRST,
        (code::IDEMPOTENCY_IN_FLIGHT, _) => STILL_RUNS,
        (code::CIRCUIT_OPEN, Ran::No) if unknowns.has_of(tool) => BREAKER_OF_UNKNOWN,
        (code::CIRCUIT_OPEN, Ran::No) => {
            let Some(after) = found.retry_after() else { return BREAKER.into() };
            let seconds = after.as_millis().div_ceil(1_000);
            return format!(" (it did not run; try again in {seconds} s)").into();
        }
        (code::IDEMPOTENCY_CONFLICT, _) if error.is::<Failure>() => "",
        (code::IDEMPOTENCY_CONFLICT, Ran::No) if trace.is_of_caller => OTHER_CALLER,
        (code::IDEMPOTENCY_CONFLICT, Ran::No) => OTHER_ID,
        // What may have run is an earlier call, and not this one.
        (code::STORE_UNAVAILABLE, Ran::Yes | Ran::Unknown) => CHECK_FIRST,
        (_, ran) => repeatable.of_error(ran),
    };
    text.into()
}

/// Where the model turns to after a call that may have run; empty if it has no record and blocks itself.
pub(super) fn advice(trace: &Trace, error: &BoxError, found: Classification<'_>) -> String {
    match (error.downcast_ref::<BlockedByEqual>(), trace.record) {
        (Some(barred), _) => barred.advice(),
        (None, Some(_)) if found.code == code::IDEMPOTENCY_IN_FLIGHT => String::new(),
        (None, Some(own)) if found.code == code::RECORD_UNREADABLE || found.ran == Ran::Unknown => {
            ask_about(&own)
        }
        _ => String::new(),
    }
}
