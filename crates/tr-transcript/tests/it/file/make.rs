//! Writes valid session files of every form.
use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

/// A kind of session file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    ClaudeCode,
    OpenClaw(u32),
    Anthropic,
    OpenAi,
}

pub(crate) const KINDS: [Kind; 6] = [
    Kind::ClaudeCode,
    Kind::OpenClaw(1),
    Kind::OpenClaw(2),
    Kind::OpenClaw(3),
    Kind::Anthropic,
    Kind::OpenAi,
];

/// What happens in a session; what a form does not have does not happen.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Turn,
    Step {
        calls: usize,
        order: usize,
    },
    Say,
    /// Something that the model does not see.
    Note,
    /// Something that an extension says.
    Custom,
    /// Goes back so many turns.
    Branch(usize),
    /// Keeps so many turns.
    Compact(usize),
    Reset,
    /// A sub-agent with a call that nobody answers.
    Sidechain,
    BrokenOff,
}

pub(crate) fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => Just(Act::Turn),
        6 => (1..4_usize, 0..3_usize).prop_map(|(calls, order)| Act::Step { calls, order }),
        2 => Just(Act::Say),
        1 => Just(Act::Note),
        1 => Just(Act::Custom),
        1 => (0..4_usize).prop_map(Act::Branch),
        1 => (0..4_usize).prop_map(Act::Compact),
        1 => Just(Act::Reset),
        1 => Just(Act::Sidechain),
        1 => Just(Act::BrokenOff),
    ];
    vec(act, 1..24)
}

/// Writes a file.
pub(crate) fn file(kind: Kind, acts: &[Act]) -> String {
    let mut writer = Writer { kind, lines: Vec::new(), leaf: None, turns: Vec::new(), made: 0 };
    if let Kind::OpenClaw(version) = kind {
        let mut header = json!({"type": "session", "id": "s-1", "timestamp": "t", "cwd": "/"});
        if version > 1 {
            header["version"] = version.into();
        }
        writer.lines.push(header.to_string());
    }
    writer.turn();
    acts.iter().for_each(|act| writer.act(act));
    writer.lines.iter().map(|line| format!("{line}\n")).collect()
}

struct Writer {
    kind: Kind,
    lines: Vec<String>,
    leaf: Option<String>,
    /// The leaf before each turn of the branch, and the line and id of its first entry.
    turns: Vec<(Option<String>, usize, String)>,
    made: usize,
}

impl Writer {
    fn next(&mut self) -> usize {
        self.made += 1;
        self.made
    }

    /// Adds an entry behind `parent`; its id.
    fn entry(&mut self, parent: Option<String>, mut fields: Value) -> String {
        let number = self.next();
        let id = match self.kind {
            Kind::ClaudeCode => format!("00000000-0000-4000-8000-{number:012}"),
            _ => format!("{number:08x}"),
        };
        match self.kind {
            Kind::ClaudeCode => {
                fields["uuid"] = id.clone().into();
                fields["parentUuid"] = parent.into();
                fields["isSidechain"] = (fields["isSidechain"] == true).into();
                fields["sessionId"] = "s-1".into();
                fields["timestamp"] = format!("t{number}").into();
            }
            Kind::OpenClaw(version) => {
                if version > 1 {
                    fields["id"] = id.clone().into();
                    fields["parentId"] = parent.into();
                }
                fields["timestamp"] = format!("t{number}").into();
            }
            Kind::Anthropic | Kind::OpenAi => {}
        }
        self.lines.push(fields.to_string());
        id
    }

    fn add(&mut self, fields: Value) {
        let id = self.entry(self.leaf.clone(), fields);
        self.leaf = Some(id);
    }

    fn message(&mut self, message: Value) {
        let line = match self.kind {
            Kind::ClaudeCode => json!({"type": message["role"], "message": message}),
            Kind::OpenClaw(_) => json!({"type": "message", "message": message}),
            Kind::Anthropic | Kind::OpenAi => message,
        };
        self.add(line);
    }

    fn turn(&mut self) {
        let (before, at) = (self.leaf.clone(), self.lines.len());
        let text = format!("turn {}", self.made);
        self.message(json!({"role": "user", "content": text}));
        self.turns.push((before, at, self.leaf.clone().unwrap_or_default()));
    }

    fn say(&mut self, text: &str) {
        let mut message = json!({"role": "assistant", "content": [{"type": "text", "text": text}]});
        if self.kind == Kind::OpenAi {
            message["content"] = text.into();
        }
        if self.kind == Kind::ClaudeCode {
            message["id"] = format!("msg_{}", self.made).into();
        }
        self.message(message);
    }

