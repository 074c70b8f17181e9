//! Sessions of agents whose rules are not known here, each with a call that was never answered: no
//! command says that they are in order, and none changes them.
use super::folder::Folder;
use serde_json::{Value, json};
use std::fs;

/// What an agent's file is called, and what is in it.
type File = (&'static str, String);

fn lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

/// `UIMessage[]` of the AI SDK 5, and `Message[]` of 4.
fn vercel_ui() -> Vec<File> {
    let text = |id: &str, text: &str| json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]});
    let tool = json!({"type": "tool-pay", "toolCallId": "call_1", "state": "input-available", "input": {"order": 42}});
    let answer = json!({"id": "m2", "role": "assistant", "parts": [{"type": "step-start"}, tool]});
    let invocation = json!({"state": "call", "step": 0, "toolCallId": "call_1", "toolName": "pay", "args": {"order": 42}});
    let old =
        json!({"id": "m2", "role": "assistant", "content": "", "toolInvocations": [invocation]});
    let says = |id: &str, says: &str| json!({"id": id, "role": "user", "content": says});
    vec![
        (
            "vercel-ui-5.json",
            json!([text("m1", "Pay order 42."), answer, text("m3", "Well?")]).to_string(),
        ),
        (
            "vercel-ui-4.json",
            json!([says("m1", "Pay order 42."), old, says("m3", "Well?")]).to_string(),
        ),
    ]
}

/// `ModelMessage[]` of the AI SDK, and `CoreMessage[]`, whose calls have `args`.
fn vercel_model() -> Vec<File> {
    let messages = |given: &str| {
        let mut call = json!({"type": "tool-call", "toolCallId": "call_1", "toolName": "pay"});
        call[given] = json!({"order": 42});
        let says =
            |says: &str| json!({"role": "user", "content": [{"type": "text", "text": says}]});
        json!([says("Pay order 42."), {"role": "assistant", "content": [call]}, says("Well?")])
            .to_string()
    };
    vec![("vercel-model.json", messages("input")), ("vercel-core.json", messages("args"))]
}

/// A request of `Converse`.
fn bedrock() -> Vec<File> {
    let says = |says: &str| json!({"role": "user", "content": [{"text": says}]});
    let call =
        json!({"toolUse": {"toolUseId": "tooluse_1", "name": "pay", "input": {"order": 42}}});
    let answer = json!({"role": "assistant", "content": [{"text": "I pay it."}, call]});
    let messages = json!([says("Pay order 42."), answer, says("Well?")]);
    let request = json!({"modelId": "anthropic.claude-3-5-sonnet-20241022-v2:0", "messages": messages,
        "inferenceConfig": {"maxTokens": 512}, "system": [{"text": "Be brief."}]});
    vec![("bedrock.json", request.to_string()), ("bedrock-bare.json", messages.to_string())]
}

/// goose: the JSON lines of its files, and the document of `session export`.
fn goose() -> Vec<File> {
    let says = |says: &str| json!({"id": null, "role": "user", "created": 1_761_000_000, "content": [{"type": "text", "text": says}]});
    let value = json!({"name": "developer__shell", "arguments": {"command": "pay 42"}});
    let call = json!({"type": "toolRequest", "id": "toolu_1", "toolCall": {"status": "success", "value": value}});
    let answer =
        json!({"id": null, "role": "assistant", "created": 1_761_000_001, "content": [call]});
    let header = json!({"working_dir": "/w", "description": "Payment", "schedule_id": null, "message_count": 3,
        "total_tokens": 100, "input_tokens": 80, "output_tokens": 20});
    let messages = [says("Pay order 42."), answer, says("Well?")];
    let export = json!({"id": "20251103_1", "working_dir": "/w", "name": "Payment", "conversation": messages});
    let file = lines(&[&[header], &messages[..]].concat());
    vec![("goose.jsonl", file), ("goose-export.json", export.to_string())]
}

