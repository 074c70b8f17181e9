//! Members that providers refuse on their own, in the providers' words, and what is mended of them.
use serde_json::{Value, json};
use tr_transcript::{
    ActionKind, Fault, FileCheck, Format, Repair, Severity, Transcript, Validator,
};

pub(crate) fn found(text: &Value) -> Vec<(Fault, Option<String>)> {
    let transcript = Transcript::read(&text.to_string()).unwrap();
    let validator = Validator::with_members_of(&transcript);
    let found = validator.findings().iter();
    found.map(|finding| (finding.fault, finding.provider_error())).collect()
}

pub(crate) fn refused(text: &Value) -> String {
    let found = found(text);
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].1.clone().unwrap()
}

pub(crate) fn anthropic(call: &Value) -> Value {
    let id = call.get("id").unwrap_or(&Value::Null);
    json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "ok"}]},
    ])
}

fn chat(call: &Value) -> Value {
    json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": "ok"},
    ])
}

pub(crate) fn responses(call: &Value) -> Value {
    json!([
        {"type": "message", "role": "user", "content": "go"},
        call,
        {"type": "function_call_output", "call_id": call["call_id"], "output": "ok"},
    ])
}

#[test]
fn anthropic_says_what_it_refuses_of_a_call() {
    let place = "messages.1.content.0.tool_use";
    for (member, value, words) in [
        ("name", json!(""), "name: String should have at least 1 character"),
        ("name", json!("n".repeat(201)), "name: String should have at most 200 characters"),
        ("name", json!(7), "name: Input should be a valid string"),
        ("input", json!(null), "input: Input should be a valid dictionary"),
        ("input", json!([1]), "input: Input should be a valid dictionary"),
        ("id", json!("a b"), "id: String should match pattern '^[a-zA-Z0-9_-]+$'"),
    ] {
        let mut call = json!({"type": "tool_use", "id": "a", "name": "pay", "input": {}});
        call[member] = value;
        assert_eq!(refused(&anthropic(&call)), format!("{place}.{words}"));
    }
    for member in ["name", "input"] {
        let mut call = json!({"type": "tool_use", "id": "a", "name": "pay", "input": {}});
        call.as_object_mut().unwrap().remove(member);
        assert_eq!(refused(&anthropic(&call)), format!("{place}.{member}: Field required"));
    }
    let fine = json!({"type": "tool_use", "id": "a-B_9", "name": "n".repeat(200), "input": {}});
    assert_eq!(found(&anthropic(&fine)), []);
}

#[test]
fn openai_says_what_it_refuses_of_a_call() {
    let function = |name: Value, arguments: Value| json!({"id": "a", "type": "function", "function": {"name": name, "arguments": arguments}});
    let item = |name: Value, arguments: Value| json!({"type": "function_call", "call_id": "a", "name": name, "arguments": arguments});
    let empty =
        "empty string. Expected a string with minimum length 1, but got an empty string instead.";
    let pattern = "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.";
    let object = "expected a string, but got an object instead.";
    let (call, given) = ("messages[1].tool_calls[0].function", json!("{}"));
    let name = format!("{call}.name");
    assert_eq!(
        refused(&chat(&function(json!(""), given.clone()))),
        format!("Invalid '{name}': {empty}")
    );
    let spaces = function(json!("two words"), given.clone());
    assert_eq!(refused(&chat(&spaces)), format!("Invalid '{name}': {pattern}"));
    let told = refused(&chat(&function(json!("pay"), json!({}))));
    assert_eq!(told, format!("Invalid type for '{call}.arguments': {object}"));
    let mut none = function(json!("pay"), given.clone());
    none["function"].as_object_mut().unwrap().remove("arguments");
    assert_eq!(refused(&chat(&none)), format!("Missing required parameter: '{call}.arguments'."));
    let mut long = function(json!("pay"), given.clone());
    long["id"] = json!("x".repeat(41));
    let too_long = |most: usize| {
        format!(
            "string too long. Expected a string with maximum length {most}, but got a string with length {} instead.",
            most + 1
        )
    };
    let told = refused(&chat(&long));
    assert_eq!(told, format!("Invalid 'messages[1].tool_calls[0].id': {}", too_long(40)));

    assert_eq!(
        refused(&responses(&item(json!(""), given.clone()))),
        format!("Invalid 'input[1].name': {empty}")
    );
    let told = refused(&responses(&item(json!("pay"), json!({}))));
    assert_eq!(told, format!("Invalid type for 'input[1].arguments': {object}"));
    let mut long = item(json!("pay"), given);
    long["call_id"] = json!("x".repeat(65));
    assert_eq!(refused(&responses(&long)), format!("Invalid 'input[1].call_id': {}", too_long(64)));
}

