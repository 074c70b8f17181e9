//! The client's id by which a repeated call is recognised, and the conversation of a call.
//!
//! | the first that is present | conversation | strength |
//! |---|---|---|
//! | `_meta.idempotencyKey` | none | strong |
//! | Codex's `_meta.callId` | `threadId` | strong; weak without a thread |
//! | Claude Code's `_meta["claudecode/toolUseId"]` | the variable `CLAUDE_PROJECT_DIR` of the guard, else `CLAUDE_CODE_SESSION_ID` | strong with 20 random characters, else weak |
//! | the members that an [`IdentityConfig`] of the configuration names | as configured | as configured |
//!
//! A strong id names one call forever: it is valid across connections, restarts and guards. A weak one
//! (`functions.pay:0`) is reused in the next conversation, so it is valid for this connection and ten
//! minutes.
mod random;

use self::random::is_random;
use super::meta::{Meta, text};
use serde_json::value::RawValue;
use std::{env, ffi::OsString, time::Duration};
use tool_reliability::config::IdentityConfig;
use tr_core::{
    CallParts, DedupeKey, Effect, ToolCall,
    canonical::{Digest, Key, KeyParts, KeyScope, KeySource},
    manifest::TtlOverride,
};

/// The folder in which Claude Code was started. A resumed session (`claude --continue`) has a
/// [`CLAUDE_SESSION`] of its own, so only the folder identifies the conversation.
const CLAUDE_PROJECT: &str = "CLAUDE_PROJECT_DIR";

/// The session that Claude Code gives to the servers that it starts.
const CLAUDE_SESSION: &str = "CLAUDE_CODE_SESSION_ID";

/// How long a weak id is valid.
const WEAK: Duration = Duration::from_secs(600);

/// The record of a read, or of a call that did not run, ends with its call.
const AT_ONCE: Duration = Duration::ZERO;

/// What the guard knows about its client before any call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Client {
    /// Names the server, so that guards of several servers may share records.
    server: Box<str>,
    /// Names the connection.
    connection: Box<str>,
    claude_session: Option<Box<str>>,
    rules: Vec<IdentityConfig>,
}

/// The identity of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    call: Option<CallId>,
    /// The client's name of the call, whichever id it is recognised by.
    client_id: Option<Box<str>>,
    conversation: Option<Box<str>>,
}

/// The client's id of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CallId {
    kind: Box<str>,
    id: Box<str>,
    strong: bool,
    /// Whether the id is valid within this conversation only.
    conversation: Option<Box<str>>,
}

/// The client's own key.
const KEY: &str = "idempotencyKey";
const CODEX: &str = "callId";
const CLAUDE: &str = "claudecode/toolUseId";

impl Client {
    /// The client of a guard in front of `server`.
    pub(crate) fn new(server: &str, connection: &str, rules: Vec<IdentityConfig>) -> Self {
        let named = |name| env::var_os(name).filter(|value| !value.is_empty());
        Self {
            server: server.into(),
            connection: connection.into(),
            claude_session: claude_session(named(CLAUDE_PROJECT), named(CLAUDE_SESSION)),
            rules,
        }
    }

    /// The identity of the call, by its key, if it has one, and the other members of its `_meta`.
    pub(crate) fn identify(
        &self,
        tool: &str,
        key: Option<&str>,
        meta: &Meta<'_>,
        raw: Option<&RawValue>,
    ) -> Identity {
        let (codex, thread) = (text(meta.codex_call), text(meta.codex_thread));
        let (named, named_conversation) = self.named(tool, raw);
        let claude = text(meta.claude_call);
        let claude_session = self.claude_session.clone().filter(|_| claude.is_some());
        let call = |kind: &str, id: Box<str>, strong, conversation| CallId {
            kind: kind.into(),
            id,
            strong,
            conversation,
        };
        let named_id = || named.as_ref().map(|named| named.id.clone());
        let client_id = codex.clone().or_else(|| claude.clone()).or_else(named_id);
        let id = key
            .map(|key| call(KEY, key.into(), true, None))
            .or_else(|| Some(call(CODEX, codex?, thread.is_some(), thread.clone())))
            .or_else(|| {
                let strong = is_random(claude.as_deref()?, tool);
                Some(call(CLAUDE, claude?, strong, claude_session.clone()))
            });
        let others = [meta.vscode, meta.opencode, meta.goose, meta.antigravity];
        let conversation = thread
            .or(claude_session)
            .or(named_conversation)
            .or_else(|| others.into_iter().find_map(text));
        Identity { call: id.or(named), client_id, conversation }
    }