/// `opencode export`.
fn opencode() -> Vec<File> {
    let message = |id: &str, role: &str, part: Value| {
        let info = json!({"id": id, "sessionID": "ses_1", "role": role, "time": {"created": 1}});
        json!({"info": info, "parts": [part]})
    };
    let state = json!({"status": "running", "input": {"command": "pay 42"}, "time": {"start": 1}});
    let call =
        json!({"id": "prt_2", "type": "tool", "callID": "toolu_1", "tool": "bash", "state": state});
    let text = |text: &str| json!({"id": "prt_1", "type": "text", "text": text});
    let messages = json!([
        message("msg_1", "user", text("Pay order 42.")),
        message("msg_2", "assistant", call),
        message("msg_3", "user", text("Well?")),
    ]);
    let info = json!({"id": "ses_1", "version": "1.0.12", "projectID": "p", "directory": "/w", "title": "Payment"});
    vec![("opencode.json", json!({"info": info, "messages": messages}).to_string())]
}

/// What `ModelMessagesTypeAdapter` of pydantic-ai writes.
fn pydantic_ai() -> Vec<File> {
    let prompt = |says: &str| {
        let part = json!({"content": says, "timestamp": "2026-02-03T04:05:06Z", "part_kind": "user-prompt"});
        json!({"parts": [part], "instructions": null, "kind": "request"})
    };
    let call = json!({"tool_name": "pay", "args": "{\"order\":42}", "tool_call_id": "call_1", "part_kind": "tool-call"});
    let answer = json!({"parts": [call], "usage": {"input_tokens": 1}, "model_name": "gpt-4o", "kind": "response"});
    let messages = json!([prompt("Pay order 42."), answer, prompt("Well?")]);
    vec![("pydantic-ai.json", messages.to_string())]
}

/// Qwen Code: Claude Code's records around Gemini's contents.
fn qwen() -> Vec<File> {
    let record = |uuid: &str, parent: Option<&str>, kind: &str, message: Value| {
        json!({"uuid": uuid, "parentUuid": parent, "sessionId": "s-1", "timestamp": "2026-02-03T04:05:06.789Z",
            "type": kind, "cwd": "/w", "version": "0.4.0", "message": message})
    };
    let text = |text: &str| json!({"role": "user", "parts": [{"text": text}]});
    let call = json!({"functionCall": {"id": "call_1", "name": "pay", "args": {"order": 42}}});
    let answer = json!({"role": "model", "parts": [call]});
    let records = [
        record("u1", None, "user", text("Pay order 42.")),
        record("u2", Some("u1"), "assistant", answer),
        record("u3", Some("u2"), "user", text("Well?")),
    ];
    vec![("qwen.jsonl", lines(&records))]
}

/// gemini-cli's `chats/session-….json`, and the JSON lines of its later versions.
fn gemini_cli() -> Vec<File> {
    let user = |id: &str, says: &str| json!({"id": id, "timestamp": "2026-02-03T04:05:06Z", "type": "user", "content": says});
    let call = json!({"id": "pay-1", "name": "pay", "args": {"order": 42}, "status": "executing",
        "timestamp": "2026-02-03T04:05:07Z"});
    let answer = json!({"id": "m2", "timestamp": "2026-02-03T04:05:07Z", "type": "gemini", "content": "",
        "toolCalls": [call], "thoughts": [], "tokens": {"input": 1}, "model": "gemini-2.5-pro"});
    let messages = [user("m1", "Pay order 42."), answer, user("m3", "Well?")];
    let mut chat = json!({"sessionId": "s-1", "projectHash": "79b6fa86", "startTime": "2026-02-03T04:05:06Z",
        "lastUpdated": "2026-02-03T04:05:08Z"});
    let file = lines(&[&[chat.clone()], &messages[..]].concat());
    chat["messages"] = json!(messages);
    vec![("gemini-cli.json", chat.to_string()), ("gemini-cli.jsonl", file)]
}

/// Cline's and Roo's `ui_messages.json`.
fn cline() -> Vec<File> {
    let tool = json!({"tool": "newFileCreated", "path": "a", "content": "b"}).to_string();
    let messages = json!([
        {"ts": 1_761_000_000_000_u64, "type": "say", "say": "task", "text": "Pay order 42."},
        {"ts": 1_761_000_000_001_u64, "type": "say", "say": "api_req_started", "text": "{}"},
        {"ts": 1_761_000_000_002_u64, "type": "ask", "ask": "tool", "text": tool, "partial": false},
        {"ts": 1_761_000_000_003_u64, "type": "say", "say": "user_feedback", "text": "Well?"},
    ]);
    vec![("ui_messages.json", messages.to_string())]
}

