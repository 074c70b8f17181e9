//! [`DefaultPolicy`] for tool calls.
use super::{
    Classify, Codec, DefaultPolicy, Derive, EffectOf, End, Feedback, IdempotencyOf, InvalidKey,
    KeyOf, LoopOf, LoopRef, Progress, RecordRef, Repeat, TurnRef,
};
use crate::{
    CallInfo, Cancellation, Classification, CoarseInstant, DedupeKey, DedupeMode, Effect,
    FencingToken, KeyRef, Ran, Replay, Retried, RetryOverrides, Scope, ToolCall, ToolOutcome,
    Verdict, classify, code,
    manifest::{BreakerOverride, TtlOverride},
};
use std::{
    borrow::Cow,
    time::{Duration, Instant},
};

impl KeyOf<ToolCall> for DefaultPolicy {
    #[inline]
    fn key_of<'r>(&self, call: &'r ToolCall) -> KeyRef<'r> {
        call.parts().tool.key()
    }

    #[inline]
    fn breaker_of<'r>(&self, call: &'r ToolCall) -> KeyRef<'r> {
        call.breaker_key()
    }

    fn breaker_override(&self, call: &ToolCall) -> BreakerOverride {
        call.manifest().map_or_else(BreakerOverride::default, |tool| tool.breaker)
    }

    #[inline]
    fn info_of<'r>(&self, call: &'r ToolCall) -> CallInfo<'r> {
        let parts = call.parts();
        CallInfo {
            tool: parts.tool.label(),
            request_id: parts.request_id.as_deref(),
            tool_call_id: parts.tool_call_id.as_deref(),
            session: parts.context.session.as_deref(),
            correlation: parts.context.correlation.as_deref(),
            attempt: call.attempt(),
            effect: self.effect_of(call),
            repeat_safe: self.is_repeat_safe(call),
            sensitive: call.sensitive(),
        }
    }
}

impl EffectOf<ToolCall> for DefaultPolicy {
    #[inline]
    fn effect_of(&self, call: &ToolCall) -> Effect {
        call.parts().effect
    }

    fn is_declared(&self, call: &ToolCall) -> bool {
        call.parts().effect_declared
    }

    fn is_repeat_safe(&self, call: &ToolCall) -> Option<bool> {
        let hints = &call.parts().hints;
        let of_tool = call.manifest().and_then(|tool| tool.retry_safe);
        if hints.safety_critical || of_tool == Some(false) {
            return Some(false);
        }
        hints.expected_retry_safe.then_some(true).or(of_tool)
    }
}

impl Repeat<ToolCall> for DefaultPolicy {
    #[inline]
    fn repeat(&self, call: &ToolCall) -> Option<ToolCall> {
        Some(call.clone())
    }

    fn overrides_of<'r>(&self, call: &'r ToolCall) -> RetryOverrides<'r> {
        RetryOverrides {
            call: call.parts().retry.as_ref(),
            tool: call.manifest().and_then(|tool| tool.retry.as_ref()),
        }
    }

    fn agent_of<'r>(&self, call: &'r ToolCall) -> Option<&'r str> {
        call.parts().context.agent.as_deref()
    }

    fn retries_itself(&self, call: &ToolCall) -> bool {
        call.manifest().is_some_and(|tool| tool.capabilities.own_retries)
    }
}

impl Progress<ToolCall> for DefaultPolicy {
    #[inline]
    fn deadline(&self, call: &ToolCall) -> Option<Instant> {
        call.parts().deadline
    }

    fn set_deadline(&self, call: &mut ToolCall, deadline: Instant) {
        call.set_deadline(deadline);
    }

    fn cancellation<'r>(&self, call: &'r ToolCall) -> Option<&'r dyn Cancellation> {
        call.parts().cancellation.as_deref()
    }

    #[inline]
    fn attempt_timeout(&self, call: &ToolCall) -> Option<Duration> {
        call.parts().hints.timeout.or_else(|| call.manifest()?.timeout)
    }

    #[inline]
    fn attempt(&self, call: &ToolCall) -> u32 {
        call.attempt()
    }

    #[inline]
    fn set_attempt(&self, call: &mut ToolCall, attempt: u32) {
        call.set_attempt(attempt);
    }

    #[inline]
    fn stamp(&self, call: &ToolCall) -> Option<CoarseInstant> {
        call.stamp()
    }

    #[inline]
    fn set_stamp(&self, call: &mut ToolCall, now: Option<CoarseInstant>) {
        call.set_stamp(now);
    }
}

impl Classify<ToolOutcome> for DefaultPolicy {
    #[inline]
    fn classify<'r>(&self, end: End<'r, ToolOutcome>) -> Classification<'r> {
        match end {
            Ok(outcome) => match outcome.error() {
                None => Classification::SUCCESS,
                Some(error) => {
                    let end = classify::tool_error(error).end;
                    // Earlier chunks were sent already.
                    let has_begun = outcome.parts().chunk.is_some_and(|chunk| chunk.index > 0);
                    Classification { exhausted: end.exhausted || has_begun, ..end }
                }
            },
            Err(error) => classify::error(error).end,
        }
    }

    fn note_retries(&self, outcome: &mut ToolOutcome, retried: Vec<Retried>) {
        outcome.set_retried(retried);
    }

    fn note_attempts(&self, outcome: &mut ToolOutcome, ran: Ran, exhausted: bool) {
        if let Some(error) = &mut outcome.parts_mut().error {
            (error.ran, error.exhausted) = (ran, exhausted);
        }
    }
}

