//! JSON lines: which records an agent sends, in which order, and what the provider says to them.
//!
//! Claude Code: a tree by `parentUuid`, from its leaf to the root or the last `compact_boundary`;
//! the blocks of one answer are records with one `message.id`, and results of parallel calls hang
//! on the record of their call. pi and OpenClaw: "Session File Format". Codex: a `response_item` is
//! an item of the Responses API, and `compacted` stands for all before it.
use super::{Form, Told, anthropic, openai, text};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

/// The records of a file, and how many lines are none: agents pass over those.
pub(crate) fn records(bytes: &[u8]) -> (Vec<Value>, usize) {
    let lines = bytes.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.iter().all(u8::is_ascii_whitespace));
    let (mut records, mut broken) = (Vec::new(), 0);
    for line in lines {
        // As `readFile(…, "utf8")` of Node has it.
        match serde_json::from_str(&String::from_utf8_lossy(line)) {
            Ok(record) => records.push(record),
            Err(_) => broken += 1,
        }
    }
    (records, broken)
}

pub(crate) fn judge(form: Form, records: &[Value]) -> Told {
    match form {
        Form::AnthropicLines => anthropic::conversation(records),
        Form::ChatLines => openai::chat(records),
        Form::ClaudeCode => anthropic::conversation(&claude_code(records)),
        Form::Pi => pi(records),
        _ => openai::responses(&codex(records)),
    }
}

/// From the leaf back to the root, by each record's parent; in the order of the session.
fn path<'a>(records: &[&'a Value], leaf: &'a Value, id: &str, parent: &str) -> Vec<&'a Value> {
    let by_id: HashMap<_, _> = records.iter().map(|record| (text(record, id), *record)).collect();
    let (mut path, mut seen) = (vec![leaf], HashSet::from([text(leaf, id)]));
    let mut at = leaf;
    while let Some(next) = at[parent].as_str().and_then(|parent| by_id.get(parent)) {
        if !seen.insert(text(next, id)) {
            break;
        }
        path.push(next);
        at = next;
    }
    path.reverse();
    path
}

/// Of records with one `uuid`, the last.
fn last_of_each(records: Vec<&Value>) -> Vec<&Value> {
    let last: HashMap<_, _> =
        records.iter().map(|record| (text(record, "uuid"), *record)).collect();
    let mut seen = HashSet::new();
    let first = records.into_iter().filter(|record| seen.insert(text(record, "uuid")));
    first.map(|record| last[text(record, "uuid")]).collect()
}

/// The messages that Claude Code would send.
fn claude_code(records: &[Value]) -> Vec<Value> {
    let is_ours = |record: &&Value| record["uuid"].is_string() && record["isSidechain"] != true;
    let ours = last_of_each(records.iter().filter(is_ours).collect());
    let is_message = |record: &Value| ["user", "assistant"].contains(&text(record, "type"));
    let chosen = records.iter().rev().find(|record| record["type"] == "last-prompt");
    let chosen = chosen.map_or("", |prompt| text(prompt, "leafUuid"));
    let leaf = ours.iter().rfind(|record| text(record, "uuid") == chosen);
    let Some(leaf) = leaf.or_else(|| ours.iter().rfind(|record| is_message(record))) else {
        return Vec::new();
    };
    let path = if ours.iter().any(|record| record["parentUuid"].is_string()) {
        with_parallel(&ours, &path(&ours, leaf, "uuid", "parentUuid"))
    } else {
        ours.clone()
    };
    merged(path.into_iter().filter(|record| is_message(record)))
}

/// With the other records of each answer, those that are linked first, and the results that hang on
/// any of them.
fn with_parallel<'a>(ours: &[&'a Value], path: &[&'a Value]) -> Vec<&'a Value> {
    let linked: HashSet<_> = path.iter().map(|record| text(record, "uuid")).collect();
    let (mut taken, mut seen) = (Vec::new(), HashSet::new());
    for record in path {
        let answer = text(&record["message"], "id");
        let is_of_it =
            |other: &&&Value| !answer.is_empty() && text(&other["message"], "id") == answer;
        let beside = ours.iter().filter(|other| !linked.contains(text(other, "uuid")));
        let of_it = path.iter().filter(is_of_it).chain(beside.filter(is_of_it)).chain([record]);
        let of_it: Vec<_> = of_it.copied().collect();
        let hangs = |other: &&&Value| {
            brings_results(other)
                && of_it
                    .iter()
                    .any(|one| one["type"] == "assistant" && one["uuid"] == other["parentUuid"])
        };
        let results = ours.iter().filter(hangs).copied();
        let found: Vec<_> = of_it.iter().copied().chain(results).collect();
        taken.extend(found.into_iter().filter(|record| seen.insert(text(record, "uuid"))));
    }
    taken
}

fn brings_results(record: &Value) -> bool {
    let blocks = record["message"]["content"].as_array();
    blocks.is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "tool_result"))
}