#[test]
fn contents_that_are_not_there_are_refused() {
    let answer = |message: Value| json!([{"role": "user", "content": "go"}, message, {"role": "developer", "content": "on"}]);
    let none = answer(json!({"role": "assistant", "content": "so", "tool_calls": []}));
    assert_eq!(
        refused(&none),
        "Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead."
    );
    let null = answer(json!({"role": "user", "content": null}));
    assert_eq!(refused(&null), "Invalid value for 'content': expected a string, got null.");
    let refusal = answer(json!({"role": "assistant", "content": null, "refusal": "no"}));
    assert_eq!(found(&refusal), []);

    let image = json!({"type": "image", "source": {"type": "url", "url": "u"}});
    let anthropic = |content: Value, then: Value| {
        json!([{"role": "user", "content": [image, {"type": "text", "text": "go"}]},
        {"role": "assistant", "content": content}, {"role": "user", "content": then}])
    };
    assert_eq!(
        refused(&anthropic(json!([]), json!("on"))),
        "messages.1: all messages must have non-empty content except for the optional final assistant message"
    );
    let white = anthropic(
        json!([{"type": "text", "text": "\n"}, {"type": "text", "text": "so"}]),
        json!("on"),
    );
    assert_eq!(refused(&white), "messages: text content blocks must contain non-whitespace text");
    let thought =
        anthropic(json!("so"), json!([{"type": "thinking", "thinking": "hm", "signature": "s"}]));
    assert_eq!(
        refused(&thought),
        "messages.2.content.0: `thinking` blocks can only be in `assistant` messages"
    );
    // The last message may be empty: the model continues it.
    let last = json!([{"role": "user", "content": [image]}, {"role": "assistant", "content": []}]);
    assert_eq!(found(&last), []);
}

#[test]
fn gemini_says_what_it_refuses() {
    let contents = |role: &str, part: Value, answer: Value| {
        json!([{"role": "user", "parts": [{"text": "go"}]},
        {"role": role, "parts": [part]}, {"role": "user", "parts": [answer]}])
    };
    let call =
        |name: &str, args: Value| json!({"functionCall": {"id": "1", "name": name, "args": args}});
    let answer = |name: &str| json!({"functionResponse": {"id": "1", "name": name, "response": {"output": "ok"}}});
    let place = "contents[1].parts[0].function_call";
    assert_eq!(
        refused(&contents("model", call("", json!({})), answer("pay"))),
        format!("* GenerateContentRequest.{place}.name: Name cannot be empty.")
    );
    assert_eq!(
        refused(&contents("model", call("pay", json!([1])), answer("pay"))),
        format!("Invalid value at '{place}.args' (type.googleapis.com/google.protobuf.Struct)")
    );
    assert_eq!(
        refused(&contents("model", call("pay", json!(null)), answer(""))),
        "* GenerateContentRequest.contents[2].parts[0].function_response.name: Name cannot be empty."
    );
    let system = contents("system", json!({"text": "be kind"}), json!({"text": "yes"}));
    assert_eq!(refused(&system), "Please use a valid role: user, model.");
}

#[test]
fn a_request_must_not_end_as_a_kept_session_may() {
    let ends = |content: Value| json!([{"role": "user", "content": [{"type": "image"}]}, {"role": "assistant", "content": content}]);
    let request =
        |messages: Value| json!({"model": "claude-x", "max_tokens": 9, "messages": messages});
    let thought = json!([{"type": "text", "text": "so"}, {"type": "thinking", "thinking": "hm", "signature": "s"}]);
    for (content, words) in [
        (json!("so \n"), "messages: final assistant content cannot end with trailing whitespace"),
        (
            json!([{"type": "text", "text": "so "}]),
            "messages: final assistant content cannot end with trailing whitespace",
        ),
        (thought, "messages.1: The final block in an assistant message cannot be `thinking`."),
    ] {
        assert_eq!(found(&ends(content.clone())), []);
        assert_eq!(refused(&request(ends(content))), words);
    }
}

