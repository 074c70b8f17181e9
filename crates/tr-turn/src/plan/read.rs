//! Reads a plan in JSON; its schema is made from the same descriptions.
use super::{
    Alternative, Call, Draft, Limits, MAX_CALLS, MAX_CONCURRENCY, MAX_TIMEOUT, names::is_blank,
};
use serde_json::{Value, json};
use std::time::Duration;
use tr_core::{Effect, Json, Priority};
use tr_wire::read::{
    Any, Faults, Flag, Kind, Lenient, List, Map, Node, OrDefault, Record, Shape, Strictness, Tally,
    Word, object, schema_of, shape, sorted, text,
};

/// Reads as much as possible, and reports the rest.
pub(super) fn draft(json: &str, faults: &mut Faults) -> Draft {
    text::<PlanForm>(json, Strictness::Canonical, faults).unwrap_or_default()
}

/// The JSON Schema of a plan in JSON, as `schemas/turn-plan.schema.json` has it.
///
/// It accepts every plan that [`Plan::from_json`](super::Plan::from_json) accepts. That also checks
/// what a schema cannot express: names are known and unique, there are no dependency cycles, every
/// required call has a tool.
#[must_use]
pub fn json_schema() -> Value {
    let (_, mut schema) = schema_of::<PlanForm>("turn-plan", "Turn plan");
    // That there are calls is checked as for drafts that were built in code.
    schema["required"] = json!(["calls"]);
    schema["$defs"] = json!({ "call": schema["properties"]["calls"]["items"] });
    let calls = &mut schema["properties"]["calls"];
    calls["type"] = "array".into();
    calls["items"] = json!({ "$ref": "#/$defs/call" });
    sorted(schema)
}

object! { strict [INLINE TAKES_NULLS]
    /// A turn of tool calls: their dependencies, and limits.
    struct PlanForm for Draft {
        ignored "$schema";
        /// The turn's name in traces.
        "turn" => turn: Option<Box<str>>, Lenient<Name>;
        /// The session on whose behalf the calls are made.
        "session" => session: Option<Box<str>>, Lenient<Name>;
        /// The agent on whose behalf the calls are made, where retries are opt-in per agent.
        "agent" => agent: Option<Box<str>>, Lenient<Name>;
        /// The time and concurrency limits.
        "limits" => limits: Limits, OrDefault<LimitsForm>;
        /// The calls. The order matters only between calls of the same priority.
        "calls" => calls: Vec<Call>, OrDefault<Calls>;
    }
}

object! { strict [INLINE TAKES_NULLS]
    /// The time and concurrency limits.
    struct LimitsForm for Limits {
        /// How long the turn may take; 300000 by default.
        "timeout_ms" => timeout: Duration, OrDefault<Milliseconds>;
        /// How long a call may take with all its attempts; by default as long as the turn.
        "call_timeout_ms" => call_timeout: Option<Duration>, Lenient<Milliseconds>;
        /// How long an attempt may take; by default as set by its tool's manifest or the stack.
        "attempt_timeout_ms" => attempt_timeout: Option<Duration>, Lenient<Milliseconds>;
        /// How many calls run at once; 8 by default.
        "concurrency" => concurrency: usize, OrDefault<Concurrency>;
    }
}

