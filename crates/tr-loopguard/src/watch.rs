//! One call under the guard's eyes.
use crate::{
    NON_RETRYABLE,
    attribution::Attribution,
    config::Shared,
    error::{LoopDetected, Noted, ToolErrorLimit},
    message,
    turn::{CallHash, Decision, ErrorHash},
};
use tokio::time::Instant;
use tr_core::{BoxError, CallInfo, Event, Feedback, LoopOf, LoopRef, Striped, classify};

/// What is kept of a call until it ends.
#[derive(Debug)]
pub(crate) struct Watch<A, Subject> {
    pub(crate) shared: Striped<Shared>,
    pub(crate) answers: A,
    pub(crate) subject: Subject,
}

impl<A, Subject> Watch<A, Subject> {
    /// Whether the call may run. Its args are hashed only if its turn has failures.
    #[inline]
    pub(crate) fn admit<Req>(&self) -> Decision
    where
        A: LoopOf<Req, Subject = Subject>,
    {
        let turns = &self.shared.turns;
        if !turns.any_failing() {
            return Decision::Continue;
        }
        let found = self.answers.loop_of(&self.subject);
        turns.admit(found.turn, now, || self.call_hash(&found))
    }

    /// The error of a call that may not run.
    #[cold]
    pub(crate) fn refusal<Req>(&self, decision: Decision) -> BoxError
    where
        A: LoopOf<Req, Subject = Subject>,
    {
        let found = self.answers.loop_of(&self.subject);
        self.tell(&found, decision, true);
        match decision {
            Decision::HardCap(failures) => ToolErrorLimit::new(failures).into(),
            Decision::LoopDetected(failures) => LoopDetected::new(found.tool, failures).into(),
            Decision::Continue => unreachable!("such a call runs"),
        }
    }

    /// The call has ended: counts a failure and says what a model should know of it.
    pub(crate) fn end<Req, Res>(&self, end: Result<Res, BoxError>) -> Result<Res, BoxError>
    where
        A: LoopOf<Req, Subject = Subject> + Feedback<Res>,
    {
        let failure = match &end {
            Ok(res) => self.answers.failure(Ok(res)),
            Err(error) => self.answers.failure(Err(&**error)),
        };
        let Some(failure) = failure else { return end };
        let notes = self.count(&failure);
        drop(failure);
        if notes.is_empty() {
            return end;
        }
        match end {
            Ok(mut res) => {
                notes.iter().for_each(|note| self.answers.add_note(&mut res, note));
                Ok(res)
            }
            Err(error) => Err(Noted::new(notes, error).into()),
        }
    }

    #[cold]
    fn count<Req>(&self, failure: &str) -> Vec<String>
    where
        A: LoopOf<Req, Subject = Subject>,
    {
        let found = self.answers.loop_of(&self.subject);
        let turns = &self.shared.turns;
        let error = ErrorHash(turns.hash_of(signature(failure)));
        let decision = turns.fail(found.turn, self.call_hash(&found), error, now());
        let malformed = classify::is_deterministic(failure);
        if malformed && let Some(log) = &self.shared.log {
            log.write(&Attribution::of(&found, decision, self.shared.clock.unix_ms()));
        }
        self.tell(&found, decision, false);
        let mut notes = Vec::new();
        if malformed {
            notes.push(NON_RETRYABLE.to_owned());
        }
        match decision {
            Decision::Continue => {}
            Decision::LoopDetected(failures) => {
                notes.push(message::loop_detected(found.tool, failures));
            }
            Decision::HardCap(failures) => notes.push(message::tool_error_limit(failures)),
        }
        notes
    }

    fn call_hash<Req>(&self, found: &LoopRef<'_>) -> CallHash
    where
        A: LoopOf<Req, Subject = Subject>,
    {
        CallHash(self.shared.turns.hash_of((found.tool, self.answers.args_of(&self.subject))))
    }

    fn tell(&self, found: &LoopRef<'_>, decision: Decision, blocked: bool) {
        let (rule, count) = match decision {
            Decision::Continue => return,
            Decision::LoopDetected(count) => ("identical", count),
            Decision::HardCap(count) => ("turn_limit", count),
        };
        if let Some(observer) = self.shared.observer.as_ref().filter(|observer| observer.enabled())
        {
            let mut call = CallInfo::of(found.tool);
            (call.session, call.tool_call_id) = (found.turn.session, found.tool_call_id);
            observer.on_event(&call, &Event::Loop { rule, count, blocked });
        }
    }
}

fn now() -> std::time::Instant {
    Instant::now().into_std()
}

/// What is the same in two failures of one kind: the text without its numbers, which count
/// attempts, milliseconds and request ids.
fn signature(failure: &str) -> String {
    let mut signature = String::with_capacity(failure.len());
    let mut in_number = false;
    for c in failure.chars() {
        let digit = c.is_ascii_digit();
        if !(digit && in_number) {
            signature.push(if digit { '0' } else { c });
        }
        in_number = digit;
    }
    signature
}

#[cfg(test)]
mod tests {
    use super::signature;

    #[test]
    fn failures_differ_by_their_words_and_not_by_their_numbers() {
        assert_eq!(
            signature("timeout after 1503 ms (request 7f)"),
            signature("timeout after 998 ms (request 12f)")
        );
        assert_ne!(
            signature("Missing required parameter: path"),
            signature("Missing required parameter: text")
        );
    }
}
