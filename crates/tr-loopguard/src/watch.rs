//! One guarded call.
use crate::{
    NON_RETRYABLE,
    attribution::{Attribution, AttributionLog},
    call::{CallHash, Decision, End, ErrorHash, Weight},
    compare::{Compared, Words},
    error::{LoopDetected, Noted, ToolErrorLimit},
    message,
    turns::Turns,
};
use std::{borrow::Cow, fmt, sync::Arc};
use tokio::time::Instant;
use tr_core::{
    BoxError, CallInfo, Event, LoopPolicy, LoopRef, Observer, WallClock, classify, code,
    failure_info, internal::Held,
};

/// The state that all services of a layer share.
pub(crate) struct Shared {
    /// Whether signals are enabled, so that successes matter too.
    pub(crate) watches: bool,
    pub(crate) turns: Turns,
    pub(crate) log: Option<Arc<dyn AttributionLog>>,
    pub(crate) clock: Arc<dyn WallClock>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.turns.fmt(f)
    }
}

/// The state of a call until it ends.
#[derive(Debug)]
pub(crate) struct Watch<A, Subject> {
    pub(crate) shared: Held<Shared>,
    pub(crate) policy: A,
    pub(crate) subject: Subject,
}

impl<A, Subject> Watch<A, Subject> {
    /// Whether the call may run. Its args are hashed only if its turn has failures.
    #[inline]
    pub(crate) fn admit<Req, Res>(&self) -> Decision
    where
        A: LoopPolicy<Req, Res, Subject = Subject>,
    {
        let turns = &self.shared.turns;
        if !turns.any_kept() {
            return Decision::Continue;
        }
        let found = self.policy.details(&self.subject);
        turns.admit(&found, now, || self.call_hash(&found))
    }

    /// The error of a call that may not run.
    #[cold]
    pub(crate) fn refusal<Req, Res>(&self, decision: Decision) -> BoxError
    where
        A: LoopPolicy<Req, Res, Subject = Subject>,
    {
        let found = self.policy.details(&self.subject);
        self.tell(&found, decision, true);
        match decision {
            Decision::HardCap(failures) => ToolErrorLimit::new(failures).into(),
            Decision::LoopDetected(failures) => LoopDetected::new(found.tool, failures).into(),
            Decision::Signal(signal) => LoopDetected::by(found.tool, signal).into(),
            Decision::Continue => unreachable!("such a call runs"),
        }
    }

    /// Ends the call: counts a failure, and adds notes for the model.
    #[inline]
    pub(crate) fn end<Req, Res>(&self, end: Result<Res, BoxError>) -> Result<Res, BoxError>
    where
        A: LoopPolicy<Req, Res, Subject = Subject>,
    {
        let failure = match &end {
            Ok(res) => self.policy.failure(Ok(res)),
            Err(error) if is_of_records(error) => return end,
            Err(error) => self.policy.failure(Err(&**error)),
        };
        let notes = match failure {
            None if !self.shared.watches => {
                if self.shared.turns.any_kept() {
                    self.shared.turns.succeed(&self.policy.details(&self.subject));
                }
                return end;
            }
            None => self.compare(&end),
            Some(failure) => self.count(&failure, &end),
        };
        self.note(notes, end)
    }

    #[cold]
    fn note<Req, Res>(
        &self,
        notes: Vec<String>,
        end: Result<Res, BoxError>,
    ) -> Result<Res, BoxError>
    where
        A: LoopPolicy<Req, Res, Subject = Subject>,
    {
        if notes.is_empty() {
            return end;
        }
        match end {
            Ok(mut res) => {
                notes.iter().for_each(|note| self.policy.add_note(&mut res, note));
                Ok(res)
            }
            Err(error) => Err(Noted::new(notes, error).into()),
        }
    }

