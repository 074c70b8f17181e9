//! Sessions that agents wrote: those whose rules are known are judged, others are named.
use super::folder::Folder;
use serde_json::{Value, json};
use std::{fs, path::Path};

/// What an agent wrote itself.
pub(crate) fn real(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/agents");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// All commands, as they are run on a file, and would change it.
pub(crate) const COMMANDS: [&[&str]; 7] = [
    &["check"],
    &["repair", "--write"],
    &["repair", "--mode", "remove", "--close-tail", "--write"],
    &["diff"],
    &["checkpoints", "--create"],
    &["rollback", "--before-fault", "--write"],
    &["reset", "--write"],
];

/// Every command says that it does not judge the agent's session, and leaves it alone.
pub(crate) fn is_left_alone(agent: &str, text: &str) {
    let folder = Folder::with("s.json", text);
    let names = folder.names();
    for command in COMMANDS {
        let (lines, code) = folder.json(&[command, &["s.json"]].concat());
        let line = &lines[0];
        assert_eq!((code, &line["status"]), (3, &json!("notJudged")), "{command:?} {line}\n{text}");
        assert_eq!(line["agent"], agent, "{text}");
        assert_eq!(line["reason"], format!("this is a session of {agent}"));
        assert!(line["help"].as_str().unwrap().contains("check that"), "{line}");
    }
    let done = folder.session(&["check", "s.json"]);
    assert!(done.out.starts_with("? s.json\n  not judged: this is"), "{}", done.out);
    assert_eq!((folder.read("s.json"), folder.names()), (text.to_owned(), names));
}

#[test]
fn what_other_agents_wrote_is_named_and_left_alone() {
    is_left_alone("gemini-cli", &real("gemini-killed.jsonl"));
    is_left_alone("opencode", &real("opencode-export.json"));
    is_left_alone("Qwen Code", &real("qwen.jsonl"));
}

#[test]
fn other_forms_are_told_by_their_structure() {
    let ask = json!({"role": "user", "content": "Pay order 42."});
    let document = |messages: &[Value]| serde_json::to_string_pretty(&messages).unwrap();
    let lines = |records: &[Value]| records.iter().map(|r| format!("{r}\n")).collect::<String>();
    let tool = json!({
        "type": "tool-pay", "toolCallId": "c1", "state": "input-available", "input": {"order": 42},
    });
    let user = json!({"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Pay."}]});
    let ui = [user, json!({"id": "m2", "role": "assistant", "parts": [tool]})];
    is_left_alone("the Vercel AI SDK", &document(&ui));
    is_left_alone("the Vercel AI SDK", &json!({"id": "chat", "messages": ui}).to_string());
    let old = json!({"role": "assistant", "content": "", "toolInvocations": [
        {"state": "call", "toolCallId": "c1", "toolName": "pay", "args": {"order": 42}},
    ]});
    is_left_alone("the Vercel AI SDK", &document(&[ask.clone(), old]));
    let call = json!({
        "type": "tool-call", "toolCallId": "c1", "toolName": "pay", "input": {"order": 42},
    });
    let model = json!({"role": "assistant", "content": [call]});
    is_left_alone("the Vercel AI SDK", &document(&[ask.clone(), model]));

    let converse = [
        json!({"role": "user", "content": [{"text": "Pay order 42."}]}),
        json!({"role": "assistant", "content": [
            {"toolUse": {"toolUseId": "t1", "name": "pay", "input": {"order": 42}}},
        ]}),
        json!({"role": "user", "content": [{"text": "Did it work?"}]}),
    ];
    is_left_alone("Bedrock Converse", &document(&converse));
    let request = json!({"modelId": "m", "messages": converse, "inferenceConfig": {}});
    is_left_alone("Bedrock Converse", &request.to_string());

    let value = json!({"status": "success", "value": {"name": "pay", "arguments": {"order": 42}}});
    let goose = [
        json!({"role": "user", "created": 1, "content": [{"type": "text", "text": "Pay."}]}),
        json!({"role": "assistant", "created": 2, "content": [
            {"type": "toolRequest", "id": "t1", "toolCall": value},
        ]}),
    ];
    let header = json!({"working_dir": "/home/me", "description": "pay", "message_count": 2});
    is_left_alone("goose", &lines(&[&[header], &goose[..]].concat()));
    let export = json!({"id": "20260101_1", "working_dir": "/home/me", "conversation": goose});
    is_left_alone("goose", &serde_json::to_string_pretty(&export).unwrap());

    let pydantic = [
        json!({"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Pay."}]}),
        json!({"kind": "response", "parts": [
            {"part_kind": "tool-call", "tool_name": "pay", "args": {}, "tool_call_id": "t1"},
        ]}),
    ];
    is_left_alone("pydantic-ai", &document(&pydantic));

    let id = |class: &str| json!(["langchain", "schema", "messages", class]);
    let dumped = [
        json!({"lc": 1, "type": "constructor", "id": id("HumanMessage"), "kwargs": {"content": "x"}}),
        json!({"lc": 1, "type": "constructor", "id": id("AIMessage"), "kwargs": {
            "content": "", "tool_calls": [{"name": "pay", "args": {}, "id": "t1"}],
        }}),
    ];
    is_left_alone("LangChain", &document(&dumped));
    let dicts = [
        json!({"type": "human", "data": {"content": "Pay.", "additional_kwargs": {}}}),
        json!({"type": "ai", "data": {"content": "", "tool_calls": [{"name": "pay", "id": "t1"}]}}),
    ];
    is_left_alone("LangChain", &document(&dicts));

    let shown = [
        json!({"ts": 1_700_000_000_000_u64, "type": "say", "say": "text", "text": "Pay order 42."}),
        json!({"ts": 1_700_000_000_001_u64, "type": "ask", "ask": "tool", "text": "{}"}),
    ];
    is_left_alone("Cline or Roo Code", &document(&shown));
    let chat = json!({
        "sessionId": "s", "projectHash": "h", "startTime": "t", "lastUpdated": "t", "messages": [
            {"id": "1", "timestamp": "t", "type": "user", "content": "Pay order 42."},
            {"id": "2", "timestamp": "t", "type": "gemini", "content": "", "toolCalls": [
                {"id": "pay-1", "name": "pay", "args": {}, "status": "success", "timestamp": "t"},
            ]},
        ],
    });
    is_left_alone("gemini-cli", &serde_json::to_string_pretty(&chat).unwrap());
    let event = json!({
        "id": 1, "timestamp": "t", "source": "agent", "action": "run", "args": {"command": "ls"},
    });
    is_left_alone("OpenHands", &lines(&[event]));
}

