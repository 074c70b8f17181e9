//! What `tool-guard session --json` prints.
use super::members::*;
use serde_json::{Value, json};

pub(super) fn report() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Session report",
        "description": "One line of `tool-guard session … --json`: the result for one \
            file, or for one session of a database. Members may be added; a reader ignores \
            those that it does not know.",
        "anyOf": [
            object("Of check", &[line(&["clean", "findings", "notJudged"]), about(), health(), not_judged(false)]),
            object("Of repair", &[line(&["clean", "findings", "notJudged", "planned", "repaired"]), about(), written(), repair()]),
            object("Of diff", &[line(&["clean", "findings", "notJudged"]), about(), diff(), not_judged(false)]),
            object("Of checkpoints", &[line(&["clean"]), about(), checkpoints()]),
            object("Of rollback", &[line(&["clean", "planned", "rolledBack"]), about(), written(), rollback()]),
            object("Of reset", &[line(&["clean", "planned", "reset"]), about(), written(), reset()]),
            object("Not judged", &[line(&["notJudged"]), not_judged(true)]),
            object("Skipped", &[line(&["skipped"]), vec![
                always("reason", "Why the file is no session.", text()),
            ]]),
            object("Unreadable", &[line(&["unreadable"]), vec![
                always("error", "Why nothing could be done.", text()),
                always("help", "What to do about it.", text()),
            ]]),
        ],
        "$defs": {
            "health": object("What is wrong with a session", &[health()]),
            "finding": object("One thing that is wrong", &[finding()]),
            "repair": object("One thing that a repair does", &[action()]),
            "loss": object("Something that the session tells no more after a repair", &[loss()]),
            "change": object("Records that change", &[change()]),
            "checkpoint": object("A checkpoint", &[checkpoint()]),
            "turn": object("Where a turn begins: the session can go back there", &[turn()]),
        },
    })
}

fn line(statuses: &[&str]) -> Vec<Member> {
    vec![
        always("version", "Which report this is.", json!({ "const": 1 })),
        always("file", "The file, as the command line or its folder names it.", text()),
        maybe("session", "Which session of a database.", text()),
        always("status", "The verdict on the file.", one_of(statuses)),
    ]
}

fn about() -> Vec<Member> {
    let forms = ["json", "claude_code", "codex", "openclaw", "lines", "stored"];
    let format = json!({ "type": ["string", "null"], "pattern": "^[a-z_]+$" });
    vec![
        always("form", "How the session is written.", one_of(&forms)),
        always("format", "The form of its messages.", format),
        always("messages", "How many messages the model would be sent.", number()),
        always("bytes", "How long it is.", number()),
        always("skippedBytes", "How many bytes of it are no record.", number()),
    ]
}

fn health() -> Vec<Member> {
    vec![
        always("pending", "The calls of the last step that wait for their results.", list(&text())),
        maybe("running", "The calls of a database's session on their way.", list(&text())),
        always("found", "How many findings there are.", number()),
        always("errors", "How many of them the session cannot go on with.", number()),
        always("findings", "Of very many, the first.", list(&def("finding"))),
    ]
}

fn finding() -> Vec<Member> {
    let rule = json!({ "type": "integer", "minimum": 0, "maximum": 3 });
    vec![
        maybe("line", "From 1.", number()),
        maybe("message", "From 0, as the provider counts.", number()),
        maybe("block", "From 0, as the provider counts.", number()),
        always(
            "rule",
            "1: no result without its call, 2: no call without its result, 3: no id twice, 0: others.",
            rule,
        ),
        always(
            "severity",
            "Whether the session cannot go on with it.",
            one_of(&["error", "warning"]),
        ),
        always("fault", "What is wrong; more kinds may come.", word()),
        maybe("toolUseId", "Of which call.", text()),
        maybe(
            "parent",
            "The id of an entry's parent that is missing, or a descendant of the entry.",
            text(),
        ),
        always("what", "What is wrong, in words.", text()),
        always("provider", "Who refuses it, or what reads it.", text()),
        maybe("providerError", "With which words it is refused.", text()),
        maybe(
            "onResume",
            "What the agent makes of it when it resumes the session, so that the provider never sees it.",
            text(),
        ),
    ]
}

fn not_judged(is_alone: bool) -> Vec<Member> {
    let here = if is_alone { always } else { maybe };
    vec![
        here("reason", "Why it is not judged.", text()),
        maybe("agent", "The program that wrote it, where that is known.", text()),
        here("help", "What to do about it.", text()),
    ]
}

