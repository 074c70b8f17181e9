//! Which calls are the same.
use super::*;
use crate::wire::jsonrpc;

const TOOLU: &str = "toolu_01A09q90qw90lq917835lq9";
/// Of Codex, in the thread `t`.
const CODEX: &str = r#"{"callId":"call_yo7Iqrcw3F8mAZpJ5Vd0TkRe","threadId":"t"}"#;

fn client(connection: &str) -> Client {
    let client = Client::new("shop", connection, Vec::new());
    Client { claude_session: Some("chat".into()), ..client }
}

/// A call of `pay` with this `_meta`, over this connection.
fn call(client: &Client, meta: &str, effect: Effect) -> ToolCall {
    call_with(client, meta, effect, r#"{"amount":5}"#)
}

fn call_with(client: &Client, meta: &str, effect: Effect, params: &str) -> ToolCall {
    let raw: &RawValue = serde_json::from_str(meta).unwrap();
    let meta: Meta<'_> = jsonrpc::object(meta).unwrap();
    let key = text(meta.idempotency_key);
    let identity = client.identify("pay", key.as_deref(), &meta, Some(raw));
    let params = tr_core::Params::from_text(params).unwrap();
    let mut call = ToolCall::new("pay", params);
    identity.put_into(&mut call, client, effect);
    call
}

fn equals(client: &Client, call: &ToolCall) -> Key {
    client.equals(call, likeness(call, digest(call)))
}

fn key(connection: &str, meta: &str) -> Option<Key> {
    call(&client(connection), meta, Effect::Mutating).parts().idempotency.id.map(|id| id.key)
}

#[test]
fn the_first_id_that_is_there_decides() {
    let all = r#"{"idempotencyKey":"k","callId":"c","threadId":"t","claudecode/toolUseId":"x"}"#;
    assert_eq!(key("a", all), key("a", r#"{"idempotencyKey":"k"}"#));
    let codex = r#"{"callId":"c","threadId":"t","claudecode/toolUseId":"x"}"#;
    assert_eq!(key("a", codex), key("a", r#"{"callId":"c","threadId":"t"}"#));
    assert_eq!(key("a", r#"{"callId":7,"progressToken":1,"vscode.requestId":"r"}"#), None);
    // The same text from two members makes two calls.
    assert_ne!(key("a", r#"{"idempotencyKey":"k"}"#), key("a", r#"{"callId":"k","threadId":"t"}"#));
}

#[test]
fn a_strong_id_holds_across_connections_and_a_weak_one_does_not() {
    let toolu = format!(r#"{{"claudecode/toolUseId":"{TOOLU}"}}"#);
    let strong = [r#"{"idempotencyKey":"k"}"#, CODEX, &toolu];
    for meta in strong {
        assert_eq!(key("a", meta), key("b", meta), "{meta}");
        assert!(key("a", meta).is_some());
        assert!(!call(&client("a"), meta, Effect::Mutating).parts().idempotency.in_process);
        // A read is joined while it runs, and no longer.
        let read = call(&client("a"), meta, Effect::ReadOnly);
        let parts = &read.parts().idempotency;
        assert!(parts.in_process && parts.ttls.done == Some(AT_ONCE), "{meta}");
    }
    for meta in [
        r#"{"callId":"call_0"}"#,
        r#"{"callId":"call_0","threadId":"t"}"#,
        r#"{"claudecode/toolUseId":"functions.pay:0"}"#,
    ] {
        assert_ne!(key("a", meta), key("b", meta), "{meta}");
        assert_eq!(key("a", meta), key("a", meta), "{meta}");
        let weak = call(&client("a"), meta, Effect::Mutating);
        let parts = &weak.parts().idempotency;
        assert!(parts.in_process && parts.ttls.done == Some(AT_ONCE), "{meta}");
        assert_eq!(parts.ttls.unknown, Some(BARS), "as long as an equal call is blocked: {meta}");
        let other = call_with(&client("a"), meta, Effect::Mutating, r#"{"amount":6}"#);
        assert_ne!(parts.id, other.parts().idempotency.id, "other arguments are another call");
    }
}

#[test]
fn sessions_of_claude_code_in_one_project_are_one_conversation() {
    let session = |project: Option<&str>, session: &str| {
        claude::of(project.map(Into::into), Some(session.into()))
    };
    assert_eq!(session(Some("/shop"), "1"), session(Some("/shop"), "2"));
    assert_ne!(session(Some("/shop"), "1"), session(Some("/bank"), "1"));
    assert_eq!(session(None, "1").as_deref(), Some("1"));
    assert_eq!(claude::of(None, None), None);
}

#[test]
fn an_id_of_codex_holds_within_its_thread() {
    let key = |thread: &str| key("a", &format!(r#"{{"callId":"c","threadId":"{thread}"}}"#));
    assert_ne!(key("t"), key("u"));
}

#[test]
fn the_conversation_is_told_whatever_names_the_call() {
    let session = |meta: &str| {
        let call = call(&client("a"), meta, Effect::Mutating);
        call.parts().context.session.clone().unwrap()
    };
    assert_eq!(&*session(r#"{"idempotencyKey":"k","threadId":"t"}"#), "t");
    assert_eq!(&*session(r#"{"claudecode/toolUseId":"x"}"#), "chat");
    assert_eq!(&*session(r#"{"vscode.conversationId":"v","progressToken":1}"#), "v");
    assert_eq!(&*session(r#"{"agent-session-id":"g"}"#), "g");
    assert_eq!(&*session("{}"), "a");
}

#[test]
fn what_the_operator_names_counts_after_what_is_known() {
    let mut rule = IdentityConfig::default();
    rule.call = Some("acme/call".into());
    rule.conversation = Some("acme/chat".into());
    rule.strong = Some(true);
    let client = Client { rules: vec![rule], ..client("a") };
    let id = |meta: &str| call(&client, meta, Effect::Mutating).parts().clone();
    let named = id(r#"{"acme/call":"1","acme/chat":"c"}"#);
    assert!(!named.idempotency.in_process && named.context.session.as_deref() == Some("c"));
    assert_eq!(named.tool_call_id.as_deref(), Some("1"));
    let both = id(r#"{"acme/call":"1","callId":"x","threadId":"t"}"#);
    assert_eq!(both.tool_call_id.as_deref(), Some("x"));
    assert!(id(r#"{"acme/call":1}"#).idempotency.id.is_none());
}

#[test]
fn equals_differ_in_nothing_but_their_ids() {
    let equals = |connection: &str, meta: &str| {
        let client = client(connection);
        equals(&client, &call(&client, meta, Effect::Mutating))
    };
    let thread = |id: &str, thread: &str| format!(r#"{{"callId":"{id}","threadId":"{thread}"}}"#);
    assert_eq!(equals("a", &thread("1", "t")), equals("b", &thread("2", "t")));
    assert_ne!(equals("a", &thread("1", "t")), equals("a", &thread("1", "u")));
    assert_eq!(equals("a", "{}"), equals("a", "{}"));
    assert_ne!(equals("a", "{}"), equals("b", "{}"));
}

#[test]
fn params_without_a_canonical_form_are_the_same_byte_for_byte() {
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(130), "]".repeat(130));
    let client = client("a");
    for params in [r#"{"a":"\ud83d"}"#, r#"{"a":1,"a":1}"#, r#"{"a":1e400}"#, &deep] {
        let toolu = format!(r#"{{"claudecode/toolUseId":"{TOOLU}"}}"#);
        for meta in [&toolu, CODEX, r#"{"callId":"c"}"#] {
            let call = |params: &str| call_with(&client, meta, Effect::Mutating, params);
            let id = |params: &str| call(params).parts().idempotency.id.unwrap();
            let other = params.replace("\"a\":", "\"a\": ");
            assert_eq!(id(params).digest, digest(&call(params)));
            assert_eq!(id(params).key == id(&other).key, !meta.contains(r#""c""#), "{params}");
            assert_ne!(id(params).digest, id(&other).digest, "{params}");
            assert_ne!(equals(&client, &call(params)), equals(&client, &call(&other)));
            let read = call_with(&client, meta, Effect::ReadOnly, params);
            assert!(read.parts().idempotency.id.is_none(), "{params}");
        }
        let key = r#"{"idempotencyKey":"k"}"#;
        let keyed = call_with(&client, key, Effect::Mutating, params);
        assert!(keyed.id().is_err(), "{params}");
    }
}
