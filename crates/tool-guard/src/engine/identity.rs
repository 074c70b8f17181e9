//! The client's id by which a repeated call is recognized, and the conversation of a call.
//!
//! | the first that is present | conversation | strength |
//! |---|---|---|
//! | `_meta.idempotencyKey` | none | strong |
//! | Codex's `_meta.callId` | `threadId` | strong if it was drawn at random, else weak |
//! | Claude Code's `_meta["claudecode/toolUseId"]` | the variable `CLAUDE_PROJECT_DIR` of the guard, else `CLAUDE_CODE_SESSION_ID` | the same |
//! | the members that an [`IdentityConfig`] of the configuration names | as configured | as configured, else the same |
//!
//! A strong id names one call forever, across connections, restarts and guards. A weak one (`functions.pay:0`) is used
//! again in the next turn: it names a call of these arguments in this conversation of this connection or session, until
//! the client has the answer; a call of unknown outcome keeps it for a minute.
mod claude;
mod likeness;
mod random;
mod via;

pub(crate) use self::{
    likeness::likeness,
    via::{Via, with_credential},
};

use self::random::is_random;
use super::unknowns::BARS;
use crate::wire::params::{Meta, text};
use serde_json::value::RawValue;
use std::time::Duration;
use tool_reliability::config::IdentityConfig;
use tr_core::{
    CallParts, DedupeKey, Effect, ToolCall,
    canonical::{Digest, Key, KeyParts, KeyScope, KeySource},
    manifest::TtlOverride,
};

/// How long the request of a call over HTTP names the call.
const WEAK: Duration = Duration::from_secs(60);

/// How long the record of a call without a strong id says that it may have run: as long as that blocks equal calls.
const UNKNOWN: Duration = BARS;

/// The record of a read, or of a call that did not run, ends with its call.
const AT_ONCE: Duration = Duration::ZERO;

/// What the guard knows about its client before any call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Client {
    /// Names the server, so that guards of several servers may share records.
    server: Box<str>,
    /// Names the connection.
    pub(crate) connection: Box<str>,
    claude_session: Option<Box<str>>,
    rules: Vec<IdentityConfig>,
    /// What the HTTP request that carries the call says, if one does; else nothing.
    pub(super) via: Via,
    /// Whether its calls come over HTTP, where who calls has a credential.
    pub(super) is_over_http: bool,
    /// Whether it is a host that runs its tools itself: no weak id recognizes its calls, since one connection carries
    /// many conversations for long.
    is_host: bool,
    /// Whether the params recognize a call without a key that may change something, whatever its id.
    pub(super) by_params: bool,
}

/// The identity of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    call: Option<CallId>,
    /// The client's name of the call, whichever id it is recognized by.
    client_id: Option<Box<str>>,
    pub(crate) conversation: Option<Box<str>>,
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
/// The HTTP request that carries the call.
const BY_REQUEST: &str = "http";
/// The params that say what is wanted.
const BY_PARAMS: &str = "identity";

impl Client {
    /// The client of a guard in front of `server`.
    pub(crate) fn new(server: &str, connection: &str, rules: Vec<IdentityConfig>) -> Self {
        Self {
            server: server.into(),
            connection: connection.into(),
            claude_session: claude::session(),
            rules,
            ..Self::default()
        }
    }

    /// The client of a host whose calls have their ids in the members of this rule.
    pub(crate) fn of_host(mut self, rule: IdentityConfig) -> Self {
        self.claude_session = None;
        self.rules.push(rule);
        self.is_host = true;
        self
    }

    /// Whether this id recognizes a call. Reads are made each time.
    fn recognizes(&self, id: &CallId, effect: Effect) -> bool {
        match self.by_params && (self.is_host || effect != Effect::ReadOnly) {
            true => [KEY, BY_PARAMS].contains(&&*id.kind),
            false => id.strong || !self.is_host,
        }
    }

    /// The client of this HTTP request: what the guard knows of its own surroundings says nothing about it.
    pub(crate) fn via(mut self, via: Via) -> Self {
        self.claude_session = None;
        self.connection = via.owner().into();
        self.via = via;
        self.is_over_http = true;
        self
    }