object! { strict [INLINE TAKES_NULLS]
    /// A call of a tool.
    struct CallForm for Call {
        /// The tool to call: its name, or `name.action`.
        "tool" => tool: Box<str>, ToolName;
        /// The call's name; the tool's name by default.
        "name" => name: Option<Box<str>>, Lenient<Name>;
        /// `{"$from": CALL}` in it is replaced by that call's result, with `"at": POINTER` by the value
        /// at that pointer; `{"$literal": VALUE}` by the value itself.
        "params" => params: Option<Json>, Lenient<Record>;
        /// Further calls to wait for.
        "depends_on" => after: Vec<Box<str>>, OrDefault<CallNames>;
        /// By the name of a dependency: the value to use if that fails.
        "defaults" => defaults: Vec<(Box<str>, Json)>, OrDefault<Map<Any>>;
        /// Whether a failure is escalated to the user; `false` by default.
        "required" => required: Option<bool>, Lenient<Flag>;
        /// The value for its dependents if it fails.
        "default_value" => default_value: Option<Json>, Lenient<Any>;
        /// Alternative tools, best first.
        "alternatives" => alternatives: Option<Vec<Alternative>>, Lenient<List<OneAlternative>>;
        /// The order among calls that are due; `normal` by default.
        "priority" => priority: Option<Priority>, Lenient<Word<Priority>>;
        /// The tool's effect, where no manifest declares it; `mutating` by default.
        "effect" => effect: Option<Effect>, Lenient<Word<Effect>>;
        /// How long it may take with all its attempts.
        "timeout_ms" => timeout: Option<Duration>, Lenient<Milliseconds>;
        /// How long an attempt may take.
        "attempt_timeout_ms" => attempt_timeout: Option<Duration>, Lenient<Milliseconds>;
        /// The idempotency key.
        "idempotency_key" => idempotency_key: Option<Box<str>>, Lenient<Name>;
        /// The id by which the call can be cancelled; its name by default.
        "cancellation_id" => cancellation_id: Option<Box<str>>, Lenient<Name>;
    }
}

object! { strict [INLINE TAKES_NULLS]
    /// An alternative tool with its own params.
    struct AlternativeForm for Alternative {
        /// The alternative tool.
        "tool" => tool: Box<str>, ToolName;
        /// Its params; those of the call by default.
        "params" => params: Option<Json>, Lenient<Record>;
    }
}

// Whether a string is a valid name, and a number within its limits, is checked later, as for drafts
// that were built in code.
shape! {
    Name => Box<str>, "a name", |source| source.text().map(Into::into),
    { "type": "string", "pattern": "\\S" }
}

shape! {
    ToolName => Box<str>, "the name of a tool", |source| source.text().map(Into::into),
    { "type": "string", "pattern": "\\S" }
}

const LONGEST: u64 = MAX_TIMEOUT.as_secs() * 1_000;

shape! {
    Milliseconds => Duration, "whole milliseconds",
    |source| source.number().and_then(|n| n.whole(0, u64::MAX)).map(Duration::from_millis),
    { "type": "integer", "minimum": 1, "maximum": LONGEST }
}

shape! {
    Concurrency => usize, Tally::expected(),
    |node, faults| Tally::read(node, faults).map(|calls| calls as usize),
    { "type": "integer", "minimum": 1, "maximum": MAX_CONCURRENCY }
}

fn name<S: Shape>(node: &Node<'_>, faults: &mut Faults) -> Option<Box<str>> {
    let name = node.source.text().map(Into::into);
    name.or_else(|| node.refuse(S::expected(), faults))
}

// What cannot be read in a list keeps its index, so that the pointers of the others are right.
shape! {
    CallName => Box<str>, "the name of another call",
    |node, faults| Some(name::<Self>(node, faults).unwrap_or_default()),
    { "type": "string", "pattern": "\\S" }
}

shape! {
    CallNames => Vec<Box<str>>, List::<CallName>::expected(),
    |node, faults| List::<CallName>::read(node, faults),
    |generator| { "type": "array", "items": (CallName::schema(generator)), "uniqueItems": true }
}

shape! {
    OneCall as CallForm => Call,
    |node, faults| Some(CallForm::read(node, faults).unwrap_or_default())
}

shape! {
    Calls => Vec<Call>, List::<OneCall>::expected(),
    |node, faults| List::<OneCall>::read(node, faults),
    |generator| {
        "type": "array",
        "items": (CallForm::schema(generator)),
        "minItems": 1,
        "maxItems": MAX_CALLS
    }
}

shape! {
    OneAlternative => Alternative, "the name of a tool, or an object",
    |node, faults| {
        let mut read = match node.source.kind() {
            Kind::Object => AlternativeForm::read(node, faults).unwrap_or_default(),
            _ => return Some(name::<Self>(node, faults).map(Alternative::of).unwrap_or_default()),
        };
        // The fault of a name is reported at the tool in the object.
        if is_blank(&read.tool) {
            read.params.get_or_insert_with(Json::empty_object);
        }
        Some(read)
    },
    |generator| { "anyOf": [(ToolName::schema(generator)), (AlternativeForm::schema(generator))] }
}