/// Turns of one role in a row as one message; of the user's, results first.
///
/// Of answers, from Claude Code 2.1.330: one whose content is `""` reads `(no content)`, and one that
/// says no more than this is left out (`tengu_assistant_string_content_promoted`,
/// `tengu_filtered_whitespace_only_assistant`); one without blocks, `[]`, is sent as `(no content)`
/// (`tengu_fixed_empty_assistant_content`).
fn merged<'a>(records: impl Iterator<Item = &'a Value>) -> Vec<Value> {
    let records: Vec<_> = records.collect();
    let is_alone = |record: &Value| {
        let answer = text(&record["message"], "id");
        let of_it = records.iter().filter(|it| text(&it["message"], "id") == answer);
        answer.is_empty() || of_it.count() == 1
    };
    let mut merged: Vec<Value> = Vec::new();
    for record in &records {
        let message = &record["message"];
        // One that lost its role is no message to anybody.
        let Some(role) = message.get("role") else { continue };
        let mut blocks = match &message["content"] {
            Value::String(said) if said.is_empty() && role == "assistant" => continue,
            Value::String(said) => vec![json!({"type": "text", "text": said})],
            Value::Array(none) if none.is_empty() && role == "assistant" && is_alone(record) => {
                vec![json!({"type": "text", "text": "(no content)"})]
            }
            other => other.as_array().cloned().unwrap_or_default(),
        };
        if blocks.is_empty() {
            continue;
        }
        match merged.last_mut().filter(|last| last["role"] == *role) {
            Some(last) => last["content"].as_array_mut().unwrap().append(&mut blocks),
            None => merged.push(json!({"role": role, "content": blocks})),
        }
    }
    for message in merged.iter_mut().filter(|message| message["role"] == "user") {
        let blocks = message["content"].as_array_mut().unwrap();
        blocks.sort_by_key(|block| block["type"] != "tool_result");
    }
    merged
}

fn pi(records: &[Value]) -> Told {
    let (headers, entries): (Vec<_>, Vec<_>) =
        records.iter().partition(|it| it["type"] == "session");
    let Some(leaf) = entries.last() else { return Told::default() };
    let is_linked = entries.iter().any(|entry| entry["parentId"].is_string());
    let is_tree = is_linked || headers.iter().any(|header| header["version"].as_u64() > Some(1));
    let path = if is_tree { path(&entries, leaf, "id", "parentId") } else { entries.clone() };
    let compaction = path.iter().rposition(|entry| entry["type"] == "compaction");
    let sent = match compaction {
        None => path,
        Some(at) => {
            let first = &path[at]["firstKeptEntryId"];
            let kept = path[..at].iter().skip_while(|entry| entry["id"] != *first);
            kept.chain(&path[at + 1..]).copied().collect()
        }
    };
    let messages = sent.iter().filter(|entry| entry["type"] == "message");
    pi_messages(messages.map(|entry| &entry["message"]))
}

fn pi_messages<'a>(messages: impl Iterator<Item = &'a Value>) -> Told {
    let messages: Vec<_> = messages.collect();
    // All of them go to the provider of the last answer.
    let last = messages.iter().rfind(|message| message["role"] == "assistant");
    let is_anthropics = last.is_some_and(|last| last["api"] == "anthropic-messages");
    let mut told = Told::default();
    let (mut called, mut ids) = (Vec::<&str>::new(), HashSet::new());
    for (at, message) in messages.into_iter().enumerate() {
        match text(message, "role") {
            "toolResult" => {
                let id = text(message, "toolCallId");
                match called.iter().position(|call| *call == id) {
                    Some(found) => drop(called.remove(found)),
                    None => told.wrong(at, &format!("a result without its call: {id}")),
                }
                continue;
            }
            "user" | "assistant" | "bashExecution" | "custom" | "branchSummary" => {}
            // pi sends none of another role.
            _ => continue,
        }
        if !called.is_empty() {
            told.wrong(at, &format!("calls without results: {called:?}"));
            called.clear();
        }
        if message["role"] != "assistant" {
            continue;
        }
        let calls = message["content"].as_array().map_or(&[][..], Vec::as_slice);
        for call in calls.iter().filter(|block| block["type"] == "toolCall") {
            let id = text(call, "id");
            called.push(id);
            if id.is_empty() || text(call, "name").is_empty() || !call["arguments"].is_object() {
                told.member(at, "a call wants an id, a name and an object of arguments");
            }
            if is_anthropics && !ids.insert(id) {
                told.member(at, &format!("tool_use ids must be unique: {id}"));
            }
        }
    }
    told.open = called.into_iter().map(str::to_owned).collect();
    told
}

/// The items that Codex would send.
fn codex(records: &[Value]) -> Vec<Value> {
    let mut items = Vec::new();
    for record in records {
        let payload = &record["payload"];
        match (text(record, "type"), payload["replacement_history"].as_array()) {
            // One that cannot be read is passed over.
            ("response_item", _) if payload.is_object() => items.push(payload.clone()),
            ("compacted", Some(history)) => items.clone_from(history),
            ("compacted", None) => {
                items.retain(|item| item["role"] == "user");
                items.push(json!({"role": "user", "content": payload["message"]}));
            }
            _ => {}
        }
    }
    items
}
