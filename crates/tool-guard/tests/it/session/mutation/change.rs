//! What goes wrong in a session: of its records and blocks, and of the file's bytes.
use super::{session::Session, story::Words};
use crate::session::provider::Form;
use fastrand::Rng;
use serde_json::{Value, json};

/// Changes a record, a message or a block, and says what was done.
pub(crate) fn change(session: &mut Session, words: &mut Words) -> &'static str {
    let count = session.records.len();
    if count == 0 {
        return "nothing";
    }
    let (at, other) = (words.random.usize(0..count), words.random.usize(0..count));
    match words.random.u8(0..12) {
        0 => {
            session.records.remove(at);
            "drop a record"
        }
        // Which of two records with one name counts is each agent's own affair.
        1 if !matches!(session.form, Form::ClaudeCode | Form::Pi) => {
            session.records.insert(other, session.records[at].clone());
            "repeat a record"
        }
        1 | 2 => {
            session.records.swap(at, other);
            "swap two records"
        }
        3 => {
            session.records.truncate(at + 1);
            "cut the end"
        }
        4 => {
            let first = usize::from(session.form.is_lines());
            session.records.drain(first.min(at)..at);
            "cut the beginning"
        }
        5 => insert(session, at, words),
        6..=8 => in_blocks(session, at, other, words),
        _ => in_members(session, at, words),
    }
}

/// A message where none belongs.
fn insert(session: &mut Session, at: usize, words: &mut Words) -> &'static str {
    let form = session.form;
    let mut record = session.records[at].clone();
    let Some(message) = Session::message(form, &mut record) else { return "nothing" };
    let (name, role) = match words.random.u8(0..4) {
        0 if matches!(form, Form::Anthropic | Form::AnthropicLines) => {
            ("insert an effort change", "system")
        }
        1 => ("insert a message of an unknown role", "narrator"),
        _ => ("insert a prompt", "user"),
    };
    let says = words.text("inserted");
    *message = match form {
        Form::Gemini => json!({"role": role, "parts": [{"text": says}]}),
        _ if role == "system" => json!({"role": role, "content": []}),
        Form::Codex => {
            json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": says}]})
        }
        _ => json!({"role": role, "content": says}),
    };
    rename(&mut record, words);
    session.records.insert(at, record);
    name
}

/// A record of a tree, by a name of its own.
fn rename(record: &mut Value, words: &mut Words) {
    for name in ["uuid", "id"] {
        if record.get(name).is_some() && record.get("message").is_some() {
            record[name] = json!(words.id());
        }
    }
}

fn blocks(form: Form, record: &mut Value) -> Option<&mut Vec<Value>> {
    let message = Session::message(form, record)?;
    let member =
        ["tool_calls", "content", "parts"].into_iter().find(|it| message[*it].is_array())?;
    message[member].as_array_mut()
}

fn in_blocks(session: &mut Session, at: usize, other: usize, words: &mut Words) -> &'static str {
    let form = session.form;
    let Some(found) = blocks(form, &mut session.records[at]).filter(|it| !it.is_empty()) else {
        return "nothing";
    };
    let (from, to) = (words.random.usize(0..found.len()), words.random.usize(0..found.len()));
    match words.random.u8(0..6) {
        0 => {
            found.remove(from);
            "drop a block"
        }
        1 => {
            found.insert(to, found[from].clone());
            "repeat a block"
        }
        2 => {
            found.swap(from, to);
            "swap two blocks"
        }
        3 => {
            let says = words.text("unknown");
            found.insert(to, json!({"type": "hologram", "scene": says}));
            "insert an unknown block"
        }
        4 => {
            found[from]["provider_extra"] = json!({"kept": words.text("extra")});
            "add an unknown member to a block"
        }
        _ => {
            let block = found.remove(from);
            if let Some(there) = blocks(form, &mut session.records[other]) {
                let to = words.random.usize(..=there.len());
                there.insert(to, block);
            }
            "move a block to another message"
        }
    }
}

const IDS: [&str; 5] = ["id", "tool_use_id", "call_id", "tool_call_id", "toolCallId"];

