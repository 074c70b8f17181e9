//! Implements [`LoopPolicy`] for [`DefaultPolicy`]: what the loop guard reads of tool calls and their
//! outcomes. Params are compared by a hash.
use super::loops::{LoopPolicy, LoopRef, TurnRef};
use crate::{
    DefaultPolicy, Effect, End, ResponsePolicy, ToolCall, ToolOutcome, Verdict, classify, code,
    failure_info,
};
use std::borrow::Cow;

impl LoopPolicy<ToolCall, ToolOutcome> for DefaultPolicy {
    type Subject = ToolCall;

    #[inline]
    fn subject(&self, call: &ToolCall) -> ToolCall {
        call.clone()
    }

    #[inline]
    fn limits_calls(&self, call: &ToolCall) -> bool {
        call.manifest().is_some_and(|tool| {
            tool.loops.calls_per_turn.or(tool.loops.calls_per_session).is_some()
        })
    }

    fn args_hash(&self, call: &ToolCall) -> u64 {
        call.args_hash()
    }

    fn details<'r>(&self, call: &'r ToolCall) -> LoopRef<'r> {
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
            poll: loops.is_some_and(|loops| loops.poll == Some(true)),
            max_identical: loops.and_then(|loops| loops.max_identical),
            max_failures_per_turn: loops.and_then(|loops| loops.max_failures_per_turn),
            calls_per_turn: loops.and_then(|loops| loops.calls_per_turn),
            calls_per_session: loops.and_then(|loops| loops.calls_per_session),
            repeats: loops.and_then(|loops| loops.repeats),
        }
    }

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
        // What nothing is known of may pass, and may as well not.
        found.verdict.is_transient() && found.code != code::UNCLASSIFIED
    }

    fn is_invalid(&self, end: End<'_, ToolOutcome>) -> bool {
        match end {
            Ok(outcome) => outcome.error().and_then(classify::json_rpc_code) == Some(-32_602),
            Err(error) => failure_info(error)
                .is_some_and(|info| info.is_by_layer() && info.code() == code::INVALID_ENVELOPE),
        }
    }

    fn success<'r>(&self, outcome: &'r ToolOutcome) -> Option<Cow<'r, str>> {
        // An answer that is not kept cannot be compared with another one.
        let content = || Cow::Borrowed(outcome.content().map_or("", |content| content.get()));
        outcome.can_be_kept().then(content)
    }

    fn add_note(&self, outcome: &mut ToolOutcome, note: &str) {
        outcome.parts_mut().notes.push(note.into());
    }
}