#[test]
fn a_text_behind_a_use_parts_it_from_its_result() {
    let call = json!({"type": "tool_use", "id": "a", "name": "pay", "input": {}});
    let mut session = anthropic(&call);
    session[1]["content"].as_array_mut().unwrap().push(json!({"type": "text", "text": "so"}));
    let told = refused(&session);
    assert!(
        told.starts_with("messages.1: `tool_use` ids were found without `tool_result` blocks"),
        "{told}"
    );
}

#[test]
fn other_providers_have_limits_of_their_own() {
    let call = json!({"type": "tool_use", "id": "a:b", "name": "n".repeat(300), "input": {}});
    let request =
        |model: &str| json!({"model": model, "max_tokens": 9, "messages": anthropic(&call)});
    assert_eq!(found(&request("claude-opus-4-1"))[0].0, Fault::RefusedId);
    assert_eq!(found(&request("kimi-k2")), []);
    let kimi = json!({"type": "tool_use", "id": "functions.read:0", "name": "read", "input": {}});
    assert_eq!(found(&anthropic(&kimi)), []);
    // What no provider of the form takes is told of all of them.
    let empty = json!({"type": "tool_use", "id": "a", "name": "", "input": {}});
    let request = json!({"model": "kimi-k2", "max_tokens": 9, "messages": anthropic(&empty)});
    assert_eq!(found(&request)[0].0, Fault::RefusedName);
}

#[test]
fn a_session_in_use_is_asked_for_its_pairs_alone() {
    let call = json!({"type": "tool_use", "id": "a b", "name": "", "input": 7});
    let transcript = Transcript::read(&anthropic(&call).to_string()).unwrap();
    assert!(Validator::of(&transcript).findings().is_empty());
    assert!(Repair::preserve().plan(&transcript).is_empty());
}

fn mended(text: &Value) -> (Value, Vec<ActionKind>) {
    let mut transcript = Transcript::read(&text.to_string()).unwrap();
    let plan = Repair::preserve().with_members().plan(&transcript);
    let actions: Vec<_> = plan.actions().iter().map(|action| action.action).collect();
    assert!(plan.losses().is_empty(), "{:?}", plan.losses());
    let _ = plan.apply(&mut transcript).unwrap();
    let validator = Validator::with_members_of(&transcript);
    assert!(validator.is_valid(), "{:?} {}", validator.findings(), transcript.to_json());
    assert!(Repair::preserve().with_members().plan(&transcript).is_empty());
    (serde_json::from_str(&transcript.to_json()).unwrap(), actions)
}