    #[cold]
    fn count<Req, Res>(&self, failure: &str, end: &Result<Res, BoxError>) -> Vec<String>
    where
        A: LoopPolicy<Req, Res, Subject = Subject>,
    {
        let found = self.policy.details(&self.subject);
        let turns = &self.shared.turns;
        let error = ErrorHash(turns.hash_of(signature(failure)));
        let malformed = classify::is_deterministic(failure);
        let call = self.call_hash(&found);
        let judged = match turns.signals() {
            Some(signals) => {
                let passes = || match end {
                    Ok(res) => self.policy.is_transient(Ok(res)),
                    Err(error) => self.policy.is_transient(Err(&**error)),
                };
                let weight = match () {
                    () if malformed => Weight::Lasting,
                    () if !signals.count_transient && passes() => Weight::None,
                    () => Weight::Passing,
                };
                turns.step(signals, &found, call, End::Failure(error), weight, now())
            }
            None => turns.fail(&found, call, error, now()),
        };
        let decision = judged.decision;
        if malformed && let Some(log) = &self.shared.log {
            log.write(&Attribution::of(&found, decision, self.shared.clock.unix_ms()));
        }
        self.tell(&found, decision, false);
        let mut notes = Vec::new();
        if malformed {
            notes.push(NON_RETRYABLE.to_owned());
        }
        notes.extend(message::of(found.tool, decision));
        if let Some((failures, within)) = judged.errors {
            self.observe(&found, "failures", failures, false);
            notes.push(message::tool_errors(failures, within));
        }
        notes
    }

    /// Compares a success with earlier ones.
    #[inline(never)]
    fn compare<Req, Res>(&self, end: &Result<Res, BoxError>) -> Vec<String>
    where
        A: LoopPolicy<Req, Res, Subject = Subject>,
    {
        let (Some(signals), Ok(res)) = (self.shared.turns.signals(), end) else {
            return Vec::new();
        };
        let found = self.policy.details(&self.subject);
        let read = |text: Cow<'_, str>| Compared::read(&text, &signals.volatile);
        let answer = self.policy.success(res).map(read);
        let end = End::Success {
            answer: answer.map(|answer| answer.hash),
            pending: answer.is_some_and(|answer| answer.pending),
        };
        let (turns, call) = (&self.shared.turns, self.call_hash(&found));
        let decision = turns.step(signals, &found, call, end, Weight::None, now()).decision;
        self.tell(&found, decision, false);
        message::of(found.tool, decision).into_iter().collect()
    }

    fn call_hash<Req, Res>(&self, found: &LoopRef<'_>) -> CallHash
    where
        A: LoopPolicy<Req, Res, Subject = Subject>,
    {
        CallHash(self.shared.turns.hash_of((found.tool, self.policy.args_hash(&self.subject))))
    }

    fn tell(&self, found: &LoopRef<'_>, decision: Decision, blocked: bool) {
        let (rule, count) = match decision {
            Decision::Continue => return,
            Decision::LoopDetected(count) => ("identical", count),
            Decision::HardCap(count) => ("turn_limit", count),
            Decision::Signal(signal) => (signal.rule.name(), signal.count),
        };
        self.observe(found, rule, count, blocked);
    }

    fn observe(&self, found: &LoopRef<'_>, rule: &'static str, count: u32, blocked: bool) {
        if let Some(observer) = self.shared.observer.as_ref().filter(|observer| observer.enabled())
        {
            let mut call = CallInfo::of(found.tool);
            (call.session, call.tool_call_id) = (found.turn.session, found.tool_call_id);
            observer.on_event(&call, &Event::Loop { rule, count, blocked });
        }
    }
}

/// Whether the idempotency layer refused this call, so that the tool did not fail. Counting it
/// could refuse a repeat as a loop, with the claim that it did not run, although the recorded call
/// may have run; and it would keep the repeat from the recorded response, or from a store that is
/// back.
fn is_of_records(error: &BoxError) -> bool {
    failure_info(&**error).is_some_and(|facts| {
        let codes = [
            code::IDEMPOTENCY_CONFLICT,
            code::IDEMPOTENCY_IN_FLIGHT,
            code::OUTCOME_UNKNOWN,
            code::ANSWER_NOT_KEPT,
            code::RECORD_UNREADABLE,
            code::STORE_FULL,
            code::STORE_UNAVAILABLE,
        ];
        facts.is_by_layer() && codes.contains(&facts.code())
    })
}

fn now() -> std::time::Instant {
    Instant::now().into_std()
}

/// The signature of a failure: the words that are also compared in responses, without numbers,
/// which count attempts, bytes and request ids.
fn signature(failure: &str) -> String {
    let mut signature = String::with_capacity(failure.len());
    for word in Words::new(failure, &[]) {
        let mut in_number = false;
        for c in failure[word].chars() {
            let digit = c.is_ascii_digit();
            if !(digit && in_number) {
                signature.push(if digit { '0' } else { c });
            }
            in_number = digit;
        }
        signature.push(' ');
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
        let at = |id: &str| signature(&format!("no such order (request {id})"));
        assert_eq!(
            at("6f9619ff-8b86-d011-b42d-00cf4fc964ff"),
            at("ba7e3f02-ac04-41f5-9d7c-aacbd4e2a1f0")
        );
    }
}
