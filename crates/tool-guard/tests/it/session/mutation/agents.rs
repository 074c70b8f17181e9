//! The story as agents write it to their files, with what else those have in them.
use super::{
    forms::{anthropic, anthropic_result, anthropic_step, responses},
    story::{Step, Turn, Words},
};
use serde_json::{Value, json};

/// Records that hang on one another: each names itself and the one before.
struct Chain {
    records: Vec<Value>,
    last: Option<String>,
    names: [&'static str; 2],
}

impl Chain {
    fn new(names: [&'static str; 2]) -> Self {
        Self { records: Vec::new(), last: None, names }
    }

    /// Adds a record behind the last one, or behind another.
    fn push(&mut self, mut record: Value, parent: Option<&str>) -> String {
        let id = format!("{:08x}", 0x9e37_79b9_u32.wrapping_mul(self.records.len() as u32 + 1));
        record[self.names[0]] = json!(id);
        record[self.names[1]] = json!(parent);
        record["timestamp"] = json!("2026-02-03T04:05:06.789Z");
        self.records.push(record);
        self.last = Some(id.clone());
        id
    }

    fn add(&mut self, record: Value) -> String {
        let parent = self.last.clone();
        self.push(record, parent.as_deref())
    }
}

/// Claude Code: a record for each block, results where their calls are, a side branch, and
/// sometimes a compaction and a subagent's message.
pub(crate) fn claude_code(story: &[Turn], words: &mut Words) -> Vec<Value> {
    let mut chain = Chain::new(["uuid", "parentUuid"]);
    let compacted = (words.random.u8(0..3) == 0).then(|| words.random.usize(1..story.len()));
    for (at, turn) in story.iter().enumerate() {
        if compacted == Some(at) {
            let boundary = json!({"type": "system", "subtype": "compact_boundary", "isSidechain": false,
                "sessionId": "s-1", "content": "Conversation compacted", "logicalParentUuid": chain.last});
            chain.push(boundary, None);
            let summary = words.text("summary");
            chain.add(claude_record("user", json!({"role": "user", "content": summary}), None));
        }
        let before = chain.last.clone();
        if words.random.u8(0..4) == 0 {
            // A prompt that was taken back: a branch that nobody goes on with.
            let dropped = json!({"role": "user", "content": words.text("dropped")});
            chain.push(claude_record("user", dropped, None), before.as_deref());
        }
        let prompt = anthropic(std::slice::from_ref(turn)).swap_remove(0);
        chain.push(claude_record("user", prompt, None), before.as_deref());
        for step in &turn.steps {
            claude_step(&mut chain, step, words);
        }
        let id = words.id();
        let answer = json!([{"type": "text", "text": turn.answer}]);
        chain.add(claude_record(
            "assistant",
            json!({"role": "assistant", "content": answer}),
            Some(id),
        ));
    }
    let summary = json!({"type": "summary", "summary": "A session", "leafUuid": chain.last});
    chain.records.insert(0, summary);
    chain.records
}

fn claude_record(kind: &str, mut message: Value, answer: Option<String>) -> Value {
    if let Some(id) = answer {
        message["id"] = json!(format!("msg_{id}"));
        message["type"] = json!("message");
        message["model"] = json!("claude-opus-4-1");
    }
    json!({"type": kind, "isSidechain": false, "userType": "external", "cwd": "/w", "sessionId": "s-1",
        "version": "2.1.0", "message": message})
}

fn claude_step(chain: &mut Chain, step: &Step, words: &mut Words) {
    let answer = words.id();
    let mut called = Vec::new();
    for block in anthropic_step(step) {
        let is_call = block["type"] == "tool_use";
        let message = json!({"role": "assistant", "content": [block]});
        let id = chain.add(claude_record("assistant", message, Some(answer.clone())));
        if is_call {
            called.push(id);
        }
    }
    for (call, parent) in step.calls.iter().zip(called) {
        let message = json!({"role": "user", "content": [anthropic_result(call)]});
        chain.push(claude_record("user", message, None), Some(&parent));
    }
}

/// pi and OpenClaw: a tree of entries behind a header.
pub(crate) fn pi(story: &[Turn], words: &mut Words) -> Vec<Value> {
    let mut chain = Chain::new(["id", "parentId"]);
    let api = ["anthropic-messages", "openai-completions"][words.random.usize(0..2)];
    let provider = if api == "openai-completions" { "openai" } else { "anthropic" };
    let compacted = (words.random.u8(0..3) == 0).then(|| words.random.usize(1..story.len()));
    chain.add(json!({"type": "model_change", "provider": provider, "modelId": "m-1"}));
    let message = |message: Value| json!({"type": "message", "message": message});
    let said = |content: Vec<Value>, reason: &str| {
        message(json!({"role": "assistant", "content": content, "api": api, "provider": provider,
            "model": "m-1", "usage": {"input": 1, "output": 2}, "stopReason": reason, "timestamp": 1}))
    };
    for (at, turn) in story.iter().enumerate() {
        let content = json!([{"type": "text", "text": turn.prompt}]);
        let prompt =
            chain.add(message(json!({"role": "user", "content": content, "timestamp": 1})));
        if compacted == Some(at) {
            chain.add(json!({"type": "compaction", "summary": words.text("summary"),
                "firstKeptEntryId": prompt, "tokensBefore": 1000}));
        }
        for step in &turn.steps {
            chain.add(said(pi_step(step), "toolUse"));
            for call in &step.calls {
                let content = json!([{"type": "text", "text": call.result}]);
                chain.add(message(json!({"role": "toolResult", "toolCallId": call.id,
                    "toolName": call.name, "content": content, "isError": call.is_error, "timestamp": 1})));
            }
        }
        chain.add(said(vec![json!({"type": "text", "text": turn.answer})], "stop"));
    }
    let header = json!({"type": "session", "version": 3, "id": "s-1", "timestamp": "2026-02-03T04:05:06Z",
        "cwd": "/w"});
    chain.records.insert(0, header);
    chain.records
}

fn pi_step(step: &Step) -> Vec<Value> {
    let think =
        |thought| json!({"type": "thinking", "thinking": thought, "thinkingSignature": "c2ln"});
    let mut blocks: Vec<_> = step.thought.iter().map(think).collect();
    blocks.extend(step.says.iter().map(|says| json!({"type": "text", "text": says})));
    blocks.extend(step.calls.iter().map(|call| {
        let arguments = json!({"what": call.argument});
        json!({"type": "toolCall", "id": call.id, "name": call.name, "arguments": arguments})
    }));
    blocks
}

/// Codex: items of the Responses API between records of other kinds.
pub(crate) fn codex(story: &[Turn]) -> Vec<Value> {
    let line = |kind: &str, payload: Value| json!({"timestamp": "2026-02-03T04:05:06.789Z", "type": kind, "payload": payload});
    let meta = json!({"id": "019a2d7a-41c4-78b1-b7cc-a45d62a89cd5", "cwd": "/w", "originator": "codex_exec",
        "cli_version": "0.65.0", "source": "cli", "instructions": null});
    let mut records = vec![line("session_meta", meta)];
    for turn in story {
        let context = json!({"cwd": "/w", "approval_policy": "never", "model": "gpt-5-codex"});
        records.push(line("turn_context", context));
        let mut items = responses(std::slice::from_ref(turn));
        // What the file has of a call are no item ids.
        for item in items.iter_mut().filter(|item| item["type"] != "reasoning") {
            item.as_object_mut().unwrap().remove("id");
        }
        records.extend(items.into_iter().map(|item| line("response_item", item)));
        records.push(line("event_msg", json!({"type": "token_count", "info": null})));
    }
    records
}