    /// Names who may get the answer of a call that continues this state.
    pub(crate) fn owner(&self, continues: Option<Digest>) -> String {
        format!("{:?}", (&self.connection, self.via.caller(), continues))
    }

    /// The conversation of calls that name none: the session, else the caller, else the connection.
    fn home(&self) -> &str {
        match self.is_over_http {
            true => self.via.session().unwrap_or(self.via.caller()),
            false => &self.connection,
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
        let drawn = |kind, id: Box<str>, conversation| {
            let strong = is_random(&id, tool);
            Some(CallId { conversation, ..CallId::new(kind, id, strong) })
        };
        let named_id = || named.as_ref().map(|named| named.id.clone());
        let client_id = codex.clone().or_else(|| claude.clone()).or_else(named_id);
        let id = key
            .map(|key| CallId::new(KEY, key.into(), true))
            .or_else(|| drawn(CODEX, codex?, thread.clone()))
            .or_else(|| drawn(CLAUDE, claude?, claude_session.clone()));
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
                let call = CallId { conversation: named.clone(), ..CallId::new(name, id, strong) };
                return (Some(call), named.or(conversation));
            }
            conversation = conversation.or(named);
        }
        (None, conversation)
    }

    /// Whether the call's conversation outlives this process: the client names it, or it is a session or a credential
    /// of HTTP.
    pub(crate) fn is_in_conversation(&self, call: &ToolCall) -> bool {
        self.is_over_http || call.parts().context.session.as_deref() != Some(self.home())
    }

    /// The key that calls of this tool and conversation share whose params have this [likeness](likeness()), whatever their ids.
    pub(crate) fn equals(&self, call: &ToolCall, likeness: Digest) -> Key {
        let parts = call.parts();
        self.key("equals", session_of_equals(call), parts, KeySource::Derived(&likeness))
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

/// The session in which equal calls are looked for: the conversation, over HTTP else the caller.
pub(crate) fn session_of_equals(call: &ToolCall) -> Option<&str> {
    let parts = call.parts();
    parts.idempotency.record_session.as_deref().or(parts.context.session.as_deref())
}

/// The digest of a call's params: params without a canonical form (half a surrogate pair, a name twice,
/// `1e400`) are equal only byte for byte.
pub(crate) fn digest(call: &ToolCall) -> Digest {
    call.digest().unwrap_or_else(|_| Digest::of_bytes(call.parts().params.get()))
}

/// The digests under which an equal call of the same caller may be recorded: of the params as they are, as they are compared,
/// and, if they say what is wanted, as they were before anything was declared of the tool.
pub(crate) fn recorded(call: &ToolCall, digests: [Digest; 2], client: &Client) -> Vec<Digest> {
    let undeclared = call.is_identified().then(|| {
        let mut undeclared = call.clone();
        undeclared.parts_mut().manifest = None;
        digest(&undeclared)
    });
    let mut all = Vec::new();
    for params in digests.into_iter().chain(undeclared) {
        for digest in [params, client.via.digest(params, false)] {
            if !all.contains(&digest) {
                all.push(digest);
            }
        }
    }
    all
}

impl CallId {
    /// One that is valid in all conversations.
    fn new(kind: &str, id: Box<str>, strong: bool) -> Self {
        Self { kind: kind.into(), id, strong, conversation: None }
    }
}

impl Identity {
    /// Adds the identity to the call: for the loop guard, the logs, and its record. The record of a mutating
    /// call with a strong id, or over HTTP with any, goes to the store, if there is one.
    pub(crate) fn put_into(self, call: &mut ToolCall, client: &Client, effect: Effect) {
        let session = self.conversation.as_deref().unwrap_or(client.home());
        if client.is_over_http && self.conversation.is_none() {
            call.parts_mut().idempotency.record_session = Some(client.via.caller().into());
        }
        call.parts_mut().context.session = Some(session.into());
        call.parts_mut().tool_call_id = self.client_id;
        let Some(id) = self.call.filter(|id| client.recognizes(id, effect)) else {
            if client.is_host && effect == Effect::ReadOnly {
                let ttls = &mut call.parts_mut().idempotency.ttls;
                (ttls.done, ttls.failed) = (Some(AT_ONCE), Some(AT_ONCE));
            }
            return;
        };
        if call.digest().is_err() {
            // The layer refuses it for its params, as it refuses any call with the caller's own key.
            if &*id.kind == KEY {
                return call.parts_mut().idempotency.key = Some(id.id);
            }
            if effect == Effect::ReadOnly {
                return;
            }
        }
        let params = digest(call);
        // What the guard gave may be continued by another session of the caller.
        let is_given = client.is_over_http && &*id.kind == BY_REQUEST;
        let mut key = if id.strong {
            let scope = id.conversation.as_deref();
            client.key(&id.kind, scope, call.parts(), KeySource::Caller(&id.id))
        } else {
            let conversation = self.conversation.as_deref().unwrap_or_default();
            let lengths = [conversation.len(), id.id.len()];
            let source = format!("{lengths:?} {conversation} {} {params}", id.id);
            let scope = if is_given { client.via.caller() } else { &client.connection };
            client.key("weak", Some(scope), call.parts(), KeySource::Caller(&source))
        };
        // The caller's own key spans what continues the call.
        let spans_all = [KEY, BY_PARAMS].contains(&&*id.kind);
        if let Some(from) = call.parts().idempotency.continues.filter(|_| !spans_all) {
            key = key.continued(&from);
        }
        let mut ttls = TtlOverride::default();
        match (effect, id.strong) {
            (Effect::ReadOnly, _) => (ttls.done, ttls.failed) = (Some(AT_ONCE), Some(AT_ONCE)),
            // A mutating call that failed after it ran is kept as a success is; one that did not run, not at all.
            // What is written to standard output is the client's.
            (_, false) => {
                (ttls.done, ttls.failed) =
                    (Some(if is_given { WEAK } else { AT_ONCE }), Some(AT_ONCE));
                ttls.unknown = Some(UNKNOWN);
            }
            _ => {}
        }
        let digest = match client.is_over_http {
            true => client.via.digest(params, &*id.kind == BY_PARAMS),
            false => params,
        };
        let parts = &mut call.parts_mut().idempotency;
        parts.id = Some(DedupeKey { key, digest });
        parts.ttls = ttls;
        // A connection on standard input and output ends with the guard, and so does what a weak id says there.
        parts.in_process = effect != Effect::Mutating || !(id.strong || client.is_over_http);
        if &*id.kind == KEY {
            parts.key = Some(id.id);
        }
    }

    /// Whether anything says by what the call is recognized.
    pub(crate) const fn is_named(&self) -> bool {
        self.call.is_some()
    }

    /// Whether an id names the call for ever.
    pub(crate) fn is_strong(&self) -> bool {
        self.call.as_ref().is_some_and(|call| call.strong)
    }

    /// The client's id, if it does not name the call for ever.
    pub(crate) fn weak_id(&self) -> Option<&str> {
        self.call.as_ref().filter(|call| !call.strong).map(|call| &*call.id)
    }

    /// Gives a call without a strong id one of the guard's.
    pub(crate) fn give(&mut self, id: &str) {
        if !self.is_strong() {
            self.call = Some(CallId::new(BY_REQUEST, id.into(), false));
        }
    }

    /// Recognizes a call without a key by the params that say what is wanted, if its tool declares some.
    pub(crate) fn declare(&mut self, params: Option<Digest>) {
        if let Some(params) = params.filter(|_| !self.is_keyed()) {
            self.call = Some(CallId::new(BY_PARAMS, params.to_string().into(), true));
        }
    }

    /// Whether the caller declares that this is a call of its own.
    pub(crate) fn is_keyed(&self) -> bool {
        self.call.as_ref().is_some_and(|call| &*call.kind == KEY)
    }
}

#[cfg(test)]
mod tests;
