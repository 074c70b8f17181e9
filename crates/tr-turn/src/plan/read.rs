//! Reads a plan in JSON.
use super::{Alternative, Call, Draft, Limits, names::is_blank};
use std::time::Duration;
use tr_core::{Effect, Json, Priority};
use tr_wire::read::{
    Any, Faults, Flag, Kind, List, Map, Maybe, Node, Object, Record, Shape, Strictness, Tally,
    Word, shape, text,
};

/// Reads as much as possible, and reports the rest.
pub(super) fn draft(json: &str, faults: &mut Faults) -> Draft {
    text::<Plan>(json, Strictness::Canonical, faults).unwrap_or_default()
}

// Whether a string is a valid name is checked later, as for drafts that were built in code. The
// schema of plans is in `schema.rs`.
shape! { Name => Box<str>, "a name", |source| source.text().map(Into::into), true }
shape! { ToolName => Box<str>, "the name of a tool", |source| source.text().map(Into::into), true }
shape! {
    Milliseconds => Duration, "whole milliseconds",
    |source| source.number().and_then(|n| n.whole(0, u64::MAX)).map(Duration::from_millis),
    true
}

fn name<S: Shape>(node: &Node<'_>, faults: &mut Faults) -> Option<Box<str>> {
    let name = node.source.text().map(Into::into);
    name.or_else(|| node.refuse(S::expected(), faults))
}

// What cannot be read in a list keeps its index, so that the pointers of the others are right.
shape! { CallName => Box<str>, "the name of another call", |node, faults| {
    Some(name::<Self>(node, faults).unwrap_or_default())
}, true }

shape! { OneCall => Call, "an object", |node, faults| {
    Some(call(node, faults).unwrap_or_else(|| Call::new("")))
}, true }

shape! { OneAlternative => Alternative, "the name of a tool, or an object", |node, faults| {
    let read = match node.source.kind() {
        Kind::Object => alternative(node, faults),
        _ => name::<Self>(node, faults).map(|tool| Alternative { tool, params: None }),
    };
    Some(read.unwrap_or(Alternative { tool: Box::default(), params: None }))
}, true }

shape! { Plan => Draft, "an object", |node, faults| {
    const KNOWN: &[&str] = &["$schema", "turn", "session", "agent", "limits", "calls"];
    let mut plan = Object::open(node, KNOWN, true, faults)?;
    let draft = Draft {
        turn: take::<Name>(&mut plan, "turn", faults),
        session: take::<Name>(&mut plan, "session", faults),
        agent: take::<Name>(&mut plan, "agent", faults),
        limits: take::<TurnLimits>(&mut plan, "limits", faults).unwrap_or_default(),
        calls: take::<List<OneCall>>(&mut plan, "calls", faults).unwrap_or_default(),
    };
    plan.refuse_rest(faults);
    Some(draft)
}, true }

shape! { TurnLimits => Limits, "an object", |node, faults| {
    const KNOWN: &[&str] = &["timeout_ms", "call_timeout_ms", "attempt_timeout_ms", "concurrency"];
    let mut members = Object::open(node, KNOWN, true, faults)?;
    let mut limits = Limits::default();
    if let Some(timeout) = take::<Milliseconds>(&mut members, "timeout_ms", faults) {
        limits.timeout = timeout;
    }
    limits.call_timeout = take::<Milliseconds>(&mut members, "call_timeout_ms", faults);
    limits.attempt_timeout = take::<Milliseconds>(&mut members, "attempt_timeout_ms", faults);
    if let Some(concurrency) = take::<Tally>(&mut members, "concurrency", faults) {
        limits.concurrency = concurrency as usize;
    }
    members.refuse_rest(faults);
    Some(limits)
}, true }

fn call(node: &Node<'_>, faults: &mut Faults) -> Option<Call> {
    const KNOWN: &[&str] = &[
        "tool",
        "name",
        "params",
        "depends_on",
        "defaults",
        "required",
        "default_value",
        "alternatives",
        "priority",
        "effect",
        "timeout_ms",
        "attempt_timeout_ms",
        "idempotency_key",
        "cancellation_id",
    ];
    let mut members = Object::open(node, KNOWN, true, faults)?;
    let object = &mut members;
    let mut call = Call::new(object.field::<ToolName>("tool", faults).unwrap_or_default());
    if let Some(name) = take::<Name>(object, "name", faults) {
        call.name = name;
    }
    if let Some(params) = take::<Record>(object, "params", faults) {
        call.params = params;
    }
    call.after = take::<List<CallName>>(object, "depends_on", faults).unwrap_or_default();
    call.defaults = take::<Map<Any>>(object, "defaults", faults).unwrap_or_default();
    call.required = take::<Flag>(object, "required", faults);
    call.default_value = take::<Any>(object, "default_value", faults);
    call.alternatives = take::<List<OneAlternative>>(object, "alternatives", faults);
    call.priority = take::<Word<Priority>>(object, "priority", faults);
    call.effect = take::<Word<Effect>>(object, "effect", faults);
    call.timeout = take::<Milliseconds>(object, "timeout_ms", faults);
    call.attempt_timeout = take::<Milliseconds>(object, "attempt_timeout_ms", faults);
    call.idempotency_key = take::<Name>(object, "idempotency_key", faults);
    call.cancellation_id = take::<Name>(object, "cancellation_id", faults);
    members.refuse_rest(faults);
    Some(call)
}

fn alternative(node: &Node<'_>, faults: &mut Faults) -> Option<Alternative> {
    let mut object = Object::open(node, &["tool", "params"], true, faults)?;
    let tool = object.field::<ToolName>("tool", faults).unwrap_or_default();
    let params = take::<Record>(&mut object, "params", faults);
    object.refuse_rest(faults);
    // The fault of a name is reported at the tool in the object.
    let params = params.or_else(|| is_blank(&tool).then(Json::empty_object));
    Some(Alternative { tool, params })
}

/// An optional member; `null` counts as absent.
fn take<S: Shape>(
    object: &mut Object<'_>,
    name: &'static str,
    faults: &mut Faults,
) -> Option<S::Value> {
    object.field::<Maybe<S>>(name, faults).flatten()
}
