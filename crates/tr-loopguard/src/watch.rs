//! One guarded call.
use crate::{
    NON_RETRYABLE, Signals,
    attribution::{Attribution, AttributionLog},
    call::{CallHash, Decision, End, ErrorHash, Weight},
    compare::{Compared, Words},
    error::{LoopDetected, Noted, ToolCallLimit, ToolErrorLimit},
    message,
    turns::Turns,
};
use std::{borrow::Cow, sync::Arc};
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

tr_core::debug_parts! { Shared, |it| turns = it.turns }

/// The state of a call until it ends.
pub(crate) struct Watch<A: LoopPolicy<Req, Res>, Req, Res> {
    pub(crate) shared: Held<Shared>,
    pub(crate) policy: A,
    pub(crate) subject: A::Subject,
}

impl<A: LoopPolicy<Req, Res>, Req, Res> Watch<A, Req, Res> {
    /// Whether the call may run. Its args are hashed only if its turn has failures.
    #[inline]
    pub(crate) fn admit(&self) -> Decision {
        let turns = &self.shared.turns;
        if turns.limits_calls() || self.policy.limits_calls(&self.subject) && turns.refuses() {
            let reached = turns.count_call(&self.policy.details(&self.subject), now());
            if let Some(reached) = reached {
                return Decision::CallLimit(reached);
            }
        }
        if !turns.any_kept() {
            return Decision::Continue;
        }
        let found = self.policy.details(&self.subject);
        turns.admit(&found, now, || self.call_hash(&found))
    }

    /// The error of a call that may not run.
    #[cold]
    pub(crate) fn refusal(&self, decision: Decision) -> BoxError {
        let found = self.policy.details(&self.subject);
        self.tell(&found, decision, true);
        match decision {
            Decision::HardCap(failures) => ToolErrorLimit::new(failures).into(),
            Decision::CallLimit(reached) => ToolCallLimit::new(found.tool, reached).into(),
            Decision::LoopDetected(failures) => {
                let said = message::loop_detected(found.tool, failures);
                LoopDetected::new(said, "identical", failures).into()
            }
            Decision::Signal(signal) => {
                let said = message::stop(found.tool, signal);
                LoopDetected::new(said, signal.rule.name(), signal.count).into()
            }
            Decision::Continue | Decision::Repeated(_) => unreachable!("such a call runs"),
        }
    }

    /// Ends the call: counts a failure, and adds notes for the model.
    #[inline]
    pub(crate) fn end(&self, end: Result<Res, BoxError>) -> Result<Res, BoxError> {
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
    fn note(&self, notes: Vec<String>, end: Result<Res, BoxError>) -> Result<Res, BoxError> {
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
    fn count(&self, failure: &str, end: &Result<Res, BoxError>) -> Vec<String> {
        let found = self.policy.details(&self.subject);
        let turns = &self.shared.turns;
        let error = ErrorHash(turns.hash_of(signature(failure)));
        let malformed = classify::is_deterministic(failure);
        let call = self.call_hash(&found);
        let end = end.as_ref().map_err(|error| &**error as _);
        // The output of a program that fails has such lines further down, and others once its files are
        // mended.
        let is_of_args = failure.lines().take(3).any(classify::is_deterministic);
        let is_passing =
            |signals: &Signals| !signals.count_transient && self.policy.is_transient(end);
        let weight = match turns.signals() {
            _ if is_of_args || self.policy.is_invalid(end) => Weight::Lasting,
            Some(signals) if is_passing(signals) => Weight::None,
            _ => Weight::Passing,
        };
        let judged = turns.step(&found, call, End::Failure(error), weight, now());
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
    fn compare(&self, end: &Result<Res, BoxError>) -> Vec<String> {
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
        let decision = turns.step(&found, call, end, Weight::None, now()).decision;
        self.tell(&found, decision, false);
        message::of(found.tool, decision).into_iter().collect()
    }

    fn call_hash(&self, found: &LoopRef<'_>) -> CallHash {
        CallHash(self.shared.turns.hash_of((found.tool, self.policy.args_hash(&self.subject))))
    }

    fn tell(&self, found: &LoopRef<'_>, decision: Decision, blocked: bool) {
        let (rule, count) = match decision {
            Decision::Continue => return,
            Decision::LoopDetected(count) | Decision::Repeated(count) => ("identical", count),
            Decision::HardCap(count) => ("turn_limit", count),
            Decision::CallLimit(reached) => ("call_limit", reached.calls),
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

/// Stands for digits that do not count.
const DIGITS: char = '#';

/// The longest number that counts something: ports, sizes and ids of processes are mostly longer.
const MAX_COUNT: usize = 4;

/// What a number behind such a word names, or counts on the way to the failure.
const VOLATILE_NUMBERS: [&str; 10] =
    ["attempt", "try", "retry", "request", "id", "pid", "process", "thread", "port", "connection"];

/// The signature of a failure: the words that are also compared in responses. Short numbers that are
/// words of their own count ("3 failed" is not "2 failed"); the digits of others do not: those of
/// ids, addresses, ports and attempts.
fn signature(failure: &str) -> String {
    let mut signature = String::with_capacity(failure.len());
    let mut before = "";
    for word in Words::new(failure, &[]) {
        let word = failure[word].trim_end_matches('.');
        let is_digit = |c: char| c.is_ascii_digit();
        let is_count = word.len() <= MAX_COUNT
            && word.chars().all(is_digit)
            && !VOLATILE_NUMBERS.iter().any(|name| before.eq_ignore_ascii_case(name));
        let shown = |c: char| if !is_count && is_digit(c) { DIGITS } else { c };
        let mut chars: Vec<_> = word.chars().map(shown).collect();
        chars.dedup_by(|c, last| *c == DIGITS && c == last);
        signature.extend(chars);
        signature.push(' ');
        before = word;
    }
    signature
}

#[cfg(test)]
mod tests {
    use super::signature;

    #[test]
    fn failures_differ_by_their_words_and_counts_and_not_by_what_changes_each_time() {
        for (one, other) in [
            ("timeout after 1503 ms (request 7f)", "timeout after 998 ms (request 12f)"),
            ("refused by 10.0.0.1:8080", "refused by 10.0.0.2:8081"),
            ("refused at port 808", "refused at port: 9"),
            ("request #12, attempt 1: busy", "request #13, attempt 2: busy"),
            ("{\"pid\":12,\"job\":123456}", "{\"pid\":34,\"job\":123457}"),
            ("3 failed in 0.12s", "3 failed in 1.5 s"),
            ("2026-11-27T10:00:00Z 3 failed", "2026-11-28T11:30:00Z 3 failed"),
        ] {
            assert_eq!(signature(one), signature(other));
        }
        for (one, other) in [
            ("FAILED 3 tests", "FAILED 2 tests"),
            ("expected 3, got 1.", "expected 3, got 2."),
            ("{\"failed\":12}", "{\"failed\":9}"),
            ("Tests: 3 failed, 9 passed", "Tests: 3 failed, 10 passed"),
            ("1/12 rows are ready", "2/12 rows are ready"),
            ("12% done", "13% done"),
        ] {
            assert_ne!(signature(one), signature(other));
        }
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
