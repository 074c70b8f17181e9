//! More agents whose sessions are named and not judged, and what gemini-cli saves, which is judged.
use super::{
    agents::{COMMANDS, is_left_alone, said},
    folder::Folder,
};
use serde_json::{Value, json};
use std::fs;

#[test]
fn more_agents_are_told_by_their_structure() {
    let lines = |records: &[Value]| records.iter().map(|r| format!("{r}\n")).collect::<String>();
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "pay", "input": {}});
    let used = json!([{"type": "text", "text": "I pay."}, call]);

    let result =
        json!([{"type": "tool_result", "toolUseID": "toolu_1", "run": {"status": "done"}}]);
    let amp = json!({"v": 12, "id": "T-5928a90d", "created": 1, "messages": [
        {"role": "user", "messageId": 0, "content": text("Pay order 42.")},
        {"role": "assistant", "messageId": 1, "content": used, "state": {"type": "complete"}},
        {"role": "user", "messageId": 2, "content": result},
    ]});
    is_left_alone("Amp", &serde_json::to_string_pretty(&amp).unwrap());

    let event = |kind: &str, id: &str, data: &Value| json!({"type": kind, "data": data, "id": id, "timestamp": "t", "parentId": null});
    let requests = json!([{"toolCallId": "toolu_1", "name": "pay", "arguments": {}}]);
    let copilot = [
        event(
            "session.start",
            "0",
            &json!({"sessionId": "s", "version": 1, "copilotVersion": "1.0.71"}),
        ),
        event("user.message", "1", &json!({"content": "Pay order 42."})),
        event("assistant.message", "2", &json!({"content": "", "toolRequests": requests})),
    ];
    is_left_alone("Copilot CLI", &lines(&copilot));
    is_left_alone("Copilot CLI", &lines(&copilot[1..]));

    let cursor = [
        json!({"role": "user", "message": {"content": text("Pay order 42.")}}),
        json!({"role": "assistant", "message": {"content": used}}),
    ];
    is_left_alone("Cursor", &lines(&cursor));

    let says = |id: &str, role: &str, content: &Value| {
        json!({"type": "message", "id": id, "timestamp": "t", "parentId": null,
            "message": {"role": role, "content": content}})
    };
    let start =
        json!({"type": "session_start", "id": "f", "title": "Payment", "version": 2, "cwd": "/w"});
    let droid = [start, says("a", "user", &text("Pay.")), says("b", "assistant", &used)];
    is_left_alone("Factory's droid", &lines(&droid));

    let function =
        json!({"type": "function", "id": "t", "function": {"name": "pay", "arguments": "{}"}});
    let kimi = [
        json!({"role": "_system_prompt", "content": "Be brief."}),
        json!({"role": "_checkpoint", "id": 0}),
        json!({"role": "user", "content": "Pay order 42."}),
        json!({"role": "assistant", "content": "", "tool_calls": [function]}),
        json!({"role": "_usage", "token_count": 10}),
    ];
    is_left_alone("Kimi CLI", &lines(&kimi));
    is_left_alone("Kimi CLI", &lines(&kimi[2..]));

    let part = json!({"id": "prt_2", "type": "tool", "callID": "toolu_1", "tool": "pay",
        "state": {"status": "running"}, "messageID": "msg_2", "sessionID": "ses_1"});
    is_left_alone("opencode", &serde_json::to_string_pretty(&part).unwrap());
    is_left_alone("opencode", &part.to_string());
    let message =
        json!({"id": "msg_2", "sessionID": "ses_1", "role": "user", "time": {"created": 1}});
    is_left_alone("opencode", &serde_json::to_string_pretty(&message).unwrap());

    let history = json!([
        {"message": {"role": "user", "content": "Pay order 42."}, "contextItems": []},
        {"message": {"role": "assistant", "content": "I pay."}, "contextItems": []},
    ]);
    let session =
        json!({"sessionId": "s", "title": "t", "workspaceDirectory": "/w", "history": history});
    is_left_alone("Continue", &session.to_string());

    let codex = [
        json!({"id": "5973b6c0", "timestamp": "2025-05-07T17:24:21.000Z", "instructions": null}),
        said("Pay order 42."),
        json!({"type": "function_call", "name": "pay", "arguments": "{}", "call_id": "call_1"}),
        said("Did it work?"),
    ];
    is_left_alone("Codex (2025)", &lines(&codex));
}