    fn act(&mut self, act: &Act) {
        let is_tree = matches!(self.kind, Kind::ClaudeCode | Kind::OpenClaw(2..));
        let is_openclaw = matches!(self.kind, Kind::OpenClaw(_));
        match *act {
            Act::Turn => self.turn(),
            Act::Say => self.say("so"),
            Act::Step { calls, order } => self.step(calls, order),
            Act::Note if self.kind == Kind::ClaudeCode => {
                self.add(json!({"type": "system", "subtype": "note", "content": "x"}));
                self.lines
                    .push(json!({"type": "file-history-snapshot", "snapshot": {}}).to_string());
            }
            Act::Note if is_openclaw => {
                self.add(json!({"type": "model_change", "provider": "p", "modelId": "m"}));
                self.add(
                    json!({"type": "custom", "customType": "x", "data": {"role": "assistant"}}),
                );
            }
            Act::Custom if is_openclaw => {
                self.add(json!({"type": "custom_message", "customType": "x", "content": "hi", "display": true}));
                let role = if self.kind == Kind::OpenClaw(3) { "custom" } else { "hookMessage" };
                self.message(
                    json!({"role": role, "customType": "x", "content": "hi", "display": false}),
                );
            }
            Act::Branch(turns) if is_tree => {
                let at = self.turns.len().saturating_sub(turns + 1);
                let Some((before, ..)) = self.turns.get(at).cloned() else { return };
                self.turns.truncate(at);
                self.leaf = before.clone();
                if is_openclaw {
                    let from = before.unwrap_or_else(|| "root".into());
                    self.add(json!({"type": "branch_summary", "fromId": from, "summary": "left"}));
                }
                self.turn();
            }
            Act::Compact(keeps) => self.compact(keeps),
            Act::Reset if is_openclaw => {
                self.add(json!({"type": "reset"}));
                self.turns.clear();
                self.turn();
            }
            Act::Sidechain if self.kind == Kind::ClaudeCode => {
                let call = json!({"type": "tool_use", "id": format!("side_{}", self.made), "name": "x", "input": {}});
                let message = json!({"role": "assistant", "id": "msg_side", "content": [call]});
                self.entry(
                    None,
                    json!({"type": "assistant", "isSidechain": true, "message": message}),
                );
            }
            Act::BrokenOff if is_openclaw => {
                let call = json!({"type": "toolCall", "id": format!("cut_{}", self.made), "name": "x", "arguments": {}});
                self.message(
                    json!({"role": "assistant", "content": [call], "stopReason": "aborted"}),
                );
                self.turn();
            }
            _ => {}
        }
    }

    fn compact(&mut self, keeps: usize) {
        match self.kind {
            Kind::ClaudeCode => {
                let boundary = json!({"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted"});
                self.leaf = Some(self.entry(None, boundary));
                self.turns.clear();
                self.turn();
            }
            Kind::OpenClaw(version) => {
                let first = self.turns.len().saturating_sub(keeps);
                self.turns.drain(..first);
                let mut entry =
                    json!({"type": "compaction", "summary": "before", "tokensBefore": 9});
                if let Some((_, line, id)) = self.turns.first() {
                    match version {
                        1 => entry["firstKeptEntryIndex"] = (*line).into(),
                        _ => entry["firstKeptEntryId"] = id.clone().into(),
                    }
                }
                self.add(entry);
                // What was before is not gone back to.
                self.turns.clear();
                self.turn();
            }
            _ => {}
        }
    }

    /// A step of the model with calls, and their results; the order of lines varies.
    fn step(&mut self, calls: usize, order: usize) {
        let step = self.next();
        let ids: Vec<_> = (0..calls).map(|n| format!("call_{step}_{n}")).collect();
        let answers: Vec<_> = (0..calls).map(|n| format!("answer {step}.{n};")).collect();
        match self.kind {
            Kind::ClaudeCode => self.claude_step(step, &ids, &answers, order),
            Kind::OpenClaw(_) => {
                let call = |id: &String| json!({"type": "toolCall", "id": id, "name": "read", "arguments": {"n": step}});
                let content: Vec<_> = ids.iter().map(call).collect();
                self.message(
                    json!({"role": "assistant", "content": content, "stopReason": "toolUse"}),
                );
                for (id, answer) in ids.iter().zip(&answers) {
                    let content = json!([{"type": "text", "text": answer}]);
                    self.message(json!({"role": "toolResult", "toolCallId": id, "toolName": "read", "content": content, "isError": false}));
                    if order == 1 {
                        self.act(&Act::Note);
                    }
                }
            }
            Kind::Anthropic => {
                let call = |id: &String| json!({"type": "tool_use", "id": id, "name": "read", "input": {"n": step}});
                let content: Vec<_> = ids.iter().map(call).collect();
                self.message(json!({"role": "assistant", "content": content}));
                let result = |(id, answer): (&String, &String)| json!({"type": "tool_result", "tool_use_id": id, "content": answer});
                let content: Vec<_> = ids.iter().zip(&answers).map(result).collect();
                self.message(json!({"role": "user", "content": content}));
            }
            Kind::OpenAi => {
                let call = |id: &String| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}});
                let calls: Vec<_> = ids.iter().map(call).collect();
                self.message(json!({"role": "assistant", "content": null, "tool_calls": calls}));
                for (id, answer) in ids.iter().zip(&answers) {
                    self.message(json!({"role": "tool", "tool_call_id": id, "content": answer}));
                }
            }
        }
    }

    /// A line for each block; results hang on the line of their use, or on one another.
    fn claude_step(&mut self, step: usize, ids: &[String], answers: &[String], order: usize) {
        let message_id = format!("msg_step_{step}");
        let use_of = |id: &String| {
            let call = json!({"type": "tool_use", "id": id, "name": "read", "input": {"n": step}});
            let message = json!({"role": "assistant", "id": message_id, "content": [call]});
            json!({"type": "assistant", "message": message})
        };
        let result_of = |id: &String, answer: &String| {
            let result = json!({"type": "tool_result", "tool_use_id": id, "content": answer});
            let message = json!({"role": "user", "content": [result]});
            json!({"type": "user", "message": message, "toolUseResult": answer})
        };
        let mut used = Vec::new();
        for (id, answer) in ids.iter().zip(answers) {
            self.add(use_of(id));
            used.push(self.leaf.clone());
            if order == 2 {
                let parent = self.leaf.clone();
                let result = self.entry(parent, result_of(id, answer));
                // The last result is the leaf; the others hang beside the branch.
                if used.len() == ids.len() {
                    self.leaf = Some(result);
                }
            }
        }
        for ((id, answer), used) in ids.iter().zip(answers).zip(used) {
            match order {
                0 => self.add(result_of(id, answer)),
                1 => self.leaf = Some(self.entry(used, result_of(id, answer))),
                _ => {}
            }
        }
    }
}