/// LangChain's `messages_to_dict`, its `dumpd`, and LangGraph's messages.
fn langchain() -> Vec<File> {
    let call = json!({"name": "pay", "args": {"order": 42}, "id": "call_1", "type": "tool_call"});
    let ai = json!({"content": "", "tool_calls": [call], "invalid_tool_calls": [], "type": "ai", "id": "run-1"});
    let human =
        |says: &str| json!({"content": says, "additional_kwargs": {}, "type": "human", "id": null});
    let told = |kind: &str, data: Value| json!({"type": kind, "data": data});
    let dict = json!([
        told("human", human("Pay.")),
        told("ai", ai.clone()),
        told("human", human("Well?"))
    ]);
    let built = |class: &str, kwargs: Value| json!({"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", class], "kwargs": kwargs});
    let dump = json!([
        built("HumanMessage", human("Pay.")),
        built("AIMessage", ai.clone()),
        built("HumanMessage", human("Well?")),
    ]);
    let graph = json!({"messages": [human("Pay."), ai, human("Well?")]});
    vec![
        ("langchain-dict.json", dict.to_string()),
        ("langchain-dump.json", dump.to_string()),
        ("langgraph.json", graph.to_string()),
    ]
}

/// AG-UI, LlamaIndex, Continue, the events of GitHub's Copilot, and OpenHands'.
fn others() -> Vec<File> {
    let function = json!({"name": "pay", "arguments": "{\"order\":42}"});
    let call = json!({"id": "call_1", "type": "function", "function": function});
    let ag_ui = json!([
        {"id": "1", "role": "user", "content": "Pay order 42."},
        {"id": "2", "role": "assistant", "toolCalls": [call]},
        {"id": "3", "role": "user", "content": "Well?"},
    ]);
    let block = |text: &str| json!([{"block_type": "text", "text": text}]);
    let llama_index = json!([
        {"role": "user", "additional_kwargs": {}, "blocks": block("Pay order 42.")},
        {"role": "assistant", "additional_kwargs": {"tool_calls": [call]}, "blocks": []},
        {"role": "user", "additional_kwargs": {}, "blocks": block("Well?")},
    ]);
    let said = |role: &str, text: &str| json!({"message": {"role": role, "content": text}, "contextItems": []});
    let mut answer = said("assistant", "");
    answer["message"]["toolCalls"] = json!([call]);
    let history = json!([said("user", "Pay order 42."), answer, said("user", "Well?")]);
    let continued = json!({"sessionId": "s-1", "title": "Payment", "workspaceDirectory": "/w", "history": history});
    let request = json!({"toolCallId": "call_1", "name": "pay", "arguments": {"order": 42}});
    let event =
        |kind: &str, data: Value| json!({"type": kind, "data": data, "id": "e", "parentId": null});
    let copilot = lines(&[
        event("session.start", json!({"sessionId": "s-1", "version": 1})),
        event("user.message", json!({"content": "Pay order 42."})),
        event(
            "assistant.message",
            json!({"messageId": "m", "content": "", "toolRequests": [request]}),
        ),
        event("user.message", json!({"content": "Well?"})),
    ]);
    let openhands = include_str!("../../../../tr-transcript/tests/it/data/openhands-events.jsonl");
    vec![
        ("ag-ui.json", ag_ui.to_string()),
        ("llama-index.json", llama_index.to_string()),
        ("continue.json", continued.to_string()),
        ("copilot.jsonl", copilot),
        ("openhands.jsonl", openhands.to_owned()),
    ]
}

fn all() -> Vec<File> {
    let makers = [
        vercel_ui,
        vercel_model,
        bedrock,
        goose,
        opencode,
        pydantic_ai,
        qwen,
        gemini_cli,
        cline,
        langchain,
        others,
    ];
    makers.into_iter().flat_map(|make| make()).collect()
}