    /// The identity by the configuration's rules.
    fn named(&self, tool: &str, raw: Option<&RawValue>) -> (Option<CallId>, Option<Box<str>>) {
        if self.rules.is_empty() {
            return (None, None);
        }
        let Some(raw) = raw else { return (None, None) };
        let members: std::collections::HashMap<String, &RawValue> =
            serde_json::from_str(raw.get()).unwrap_or_default();
        let member = |name: &str| text(members.get(name).copied());
        let mut conversation = None;
        for rule in &self.rules {
            let named = rule.conversation.as_deref().and_then(member);
            let id = rule.call.as_deref().and_then(|name| Some((name, member(name)?)));
            if let Some((name, id)) = id {
                let strong = rule.strong.unwrap_or_else(|| is_random(&id, tool));
                let call = CallId { kind: name.into(), id, strong, conversation: named.clone() };
                return (Some(call), named.or(conversation));
            }
            conversation = conversation.or(named);
        }
        (None, conversation)
    }

    /// Whether the client names the call's conversation.
    pub(crate) fn is_in_conversation(&self, call: &ToolCall) -> bool {
        call.parts().context.session.as_deref() != Some(&*self.connection)
    }

    /// The key that equal calls of this tool and conversation share: their params, whatever their ids.
    pub(crate) fn equals(&self, call: &ToolCall) -> Key {
        let digest = digest(call);
        let parts = call.parts();
        self.key("equals", parts.context.session.as_deref(), parts, KeySource::Derived(&digest))
    }

    /// The key of a call with this key of its caller's.
    pub(crate) fn own_key(&self, parts: &CallParts, key: &str) -> Key {
        self.key(KEY, None, parts, KeySource::Caller(key))
    }

    fn key(
        &self,
        kind: &str,
        conversation: Option<&str>,
        parts: &CallParts,
        source: KeySource<'_>,
    ) -> Key {
        let scope = KeyScope::Session {
            tenant: Some(&self.server),
            workspace: Some(kind),
            session: conversation,
            actor: None,
        };
        let (namespace, tool, action) =
            (parts.tool.namespace(), parts.tool.name(), parts.tool.action());
        Key::derive(&KeyParts { scope, namespace, tool, action, source, step: None })
    }
}

/// The digest of a call's params: params without a canonical form (half a surrogate pair, a name twice,
/// `1e400`) are equal only byte for byte.
pub(crate) fn digest(call: &ToolCall) -> Digest {
    call.digest().unwrap_or_else(|_| Digest::of_bytes(call.parts().params.get()))
}

impl Identity {
    /// Adds the identity to the call: for the loop guard, the logs, and its record. The record of a mutating
    /// call with a strong id goes to the store, if there is one.
    pub(crate) fn put_into(self, call: &mut ToolCall, client: &Client, effect: Effect) {
        let session = self.conversation.as_ref().unwrap_or(&client.connection);
        call.parts_mut().context.session = Some(session.clone());
        call.parts_mut().tool_call_id = self.client_id;
        let Some(id) = self.call else { return };
        if call.digest().is_err() {
            // The layer refuses it for its params, as it refuses any call with the caller's own key.
            if &*id.kind == KEY {
                return call.parts_mut().idempotency.key = Some(id.id);
            }
            if effect == Effect::ReadOnly {
                return;
            }
        }
        let digest = digest(call);
        let scope = if id.strong { id.conversation.as_deref() } else { Some(&*client.connection) };
        let kind = if id.strong { &*id.kind } else { "weak" };
        let mut key = client.key(kind, scope, call.parts(), KeySource::Caller(&id.id));
        if let Some(from) = &call.parts().idempotency.continues {
            key = key.continued(from);
        }
        let mut ttls = TtlOverride::default();
        match (effect, id.strong) {
            (Effect::ReadOnly, _) => (ttls.done, ttls.failed) = (Some(AT_ONCE), Some(AT_ONCE)),
            (_, false) => {
                // A mutating call that failed after it ran is kept as a success is; one that did not run, not at all.
                (ttls.done, ttls.failed, ttls.unknown) = (Some(WEAK), Some(AT_ONCE), Some(WEAK));
            }
            _ => {}
        }
        let parts = &mut call.parts_mut().idempotency;
        parts.id = Some(DedupeKey { key, digest });
        parts.ttls = ttls;
        parts.in_process = effect != Effect::Mutating || !id.strong;
        if &*id.kind == KEY {
            parts.key = Some(id.id);
        }
    }

    /// Whether the caller declares that this is a call of its own.
    pub(crate) fn is_keyed(&self) -> bool {
        self.call.as_ref().is_some_and(|call| &*call.kind == KEY)
    }
}