#[test]
fn databases_of_other_agents_are_told_by_their_tables() {
    let opencode = "CREATE TABLE session (id TEXT, project_id TEXT);
        CREATE TABLE message (id TEXT, session_id TEXT, data TEXT);
        CREATE TABLE part (id TEXT, message_id TEXT, data TEXT);";
    let sdk = "CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY);
        CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id TEXT, message_data TEXT);";
    let wal = format!("PRAGMA journal_mode = wal; {opencode}");
    let another = opencode.replace("message_id", "of");
    for (tables, agent) in [
        (opencode, json!("opencode")),
        (&wal, json!("opencode")),
        (sdk, json!("the OpenAI Agents SDK")),
        (&another, Value::Null),
    ] {
        let folder = Folder::new();
        let open = rusqlite::Connection::open(folder.path("s.db")).unwrap();
        open.execute_batch(tables).unwrap();
        let _running = tables.starts_with("PRAGMA").then_some(open);
        let (names, bytes) = (folder.names(), fs::read(folder.path("s.db")).unwrap());
        for command in COMMANDS {
            let line = folder.json_of(3, &[command, &["s.db"]].concat()).remove(0);
            assert_eq!((&line["status"], &line["agent"]), (&json!("notJudged"), &agent), "{line}");
        }
        assert_eq!((folder.names(), fs::read(folder.path("s.db")).unwrap()), (names, bytes));
    }
}

/// One member that another agent writes too is no evidence.
#[test]
fn a_stray_member_makes_no_file_anothers() {
    let call = json!([{"type": "tool_use", "id": "toolu_1", "name": "pay", "input": {}}]);
    for (name, value) in [
        ("v", json!(1)),
        ("id", json!("T-1")),
        ("sessionID", json!("s")),
        ("workspaceDirectory", json!("/w")),
        ("history", json!([])),
    ] {
        let mut request = json!({"model": "claude-opus-4-5", "messages": [
            {"role": "user", "content": "Pay."}, {"role": "assistant", "content": call},
            {"role": "user", "content": "Well?"},
        ]});
        request[name] = value;
        let folder = Folder::with("s.json", request.to_string());
        let line = folder.json_of(1, &["check", "s.json"]).remove(0);
        assert_eq!(line["format"], "anthropic_messages", "{line}");
    }
}

/// What `/chat save` of gemini-cli writes.
#[test]
fn gemini_clis_saved_chat_is_judged_and_mended_in_its_place() {
    let call = |name: &str| json!({"functionCall": {"name": name, "args": {}}});
    let response = json!({"functionResponse": {"name": "look", "response": {"output": "x"}}});
    let chat = json!({"history": [
        {"role": "user", "parts": [{"text": "Pay."}]},
        {"role": "model", "parts": [call("look"), call("pay")]},
        {"role": "user", "parts": [response]},
        {"role": "model", "parts": [{"text": "ok"}]},
    ], "authType": "oauth-personal"});
    for text in [chat.to_string(), serde_json::to_string_pretty(&chat).unwrap()] {
        let folder = Folder::with("s.json", &text);
        let line = folder.json_of(1, &["check", "s.json"]).remove(0);
        assert_eq!(
            (&line["format"], &line["findings"][0]["toolUseId"]),
            (&json!("gemini"), &json!("pay"))
        );
        folder.ends(0, &["repair", "--write", "s.json"]);
        let mended: Value = serde_json::from_str(&folder.read("s.json")).unwrap();
        let mut expected = chat.clone();
        let answer = json!({"error": "outcome unknown, may have run"});
        expected["history"][2]["parts"]
            .as_array_mut()
            .unwrap()
            .push(json!({"functionResponse": {"name": "pay", "response": answer}}));
        assert_eq!(mended, expected);
        folder.ends(0, &["check", "s.json"]);
    }
}