impl IdempotencyOf<ToolCall> for DefaultPolicy {
    #[inline]
    fn id_of(&self, call: &ToolCall) -> Result<Option<DedupeKey>, InvalidKey> {
        call.id()
    }

    #[inline]
    fn mode_of(&self, call: &ToolCall) -> DedupeMode {
        call.parts().idempotency.mode
    }

    #[inline]
    fn scope_of(&self, call: &ToolCall) -> Scope {
        call.parts().idempotency.scope
    }

    #[inline]
    fn has_scope(&self, call: &ToolCall) -> bool {
        let parts = call.parts();
        parts.context.session.is_some()
            || parts.idempotency.scope == Scope::Global
            || parts.idempotency.id.is_some()
    }

    fn derived_of(&self, call: &ToolCall, from: Derive) -> Result<Option<DedupeKey>, InvalidKey> {
        call.derived_id(from)
    }

    #[inline]
    fn ttls_of(&self, call: &ToolCall) -> TtlOverride {
        let tool = call.manifest().map(|tool| tool.ttls).unwrap_or_default();
        call.parts().idempotency.ttls.or(tool)
    }

    #[inline]
    fn stays_in_process(&self, call: &ToolCall) -> bool {
        call.parts().idempotency.in_process
    }

    fn note_claim(&self, call: &mut ToolCall, claim: FencingToken) {
        call.set_fencing_token(claim);
    }

    #[inline]
    fn record_of<'r>(&self, call: &'r ToolCall) -> RecordRef<'r> {
        let parts = call.parts();
        RecordRef { key: parts.idempotency.key.as_deref(), actor: parts.context.actor.as_deref() }
    }
}

impl Codec<ToolOutcome> for DefaultPolicy {
    type Stored = ToolOutcome;

    #[inline]
    fn store(&self, outcome: &ToolOutcome) -> Option<ToolOutcome> {
        outcome.can_be_kept().then(|| outcome.clone())
    }

    #[inline]
    fn size_of(&self, stored: &ToolOutcome) -> usize {
        stored.size()
    }

    fn shorten(&self, stored: &ToolOutcome) -> Option<ToolOutcome> {
        stored.shortened()
    }

    #[inline]
    fn load(&self, stored: ToolOutcome, replay: Replay) -> ToolOutcome {
        stored.replayed(replay)
    }

    fn note_unrecorded(&self, outcome: &mut ToolOutcome) {
        outcome.set_unrecorded();
    }
}

impl LoopOf<ToolCall> for DefaultPolicy {
    type Subject = ToolCall;

    #[inline]
    fn subject_of(&self, call: &ToolCall) -> ToolCall {
        call.clone()
    }

    fn args_of(&self, call: &ToolCall) -> u64 {
        call.args_hash()
    }

    fn loop_of<'r>(&self, call: &'r ToolCall) -> LoopRef<'r> {
        let parts = call.parts();
        let loops = call.manifest().map(|tool| &tool.loops);
        LoopRef {
            turn: TurnRef {
                session: parts.context.session.as_deref(),
                turn: parts.turn.as_deref(),
            },
            tool: parts.tool.label(),
            text: Some(parts.params.get()),
            provider: parts.provider.as_deref(),
            model: parts.model.as_deref(),
            tool_call_id: parts.tool_call_id.as_deref(),
            read_only: parts.effect == Effect::ReadOnly,
            poll: loops.is_some_and(|loops| loops.poll),
            max_identical: loops.and_then(|loops| loops.max_identical),
            max_failures_per_turn: loops.and_then(|loops| loops.max_failures_per_turn),
            repeats: loops.and_then(|loops| loops.repeats),
        }
    }
}

impl Feedback<ToolOutcome> for DefaultPolicy {
    #[inline]
    fn failure<'r>(&self, end: End<'r, ToolOutcome>) -> Option<Cow<'r, str>> {
        let text = match end {
            Ok(outcome) => Cow::Borrowed(&*outcome.error()?.message),
            Err(error) => Cow::Owned(error.to_string()),
        };
        // A cancelled call is not a wrong call.
        (self.classify(end).verdict != Verdict::Cancelled).then_some(text)
    }

    fn is_transient(&self, end: End<'_, ToolOutcome>) -> bool {
        let found = self.classify(end);
        // A tool's own code alone does not imply it.
        let is_known = match end {
            Ok(outcome) => outcome.error().is_some_and(classify::is_known),
            Err(_) => found.code != code::UNCLASSIFIED,
        };
        found.verdict.is_transient() && is_known
    }

    fn answer<'r>(&self, outcome: &'r ToolOutcome) -> Option<Cow<'r, str>> {
        Some(Cow::Borrowed(outcome.content().map_or("", |content| content.get())))
    }

    fn add_note(&self, outcome: &mut ToolOutcome, note: &str) {
        outcome.parts_mut().notes.push(note.into());
    }
}