#[test]
fn a_request_of_ollamas_is_no_request_of_openais() {
    let call = json!({"function": {"name": "pay", "arguments": {"to": "Ann"}}});
    let messages = json!([
        {"role": "user", "content": "Pay Ann."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_name": "pay", "content": "receipt"},
        {"role": "user", "content": "Thanks."},
    ]);
    let asked = &messages.as_array().unwrap()[..2];
    for text in [
        messages.to_string(),
        json!({"model": "qwen3", "messages": messages, "stream": false}).to_string(),
        json!({"model": "qwen3", "messages": asked, "keep_alive": "5m"}).to_string(),
    ] {
        let folder = Folder::with("s.json", &text);
        for command in COMMANDS {
            let (lines, code) = folder.json(&[command, &["s.json"]].concat());
            assert_eq!((code, &lines[0]["agent"]), (3, &json!("Ollama")), "{command:?} {text}");
            assert_eq!(lines[0]["reason"], "this is an Ollama request");
        }
        assert_eq!(folder.read("s.json"), text);
    }
}

/// A line of Codex's.
fn line(kind: &str, payload: &Value) -> String {
    let line = json!({"timestamp": "2026-11-22T21:41:16.000Z", "type": kind, "payload": payload});
    format!("{line}\n")
}

pub(crate) fn said(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

/// What Codex 0.169 did of its own with the call of `codex-killed.jsonl`, on `codex exec resume`.
const ABORTED: &str =
    "Codex answers this call \"aborted\" on resume: the model is not told that it may have run";

#[test]
fn codexs_rollouts_are_judged_and_mended_as_responses() {
    let folder = Folder::with("whole.jsonl", real("codex-complete.jsonl"));
    let (lines, code) = folder.json(&["check", "whole.jsonl"]);
    assert_eq!((code, &lines[0]["status"]), (0, &json!("clean")), "{}", lines[0]);
    let form = (&lines[0]["form"], &lines[0]["format"]);
    assert_eq!(form, (&json!("codex"), &json!("open_ai_responses")));

    let killed = real("codex-killed.jsonl");
    folder.write("s.jsonl", &killed);
    let (lines, code) = folder.json(&["check", "s.jsonl"]);
    assert_eq!((code, &lines[0]["pending"]), (0, &json!(["call_2"])), "a live tail");
    let shown = folder.session(&["check", "s.jsonl"]).out;
    assert!(shown.contains(ABORTED), "{shown}");

    let text = killed + &line("response_item", &said("Did it work?"));
    folder.write("s.jsonl", &text);
    let (lines, code) = folder.json(&["check", "s.jsonl"]);
    let found = &lines[0]["findings"][0];
    assert_eq!((code, &found["line"], &found["toolUseId"]), (1, &json!(15), &json!("call_2")));
    assert_eq!((&found["provider"], &found["onResume"]), (&json!("OpenAI"), &json!(ABORTED)));
    let shown = folder.session(&["check", "s.jsonl"]).out;
    assert!(shown.contains(ABORTED) && !shown.contains("refuses it"), "{shown}");

    folder.ends(0, &["repair", "--write", "s.jsonl"]);
    let mended = folder.read("s.jsonl");
    let new: Vec<_> = mended.lines().filter(|line| !text.contains(line)).collect();
    let [new] = &new[..] else { panic!("one line is new: {new:?}") };
    let new: Value = serde_json::from_str(new).unwrap();
    assert_eq!(
        (&new["type"], &new["payload"]["type"]),
        (&json!("response_item"), &json!("function_call_output"),)
    );
    assert_eq!(new["payload"]["call_id"], "call_2");
    assert!(text.lines().all(|line| mended.contains(line)), "all other lines stay");
    assert_eq!(folder.session(&["check", "s.jsonl"]).code, 0);
}

/// What a compaction hides is not judged; a rollback, and what it leaves, are not known.
#[test]
fn codexs_compactions_and_rollbacks() {
    let folder = Folder::new();
    let call = json!({"type": "function_call", "call_id": "c1", "name": "pay", "arguments": "{}"});
    let start = line("session_meta", &json!({"id": "s", "cwd": "/", "cli_version": "1"}))
        + &line("response_item", &said("Pay order 42."))
        + &line("response_item", &call)
        + &line("response_item", &said("Did it work?"));
    let code = |text: &str| {
        folder.write("s.jsonl", text);
        folder.session(&["check", "s.jsonl"]).code
    };
    assert_eq!(code(&start), 1);
    let compacted = |history: Value| {
        let payload = json!({"message": "It was paid.", "replacement_history": history});
        start.clone() + &line("compacted", &payload) + &line("response_item", &said("Thanks."))
    };
    assert_eq!(code(&compacted(json!([said("Pay order 42."), said("summary")]))), 0);
    assert_eq!(code(&compacted(json!([said("Pay order 42."), call]))), 3);
    assert_eq!(code(&compacted(json!([{"type": "inline", "item": {}}]))), 3);
    let whole = start.clone()
        + &line(
            "response_item",
            &json!({
                "type": "function_call_output", "call_id": "c1", "output": "receipt 7",
            }),
        );
    assert_eq!(code(&whole), 0);
    let rolled = json!({"type": "thread_rolled_back", "num_turns": 1});
    let rolled = whole.clone() + &line("event_msg", &rolled);
    assert_eq!(code(&rolled), 0, "the answer is taken back with its turn, and may still come");
    assert_eq!(code(&(rolled + &line("response_item", &said("And now?")))), 1);
    assert_eq!(code(&(whole + &line("telepathy", &json!({"said": "…"})))), 3);
}

/// A subagent's file has nothing but side chains: they are the session.
#[test]
fn claude_codes_subagents_are_judged_as_claude_code() {
    let folder = Folder::new();
    let killed = real("claude-subagent-killed.jsonl");
    folder.write("s.jsonl", &killed);
    let (lines, code) = folder.json(&["check", "s.jsonl"]);
    assert_eq!((code, &lines[0]["pending"]), (0, &json!(["toolu_031"])), "{}", lines[0]);
    assert!(lines[0]["messages"].as_u64().unwrap() > 3);

    let last: Value = serde_json::from_str(killed.lines().last().unwrap()).unwrap();
    let next = json!({
        "type": "user", "uuid": "u9", "parentUuid": last["uuid"], "isSidechain": true,
        "agentId": last["agentId"], "message": {"role": "user", "content": "go on"},
    });
    folder.write("s.jsonl", format!("{killed}{next}\n"));
    let (lines, code) = folder.json(&["check", "s.jsonl"]);
    let found = &lines[0]["findings"][0];
    assert_eq!((code, &found["toolUseId"]), (1, &json!("toolu_031")), "{}", lines[0]);
    folder.ends(0, &["repair", "--write", "s.jsonl"]);
    let mended = folder.read("s.jsonl");
    let new = mended.lines().find(|line| line.contains("outcome unknown")).unwrap();
    let new: Value = serde_json::from_str(new).unwrap();
    assert_eq!((&new["isSidechain"], &new["agentId"]), (&json!(true), &last["agentId"]));
    assert_eq!(folder.session(&["check", "s.jsonl"]).code, 0);
}

#[test]
fn what_claude_code_and_pi_wrote_is_judged() {
    let folder = Folder::new();
    for name in ["claude-killed-mid-call", "claude-resumed", "claude-with-subagent-killed"] {
        folder.write("s.jsonl", real(&format!("{name}.jsonl")));
        let (lines, code) = folder.json(&["check", "s.jsonl"]);
        assert!(matches!(code, 0 | 1), "{name}: {}", lines[0]);
        assert_eq!(lines[0]["form"], "claude_code", "{name}");
    }
    folder.write("s.jsonl", real("pi-killed.jsonl"));
    let (lines, code) = folder.json(&["check", "s.jsonl"]);
    assert_eq!((code, &lines[0]["form"]), (0, &json!("openclaw")), "{}", lines[0]);
}