fn written() -> Vec<Member> {
    vec![
        maybe("otherNames", "How many hard links stay with the old content.", number()),
        maybe("backup", "Where the old file is, or the old messages.", text()),
    ]
}

fn repair() -> Vec<Member> {
    vec![
        always("mode", "What becomes of what has no pair.", one_of(&["preserve", "remove"])),
        always("closeTail", "Whether the calls of the last step are answered, too.", flag()),
        always("repairs", "What is done.", list(&def("repair"))),
        always("losses", "What is lost by it.", list(&def("loss"))),
        always("messagesAfter", "How many messages the model would be sent then.", number()),
        always("bytesAfter", "How long it is then.", number()),
        maybe("refused", "Why it is not written without --force.", text()),
        maybe(
            "extracted",
            "The files with the images and documents that it removed.",
            json!({ "type": "array", "items": { "type": "string" } }),
        ),
        maybe(
            "thinking",
            "The first of the model's thoughts behind the changes, which its provider may drop or refuse.",
            json!({
                "type": "object",
                "required": ["what"],
                "properties": {
                    "line": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "The line at which its message begins, from 1.",
                    },
                    "what": { "type": "string", "description": "What may happen, for a person." },
                },
            }),
        ),
        always("remaining", "What is wrong afterwards.", def("health")),
    ]
}

fn action() -> Vec<Member> {
    vec![
        maybe("line", "From 1, in the file as it was.", number()),
        always("action", "What; more kinds may come.", word()),
        maybe("messageIndex", "To which message, from 0.", number()),
        maybe("toolUseId", "To which call, or its result, or which item.", text()),
        maybe("newId", "The id that took the place of the old one.", text()),
        maybe("length", "How many bytes are taken out.", number()),
        maybe("why", "Why they are no record; more kinds may come.", word()),
    ]
}

fn loss() -> Vec<Member> {
    vec![
        maybe("line", "From 1, in the file as it was.", number()),
        always(
            "what",
            "`call`, `result`, `link`, `reasoning` or `media`; more kinds may come.",
            word(),
        ),
        always("messageIndex", "Which message had it, from 0.", number()),
        always("toolUseId", "Of which call, or which item.", text()),
        maybe("tool", "The tool, where it is known.", text()),
    ]
}

fn diff() -> Vec<Member> {
    vec![always("changes", "What a repair would change.", list(&def("change")))]
}

fn change() -> Vec<Member> {
    vec![
        maybe("line", "Where the first of them is, from 1.", number()),
        always("record", "Which message or line that is, from 0.", number()),
        always("before", "The records as they are.", list(&text())),
        always("after", "What comes in their place.", list(&text())),
    ]
}

fn checkpoints() -> Vec<Member> {
    vec![
        maybe("created", "The id of the one that was made.", text()),
        always("checkpoints", "From the oldest to the newest.", list(&def("checkpoint"))),
        always("turns", "Where the last turns begin.", list(&def("turn"))),
        always("unreadableLines", "Lines of the checkpoints' file that are none.", list(&number())),
    ]
}

fn checkpoint() -> Vec<Member> {
    vec![
        always("id", "What rollback --to takes.", text()),
        always("sessionId", "Of which session.", text()),
        always("timestamp", "In milliseconds since the Unix epoch.", number()),
        always("messageIndex", "How many messages stand before it.", number()),
        always(
            "contentHash",
            "BLAKE3 of what stands before it, or the session's own hash.",
            text(),
        ),
        always("operation", "What it was made before; more kinds may come.", word()),
        maybe("length", "How many bytes of the file stand before it.", number()),
        maybe("point", "What the library calls this place.", text()),
        maybe("committed", "Of a database: whether the operation succeeded.", flag()),
        maybe("note", "What its maker wrote of it.", text()),
        always("holds", "Whether the session can be rolled back to it.", flag()),
    ]
}

fn turn() -> Vec<Member> {
    vec![
        always("id", "What rollback --to takes.", text()),
        always("messageIndex", "How many messages stand before it.", number()),
        always("line", "Behind which line it begins.", number()),
        always("length", "How many bytes of the file stand before it.", number()),
    ]
}

fn rollback() -> Vec<Member> {
    vec![
        maybe("checkpoint", "To which it goes back.", text()),
        always("messagesRemoved", "How many messages go.", number()),
        always("newMessageCount", "How many are left.", number()),
        always("bytesRemoved", "How many bytes go.", number()),
        always("remaining", "What is wrong afterwards.", def("health")),
    ]
}

fn reset() -> Vec<Member> {
    vec![
        always("archived", "Whether the old file is an archive.", flag()),
        always("remainingMessages", "How many of the system's messages are left.", number()),
    ]
}