/// The conversation that Claude Code gives to the servers that it starts. Readers of the records need not
/// learn the folder's name, so its digest is used.
fn claude_session(project: Option<OsString>, session: Option<OsString>) -> Option<Box<str>> {
    let of_project = |folder: OsString| {
        let digest = Digest::of_bytes(folder.as_encoded_bytes()).to_string();
        format!("project-{}", &digest[..32]).into_boxed_str()
    };
    let of_session = |id: OsString| id.into_string().ok().map(String::into_boxed_str);
    project.map(of_project).or_else(|| of_session(session?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::message;

    const TOOLU: &str = "toolu_01A09q90qw90lq917835lq9";

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
        let meta: Meta<'_> = message::object(meta).unwrap();
        let key = text(meta.idempotency_key);
        let identity = client.identify("pay", key.as_deref(), &meta, Some(raw));
        let params = tr_core::Params::from_text(params).unwrap();
        let mut call = ToolCall::new("pay", params);
        identity.put_into(&mut call, client, effect);
        call
    }

    fn key(connection: &str, meta: &str) -> Option<Key> {
        call(&client(connection), meta, Effect::Mutating).parts().idempotency.id.map(|id| id.key)
    }

    #[test]
    fn the_first_id_that_is_there_decides() {
        let all =
            r#"{"idempotencyKey":"k","callId":"c","threadId":"t","claudecode/toolUseId":"x"}"#;
        assert_eq!(key("a", all), key("a", r#"{"idempotencyKey":"k"}"#));
        let codex = r#"{"callId":"c","threadId":"t","claudecode/toolUseId":"x"}"#;
        assert_eq!(key("a", codex), key("a", r#"{"callId":"c","threadId":"t"}"#));
        assert_eq!(key("a", r#"{"callId":7,"progressToken":1,"vscode.requestId":"r"}"#), None);
        // The same text from two members makes two calls.
        assert_ne!(
            key("a", r#"{"idempotencyKey":"k"}"#),
            key("a", r#"{"callId":"k","threadId":"t"}"#)
        );
    }

    #[test]
    fn a_strong_id_holds_across_connections_and_a_weak_one_does_not() {
        let toolu = format!(r#"{{"claudecode/toolUseId":"{TOOLU}"}}"#);
        let strong = [r#"{"idempotencyKey":"k"}"#, r#"{"callId":"call_0","threadId":"t"}"#, &toolu];
        for meta in strong {
            assert_eq!(key("a", meta), key("b", meta), "{meta}");
            assert!(key("a", meta).is_some());
            assert!(!call(&client("a"), meta, Effect::Mutating).parts().idempotency.in_process);
            // A read is joined while it runs, and no longer.
            let read = call(&client("a"), meta, Effect::ReadOnly);
            let parts = &read.parts().idempotency;
            assert!(parts.in_process && parts.ttls.done == Some(AT_ONCE), "{meta}");
        }
        for meta in [r#"{"callId":"call_0"}"#, r#"{"claudecode/toolUseId":"functions.pay:0"}"#] {
            assert_ne!(key("a", meta), key("b", meta), "{meta}");
            assert_eq!(key("a", meta), key("a", meta), "{meta}");
            let weak = call(&client("a"), meta, Effect::Mutating);
            let parts = &weak.parts().idempotency;
            assert!(parts.in_process && parts.ttls.done == Some(WEAK), "{meta}");
        }
    }

    #[test]
    fn sessions_of_claude_code_in_one_project_are_one_conversation() {
        let session = |project: Option<&str>, session: &str| {
            claude_session(project.map(Into::into), Some(session.into()))
        };
        assert_eq!(session(Some("/shop"), "1"), session(Some("/shop"), "2"));
        assert_ne!(session(Some("/shop"), "1"), session(Some("/bank"), "1"));
        assert_eq!(session(None, "1").as_deref(), Some("1"));
        assert_eq!(claude_session(None, None), None);
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
            client.equals(&call(&client, meta, Effect::Mutating))
        };
        let thread =
            |id: &str, thread: &str| format!(r#"{{"callId":"{id}","threadId":"{thread}"}}"#);
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
            for meta in [&toolu, r#"{"callId":"c","threadId":"t"}"#, r#"{"callId":"c"}"#] {
                let call = |params: &str| call_with(&client, meta, Effect::Mutating, params);
                let id = |params: &str| call(params).parts().idempotency.id.unwrap();
                let other = params.replace("\"a\":", "\"a\": ");
                assert_eq!(id(params).digest, digest(&call(params)));
                assert_eq!(id(params).key, id(&other).key, "{params}");
                assert_ne!(id(params).digest, id(&other).digest, "{params}");
                assert_ne!(client.equals(&call(params)), client.equals(&call(&other)));
                let read = call_with(&client, meta, Effect::ReadOnly, params);
                assert!(read.parts().idempotency.id.is_none(), "{params}");
            }
            let key = r#"{"idempotencyKey":"k"}"#;
            let keyed = call_with(&client, key, Effect::Mutating, params);
            assert!(keyed.id().is_err(), "{params}");
        }
    }
}
