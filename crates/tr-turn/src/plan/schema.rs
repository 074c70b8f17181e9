//! The JSON Schema of a plan, for editors.
use super::{MAX_CALLS, MAX_CONCURRENCY, MAX_TIMEOUT};
use serde_json::{Map, Value, json};
use tr_core::Effect;
use tr_wire::read::Words as _;

/// The JSON Schema of a plan in JSON, as `schemas/turn-plan.schema.json` has it.
///
/// It accepts every plan that [`Plan::from_json`](super::Plan::from_json) accepts. That also checks
/// what a schema cannot express: names are known and unique, there are no dependency cycles, every
/// required call has a tool.
#[must_use]
pub fn json_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Turn plan",
        "description": "A turn of tool calls: their dependencies, and limits.",
        "type": "object",
        "required": ["calls"],
        "additionalProperties": false,
        "properties": members([
            ("$schema", "Where this schema is, for editors.", json!({})),
            ("turn", "The turn's name in traces.", name()),
            ("session", "The session on whose behalf the calls are made.", name()),
            ("agent", "The agent on whose behalf the calls are made, where retries are opt-in per agent.", name()),
            ("limits", "The time and concurrency limits.", limits()),
            ("calls", "The calls. The order matters only between calls of the same priority.",
             json!({ "type": "array", "minItems": 1, "maxItems": MAX_CALLS, "items": { "$ref": "#/$defs/call" } })),
        ]),
        "$defs": { "call": call(), "alternative": alternative() },
    })
}

fn limits() -> Value {
    object(
        &[],
        &members([
            ("timeout_ms", "How long the turn may take; 300000 by default.", timeout()),
            (
                "call_timeout_ms",
                "How long a call may take with all its attempts; by default as long as the turn.",
                timeout(),
            ),
            (
                "attempt_timeout_ms",
                "How long an attempt may take; by default as set by its tool's manifest or the stack.",
                timeout(),
            ),
            (
                "concurrency",
                "How many calls run at once; 8 by default.",
                json!({ "type": ["integer", "null"], "minimum": 1, "maximum": MAX_CONCURRENCY }),
            ),
        ]),
    )
}

fn call() -> Value {
    let names = json!({ "type": ["array", "null"], "items": real_name(), "uniqueItems": true });
    let effects = Effect::WORDS.iter().map(|(word, _)| json!(word)).chain([Value::Null]);
    let effects = json!({ "enum": effects.collect::<Vec<_>>() });
    object(
        &["tool"],
        &members([
            ("tool", "The tool to call: its name, or `name.action`.", real_name()),
            ("name", "The call's name; the tool's name by default.", name()),
            (
                "params",
                "`{\"$from\": CALL}` in it is replaced by that call's result, with `\"at\": POINTER` by the value at that pointer; `{\"$literal\": VALUE}` by the value itself.",
                json!({ "type": ["object", "null"] }),
            ),
            ("depends_on", "Further calls to wait for.", names),
            (
                "defaults",
                "By the name of a dependency: the value to use if that fails.",
                json!({ "type": ["object", "null"] }),
            ),
            (
                "required",
                "Whether a failure is escalated to the user; `false` by default.",
                json!({ "type": ["boolean", "null"] }),
            ),
            ("default_value", "The value for its dependents if it fails.", json!({})),
            (
                "alternatives",
                "Alternative tools, best first.",
                json!({ "type": ["array", "null"], "items": { "$ref": "#/$defs/alternative" } }),
            ),
            (
                "priority",
                "The order among calls that are due; `normal` by default.",
                json!({ "enum": ["low", "normal", "high", null] }),
            ),
            (
                "effect",
                "The tool's effect, where no manifest declares it; `mutating` by default.",
                effects,
            ),
            ("timeout_ms", "How long it may take with all its attempts.", timeout()),
            ("attempt_timeout_ms", "How long an attempt may take.", timeout()),
            ("idempotency_key", "The idempotency key.", name()),
            (
                "cancellation_id",
                "The id by which the call can be cancelled; its name by default.",
                name(),
            ),
        ]),
    )
}

fn alternative() -> Value {
    let with_params = members([
        ("tool", "The alternative tool.", real_name()),
        (
            "params",
            "Its params; those of the call by default.",
            json!({ "type": ["object", "null"] }),
        ),
    ]);
    json!({ "anyOf": [real_name(), object(&["tool"], &with_params)] })
}

/// `null` counts as absent.
fn name() -> Value {
    json!({ "type": ["string", "null"], "pattern": "\\S" })
}

fn real_name() -> Value {
    json!({ "type": "string", "pattern": "\\S" })
}

fn timeout() -> Value {
    let longest = u64::try_from(MAX_TIMEOUT.as_millis()).unwrap_or(u64::MAX);
    json!({ "type": ["integer", "null"], "minimum": 1, "maximum": longest })
}

fn object(required: &[&str], properties: &Value) -> Value {
    let kind = if required.is_empty() { json!(["object", "null"]) } else { json!("object") };
    json!({ "type": kind, "required": required, "additionalProperties": false, "properties": properties })
}

fn members<const N: usize>(all: [(&str, &str, Value); N]) -> Value {
    let member = |(name, description, mut schema): (&str, &str, Value)| {
        schema["description"] = description.into();
        (name.to_owned(), schema)
    };
    Value::Object(all.into_iter().map(member).collect::<Map<_, _>>())
}