/// Every object in it that has one of these members.
fn with<'a>(value: &'a mut Value, members: &[&str], found: &mut Vec<&'a mut Value>) {
    let has = value.as_object().is_some_and(|it| members.iter().any(|name| it.contains_key(*name)));
    if has {
        return found.push(value);
    }
    match value {
        Value::Array(list) => list.iter_mut().for_each(|it| with(it, members, found)),
        Value::Object(map) => map.values_mut().for_each(|it| with(it, members, found)),
        _ => {}
    }
}

fn in_members(session: &mut Session, at: usize, words: &mut Words) -> &'static str {
    let form = session.form;
    let Some(message) = Session::message(form, &mut session.records[at]) else { return "nothing" };
    match words.random.u8(0..9) {
        0 => {
            message["role"] =
                json!(["narrator", "user", "assistant", "system"][words.random.usize(0..4)]);
            return "change the role";
        }
        1 => {
            message["provider_extra"] = json!({"kept": words.text("extra")});
            return "add an unknown member to a message";
        }
        2 => {
            message["content"] =
                [json!(null), json!(7), json!(""), json!([])][words.random.usize(0..4)].clone();
            return "change the content's type";
        }
        _ => {}
    }
    let (members, name): (&[&str], _) = match words.random.u8(0..8) {
        0..=2 => (&IDS, "change an id"),
        3 => (&["input", "arguments", "args"], "change what a call is given"),
        4 => (&["name"], "change a tool's name"),
        _ => (&["text"], "change a text"),
    };
    let mut found = Vec::new();
    // The answer's own id names no call.
    for (_, part) in message.as_object_mut().into_iter().flatten() {
        with(part, members, &mut found);
    }
    let Some(place) = found.into_iter().next() else { return "nothing" };
    let member = members.iter().find(|name| place.get(**name).is_some()).unwrap();
    place[*member] = match name {
        "change an id" => {
            [json!(""), json!("call with spaces"), json!("call_other"), json!("x".repeat(70))]
                [words.random.usize(0..4)]
            .clone()
        }
        "change a tool's name" => [json!(""), json!("n".repeat(300)), json!("two words")]
            [words.random.usize(0..3)]
        .clone(),
        "change a text" => {
            [json!(""), json!(" \n"), json!("ends in a blank ")][words.random.usize(0..3)].clone()
        }
        _ => [json!(null), json!("{\"cut"), json!([1])][words.random.usize(0..3)].clone(),
    };
    name
}

/// Damages the file, and says how.
pub(crate) fn damage(bytes: &mut Vec<u8>, random: &mut Rng) -> &'static str {
    let at = random.usize(..bytes.len().max(1)).min(bytes.len());
    let starts: Vec<_> = (0..bytes.len()).filter(|at| *at == 0 || bytes[at - 1] == b'\n').collect();
    let Some(&line) = random.choice(&starts) else { return "nothing" };
    let end =
        bytes[line..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |it| line + it);
    let run = random.usize(1..600);
    match random.u8(0..9) {
        0 => {
            bytes.splice(line..line, vec![0; run]);
            "NUL bytes before a line"
        }
        1 => {
            let end = bytes.len().min(at + run);
            bytes[at..end].fill(0);
            "NUL bytes over others"
        }
        2 => {
            bytes.drain(line + (end - line) / 2..end);
            "a torn line"
        }
        3 => {
            bytes.drain(line + (end - line) / 3..bytes.len().min(end + 1));
            "a torn line with the next one behind it"
        }
        4 => {
            bytes.drain(end..bytes.len().min(end + 1));
            "two lines in one"
        }
        5 => {
            bytes.splice(at..at, [0xff, 0xfe]);
            "bytes that are no UTF-8"
        }
        6 => {
            bytes.truncate(at);
            "the end cut off"
        }
        7 => {
            bytes.splice(end..end, *b"\nnot a record");
            "a line of text"
        }
        _ => {
            let repeated = bytes[line..line + (end - line) / 2].to_vec();
            bytes.splice(line..line, repeated);
            "a line that was begun twice"
        }
    }
}