#[test]
fn what_can_be_said_otherwise_is_mended() {
    let call = json!({"type": "tool_use", "id": "call one", "name": "pay", "input": {}});
    let (after, actions) = mended(&anthropic(&call));
    assert_eq!(actions, [ActionKind::RenameId, ActionKind::RenameId]);
    assert_eq!(after[1]["content"][0]["id"], "call_one_r1");
    assert_eq!(after[2]["content"][0]["tool_use_id"], "call_one_r1");

    let id = "x".repeat(50);
    let call =
        json!({"id": id, "type": "function", "function": {"name": "pay", "arguments": {"a": [1]}}});
    let (after, actions) = mended(&chat(&call));
    assert_eq!(actions, [ActionKind::CorrectMember, ActionKind::RenameId, ActionKind::RenameId]);
    let call = &after[1]["tool_calls"][0];
    assert_eq!(call["function"]["arguments"], r#"{"a":[1]}"#);
    assert_eq!(call["id"], format!("{}_r1", "x".repeat(28)));
    assert_eq!(after[2]["tool_call_id"], call["id"]);

    let item =
        json!({"type": "function_call", "call_id": "a", "name": "pay", "arguments": {"b": 2}});
    let (after, actions) = mended(&responses(&item));
    assert_eq!(
        (&after[1]["arguments"], &*actions),
        (&json!(r#"{"b":2}"#), &[ActionKind::CorrectMember][..])
    );

    let none = json!([{"role": "assistant", "content": "so", "tool_calls": []}, {"role": "user", "content": "on"}]);
    let (after, _) = mended(&none);
    assert_eq!(after[0], json!({"role": "assistant", "content": "so"}));

    let image = json!({"type": "image", "source": {"type": "url", "url": "u"}});
    let white = json!([{"role": "user", "content": [image, {"type": "text", "text": " "}]},
        {"role": "assistant", "content": []}, {"role": "user", "content": "on"}]);
    let (after, actions) = mended(&white);
    assert_eq!(actions, [ActionKind::RemoveEmptyMessage, ActionKind::RemoveEmptyText]);
    assert_eq!(
        after,
        json!([{"role": "user", "content": [image]}, {"role": "user", "content": "on"}])
    );
}

#[test]
fn a_result_without_an_id_belongs_to_the_only_call_before_it() {
    let call =
        json!({"id": "a", "type": "function", "function": {"name": "pay", "arguments": "{}"}});
    let mut session = chat(&call);
    session[2].as_object_mut().unwrap().remove("tool_call_id");
    session.as_array_mut().unwrap().push(json!({"role": "user", "content": "on"}));
    let told = found(&session);
    let words =
        "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.";
    assert!(told.contains(&(Fault::OrphanedResult, Some(words.into()))), "{told:?}");
    let (after, actions) = mended(&session);
    assert_eq!(actions, [ActionKind::RenameId]);
    assert_eq!((&after[2]["tool_call_id"], &after[2]["content"]), (&json!("a"), &json!("ok")));

    // Of two calls it may be either's.
    let other =
        json!({"id": "b", "type": "function", "function": {"name": "pay", "arguments": "{}"}});
    session[1]["tool_calls"].as_array_mut().unwrap().push(other);
    let transcript = Transcript::read(&session.to_string()).unwrap();
    let plan = Repair::preserve().with_members().plan(&transcript);
    assert!(plan.actions().iter().any(|action| action.action == ActionKind::OrphanToText));
}

#[test]
fn files_are_asked_for_members_by_both_readers() {
    let line = |call: &str| {
        format!(
            "{{\"type\":\"assistant\",\"uuid\":\"a\",\"parentUuid\":null,\"sessionId\":\"s\",\"message\":{{\"id\":\"m\",\"role\":\"assistant\",\"content\":[{call}]}}}}\n"
        )
    };
    let check = |call: &str| {
        let report = FileCheck::new().with_members().run(line(call).as_bytes(), |_| {}).unwrap();
        report.findings.iter().map(|found| (found.to_string(), found.severity)).collect::<Vec<_>>()
    };
    assert_eq!(check(r#"{"type":"tool_use","id":"a","name":"pay","input":{"a":1}}"#), []);
    for (call, told) in [
        (
            r#"{"type":"tool_use","id":"a","name":"","input":{}}"#,
            "Tool name that is refused: empty",
        ),
        (
            r#"{"type":"tool_use","id":"a","name":"pay","input":"{}"}"#,
            "tool_use with tool_use.input that is refused: a string in the place of an object",
        ),
        (
            r#"{"type":"tool_use","id":"a","name":"pay"}"#,
            "tool_use with tool_use.input that is refused: missing",
        ),
        (
            r#"{"type":"tool_use","id":"a b","name":"pay","input":{}}"#,
            "tool_use id that is refused: other characters than letters, digits, _ and -",
        ),
    ] {
        assert_eq!(check(call), [(told.to_owned(), Severity::Error)]);
    }
}

#[test]
fn what_pi_sends_of_odd_arguments_is_not_judged() {
    let file = r#"{"type":"session","version":3,"id":"s","timestamp":"","cwd":"/"}
{"type":"message","id":"a","parentId":null,"message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"pay","arguments":[1]}]}}
"#;
    let report = FileCheck::new().with_members().run(file.as_bytes(), |_| {}).unwrap();
    assert_eq!(report.findings.len(), 1);
    assert!(report.findings[0].fault.is_not_judged() && report.is_valid());
    let broken = file.replace(r#""name":"pay","arguments":[1]"#, r#""name":"","arguments":{}"#);
    assert!(!FileCheck::new().with_members().run(broken.as_bytes(), |_| {}).unwrap().is_valid());
    let messages = r#"[{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"pay","arguments":{}}]}]"#;
    assert_eq!(Format::detect(messages), Some(Format::OpenClaw));
}