/// A subagent's file of Claude Code's: its records are all of a side chain.
fn subagent() -> String {
    let record = |uuid: &str, parent: Option<&str>, kind: &str, message: Value| {
        json!({"parentUuid": parent, "isSidechain": true, "agentId": "a1b2c3d4", "sessionId": "s-1", "type": kind,
            "uuid": uuid, "userType": "external", "cwd": "/w", "version": "2.1.0", "message": message})
    };
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "pay", "input": {"order": 42}});
    let answer = json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [call]});
    let done = json!({"id": "msg_2", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "Done."}]});
    lines(&[
        record("u1", None, "user", json!({"role": "user", "content": "Pay order 42."})),
        record("u2", Some("u1"), "assistant", answer),
        record("u3", Some("u2"), "user", json!({"role": "user", "content": "Well?"})),
        record("u4", Some("u3"), "assistant", done),
    ])
}

/// The files that a command does not turn away, with what it says of them.
fn taken(folder: &Folder, command: &[&str], files: &[File]) -> Vec<String> {
    let mut taken = Vec::new();
    for (name, content) in files {
        folder.write(name, content);
        let (said, code) = folder.json(&[command, &[name]].concat());
        let status = said.first().map_or("nothing", |line| line["status"].as_str().unwrap());
        if code != 2 && code != 3 {
            taken.push(format!("{command:?} {name}: {status}, exit code {code}"));
        }
        if fs::read(folder.path(name)).unwrap() != content.as_bytes() {
            taken.push(format!("{command:?} {name}: changed"));
        }
        if command != ["check"] {
            continue;
        }
        let done = folder.session(&["check", name]);
        if done.out.contains('✓') || done.err.contains('✓') {
            taken.push(format!("{command:?} {name}: ✓"));
        }
    }
    taken
}

#[test]
fn no_session_of_another_agent_is_called_clean_or_changed() {
    let folder = Folder::new();
    let commands: [&[&str]; 4] = [
        &["check"],
        &["repair", "--write"],
        &["repair", "--write", "--mode", "remove", "--close-tail"],
        &["diff"],
    ];
    let files = all();
    let taken: Vec<_> =
        commands.iter().flat_map(|command| taken(&folder, command, &files)).collect();
    assert!(taken.is_empty(), "{} of {}: {taken:#?}", taken.len(), files.len() * commands.len());
    assert_eq!(
        folder.names().len(),
        files.len(),
        "nothing is left beside them: {:?}",
        folder.names()
    );
}

/// A subagent's messages are its model's alone: its rules are those of any session.
#[test]
fn a_subagents_call_without_a_result_is_not_clean() {
    let folder = Folder::with("agent-a1b2c3d4.jsonl", subagent());
    let done = folder.session(&["check", "agent-a1b2c3d4.jsonl"]);
    assert_ne!(done.code, 0, "{}", done.out);
    assert!(!done.out.contains('✓'), "{}", done.out);
}

/// Cline, Roo and Kilo keep the model's own messages, each with its time: Anthropic's.
#[test]
fn clines_messages_are_judged_and_mended_as_anthropics() {
    let folder = Folder::new();
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "pay", "input": {"order": 42}});
    let says =
        |says: &str| json!({"role": "user", "content": [{"type": "text", "text": says}], "ts": 1});
    let model = json!({"modelId": "claude-sonnet-4-5", "providerId": "anthropic"});
    let answer = json!({"role": "assistant", "content": [call], "ts": 2, "modelInfo": model});
    folder.write(
        "api_conversation_history.json",
        json!([says("Pay."), answer, says("Well?")]).to_string(),
    );
    let done = folder.ends(1, &["check", "api_conversation_history.json"]);
    assert!(done.out.contains("Incomplete tool_use: toolu_1"), "{}", done.out);
    folder.ends(0, &["repair", "--write", "api_conversation_history.json"]);
    let mended = folder.read("api_conversation_history.json");
    assert!(mended.contains("outcome unknown, may have run"), "{mended}");
    assert_eq!(mended.matches("\"ts\"").count(), 3, "{mended}");
    assert!(mended.contains("modelInfo"), "{mended}");
}
