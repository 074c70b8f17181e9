//! What `tool-guard decide` reads and writes.
use super::members::*;
use serde_json::{Value, json};

/// Text that says something.
fn word_of_host() -> Value {
    json!({ "type": "string", "minLength": 1 })
}

fn id() -> Value {
    json!({ "type": ["string", "number"] })
}

/// An event of a host's: nothing else may be in it.
fn event(title: &str, name: &str, members: Vec<Member>) -> Value {
    let head = vec![
        always("event", "Which event this is.", json!({ "const": name })),
        always("id", "Identifies this line: its answer carries the same id.", id()),
    ];
    let mut event = object(title, &[head, members]);
    event["additionalProperties"] = false.into();
    event
}

pub(super) fn event_schema() -> Value {
    let effects = ["read_only", "idempotent", "mutating"];
    let before = event(
        "A call that the host is about to make",
        "before",
        vec![
            always("tool", "The tool's name.", word_of_host()),
            maybe(
                "params",
                "The tool's params; none if it is left out.",
                json!({ "type": "object" }),
            ),
            maybe("call", "The model's id of the call.", word_of_host()),
            maybe(
                "session",
                "The session that the call belongs to: its ids are valid there.",
                word_of_host(),
            ),
            maybe(
                "turn",
                "The turn that the call belongs to: the limits of loops are a turn's.",
                word_of_host(),
            ),
            maybe(
                "key",
                "A key that names this call forever: a repeat with it is the same call.",
                word_of_host(),
            ),
            maybe(
                "effect",
                "What the tool does to the world; a catalog overrides it.",
                one_of(&effects),
            ),
            maybe("model", "The model that asks for the call, for the attribution log.", text()),
            maybe(
                "client",
                "The host, such as openclaw/2026.9.6, for the attribution log.",
                text(),
            ),
            maybe("traceparent", "The W3C trace that the call belongs to.", text()),
            maybe(
                "meta",
                "Other members, for the rules of [identity].",
                json!({ "type": "object" }),
            ),
        ],
    );
    let mut after = event(
        "The end of a call",
        "after",
        vec![
            maybe("before", "The id of the line that announced the call.", id()),
            maybe(
                "call",
                "The model's id of the call, for hosts that cannot keep the line's id.",
                text(),
            ),
            maybe("session", "The session of that id.", text()),
            maybe(
                "output",
                "The tool's answer: text, a list of blocks of content, or any JSON.",
                json!({}),
            ),
            maybe("isError", "Whether the answer is a failure.", flag()),
            maybe("error", "The text of a failure, in place of an output.", text()),
            maybe(
                "ran",
                "Of a failure, whether the tool ran, if the host knows.",
                one_of(&["no", "yes", "unknown"]),
            ),
        ],
    );
    after["anyOf"] = json!([{ "required": ["before"] }, { "required": ["call"] }]);
    after["not"] = json!({ "required": ["output", "error"] });
    let turn_end = event(
        "The end of a session's turn",
        "turn_end",
        vec![always(
            "session",
            "The session: its next call belongs to another turn.",
            word_of_host(),
        )],
    );
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Event of a host",
        "description": "A line on the standard input of `tool-guard decide`.",
        "anyOf": [before, after, turn_end],
    })
}

pub(super) fn answer_schema() -> Value {
    let head = || always("id", "The id of the line that this answers.", id());
    let decision =
        |what: &str| always("decision", "What the host is to do.", json!({ "const": what }));
    let refused = vec![
        always("code", "Why; more codes may come.", word()),
        always("reason", "The reason, for the model.", text()),
        maybe(
            "ran",
            "Of an earlier call, or of this one, whether it ran. This one is not to be made.",
            one_of(&["no", "yes", "unknown"]),
        ),
        maybe("retriable", "Whether the same call may be made later.", flag()),
    ];
    let replayed = vec![
        always("code", "A record has the end of this call.", json!({ "const": "replayed" })),
        always("reason", "The text of the recorded answer.", text()),
        always("result", "The recorded answer: content, and isError.", json!({ "type": "object" })),
    ];
    let notes = json!({ "type": "array", "items": text(), "minItems": 1 });
    let recorded = || {
        maybe("recorded", "False if the end is not in the records yet.", json!({ "const": false }))
    };
    let unusable = always(
        "id",
        "The id of the line, null if it has none.",
        json!({ "type": ["string", "number", "null"] }),
    );
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Answer to a host",
        "description": "A line on the standard output of `tool-guard decide`: one for each line of the host's, \
            in any order. Members may be added; a reader ignores those that it does not know.",
        "anyOf": [
            object("Make the call", &[vec![head(), decision("allow")]]),
            object("Make the call with other params", &[vec![head(), decision("rewrite"),
                always("params", "The params to make it with.", json!({ "type": "object" }))]]),
            object("Do not make the call: it is refused", &[vec![head(), decision("block")], refused]),
            object("Do not make the call: it has ended before", &[vec![head(), decision("block")], replayed]),
            object("Add these notes to the answer", &[vec![head(), decision("note"),
                always("notes", "For the model, each below the answer.", notes), recorded()]]),
            object("Nothing to do", &[vec![head(), decision("none"), recorded()]]),
            object("The line cannot be used", &[vec![unusable,
                always("error", "What is wrong with it.", text())]]),
        ],
    })
}
