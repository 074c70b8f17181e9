//! One request to run one tool.
mod identity;

use crate::{
    BreakerHint, DedupeMode, Effect, Id, InvalidKey, Params, Priority, RetryOverride, Scope,
    ToolId, ToolManifest, canonical::Digest,
};
use std::{
    any::Any,
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// One request to run one tool.
///
/// A clone is a reference count: the parts are shared by all attempts and by every layer that
/// keeps a copy. What changes from attempt to attempt stands beside them.
///
/// ```
/// use tr_core::{Effect, Params, ToolCall};
///
/// let call = ToolCall::new("flight_search", Params::from_text(r#"{"to": "LIS"}"#)?)
///     .effect(Effect::ReadOnly)
///     .session("s-1")
///     .idempotency_key("search-1");
/// assert_eq!(call.parts().tool.label(), "flight_search");
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ToolCall {
    body: Arc<Body>,
    attempt: u32,
    stamp: Option<Instant>,
}

/// The parts, and what is computed from them at most once.
#[derive(Debug)]
struct Body {
    parts: CallParts,
    digest: OnceLock<Result<Digest, InvalidKey>>,
    id: OnceLock<Result<Option<Id>, InvalidKey>>,
    attempted: AtomicBool,
}

impl Body {
    const fn new(parts: CallParts) -> Self {
        Self {
            parts,
            digest: OnceLock::new(),
            id: OnceLock::new(),
            attempted: AtomicBool::new(false),
        }
    }
}

/// All that a [`ToolCall`] says. Fields are added in minor versions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallParts {
    /// Which tool.
    pub tool: ToolId,
    /// What is known of the tool.
    pub manifest: Option<Arc<ToolManifest>>,
    /// Its params.
    pub params: Params,
    /// Names this request in logs and envelopes.
    pub request_id: Option<Box<str>>,
    /// The id that the model gave to the call.
    pub tool_call_id: Option<Box<str>>,
    /// On whose behalf.
    pub context: CallContext,
    /// What the tool does to the world.
    pub effect: Effect,
    /// Whether [`effect`](Self::effect) was declared, and not assumed.
    pub effect_declared: bool,
    /// Key, mode and scope of deduplication.
    pub idempotency: IdempotencyParts,
    /// The caller's changes to the retry policy.
    pub retry: Option<RetryOverride>,
    /// Which calls share a breaker.
    pub breaker: BreakerHint,
    /// What the caller knows of this call.
    pub hints: CallHints,
    /// When the answer is of no use any more.
    pub deadline: Option<Instant>,
    /// A hint for scheduling.
    pub priority: Priority,
    /// Labels of the caller's own.
    pub tags: Vec<Box<str>>,
    /// The hook that made the call, if one did.
    pub from_hook: Option<Box<str>>,
    /// Where the call stands in a trace.
    pub trace: TraceParts,
    /// Which turn it belongs to.
    pub turn: Option<Box<str>>,
    /// Which step of the turn it belongs to.
    pub step: Option<Box<str>>,
    /// The provider whose model asked for it.
    pub provider: Option<Box<str>>,
    /// The model that asked for it.
    pub model: Option<Box<str>>,
    /// By which it can be cancelled.
    pub cancellation_id: Option<Box<str>>,
    /// Something of the caller's that the layers carry along and never look at.
    pub attachment: Attachment,
}

/// On whose behalf a call is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallContext {
    /// The session (transcript) it belongs to.
    pub session: Option<Box<str>>,
    /// The user or account.
    pub actor: Option<Box<str>>,
    /// The tenant.
    pub tenant: Option<Box<str>>,
    /// The workspace.
    pub workspace: Option<Box<str>>,
    /// The agent.
    pub agent: Option<Box<str>>,
    /// Ties calls of one business operation together in logs.
    pub correlation: Option<Box<str>>,
}

/// Key, mode and scope of deduplication.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct IdempotencyParts {
    /// The caller's key.
    pub key: Option<Box<str>>,
    /// What to do with a duplicate.
    pub mode: DedupeMode,
    /// Whose calls the key may match.
    pub scope: Scope,
    /// Key and digest, where the caller has computed them already.
    pub id: Option<Id>,
}

/// What the caller knows of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallHints {
    /// Never retry a mutating call whose attempt may have run, whatever else says so.
    pub safety_critical: bool,
    /// A repeat is safe even if an earlier attempt ran.
    pub expected_retry_safe: bool,
    /// How long one attempt may take.
    pub timeout: Option<Duration>,
    /// Chunks are welcome.
    pub prefer_streaming: bool,
    /// Under which a cache may keep the answer of a read.
    pub cache_key: Option<Box<str>>,
}

/// Where a call stands in a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceParts {
    /// W3C `traceparent`.
    pub traceparent: Option<Box<str>>,
    /// W3C baggage.
    pub baggage: Vec<(Box<str>, Box<str>)>,
    /// The trace that the call belongs to.
    pub trace_id: Option<Box<str>>,
    /// The call's own span.
    pub span_id: Option<Box<str>>,
    /// The caller's span.
    pub parent_span_id: Option<Box<str>>,
}

/// Something of the caller's that travels with a call: layers carry it and never look at it.
#[derive(Clone, Default)]
pub struct Attachment(Option<Arc<dyn Any + Send + Sync>>);

impl Attachment {
    /// Attaches `value`.
    #[must_use]
    pub fn new(value: impl Any + Send + Sync) -> Self {
        Self(Some(Arc::new(value)))
    }

    /// What was attached, if it is a `T`.
    #[must_use]
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.as_deref()?.downcast_ref()
    }
}

impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Attachment(..)" } else { "Attachment" })
    }
}

impl CallParts {
    /// A call of `tool`, everything else at its default: an undeclared tool counts as mutating.
    #[must_use]
    pub fn new(tool: impl Into<ToolId>, params: impl Into<Params>) -> Self {
        Self {
            tool: tool.into(),
            manifest: None,
            params: params.into(),
            request_id: None,
            tool_call_id: None,
            context: CallContext::default(),
            effect: Effect::default(),
            effect_declared: false,
            idempotency: IdempotencyParts::default(),
            retry: None,
            breaker: BreakerHint::default(),
            hints: CallHints::default(),
            deadline: None,
            priority: Priority::default(),
            tags: Vec::new(),
            from_hook: None,
            trace: TraceParts::default(),
            turn: None,
            step: None,
            provider: None,
            model: None,
            cancellation_id: None,
            attachment: Attachment::default(),
        }
    }
}

impl From<CallParts> for ToolCall {
    fn from(parts: CallParts) -> Self {
        Self { body: Arc::new(Body::new(parts)), attempt: 0, stamp: None }
    }
}

impl ToolCall {
    /// A call of `tool`, everything else at its default.
    #[must_use]
    pub fn new(tool: impl Into<ToolId>, params: impl Into<Params>) -> Self {
        CallParts::new(tool, params).into()
    }

    /// What the call says.
    #[must_use]
    pub fn parts(&self) -> &CallParts {
        &self.body.parts
    }

    /// What the call says, to be changed. Copies the parts if somebody shares them; the params
    /// stay shared.
    #[must_use]
    pub fn parts_mut(&mut self) -> &mut CallParts {
        if Arc::get_mut(&mut self.body).is_none() {
            self.body = Arc::new(Body::new(self.body.parts.clone()));
        }
        let body = Arc::get_mut(&mut self.body).expect("nobody shares it now");
        (body.digest, body.id) = (OnceLock::new(), OnceLock::new());
        &mut body.parts
    }

    /// A digest of the canonical params, computed at most once.
    ///
    /// # Errors
    /// If the params have no canonical form: duplicate names, a lone surrogate, a number that
    /// no double can hold.
    pub fn digest(&self) -> Result<Digest, InvalidKey> {
        self.body.digest.get_or_init(|| identity::digest(self.parts())).clone()
    }

    /// By what a repeat of this call is recognised, computed at most once; `None` without a key.
    ///
    /// # Errors
    /// If there is a key, and the params have no canonical form.
    pub fn id(&self) -> Result<Option<Id>, InvalidKey> {
        if let Some(id) = self.parts().idempotency.id {
            return Ok(Some(id));
        }
        let id = || identity::id(self.parts(), || self.digest());
        self.body.id.get_or_init(id).clone()
    }

    /// What is known of the tool.
    #[must_use]
    pub fn manifest(&self) -> Option<&ToolManifest> {
        self.parts().manifest.as_deref()
    }

    /// Attaches what is known of the tool; a declared effect becomes the call's.
    #[must_use]
    pub fn manifested(mut self, manifest: Arc<ToolManifest>) -> Self {
        let parts = self.parts_mut();
        if let Some(effect) = manifest.effect {
            (parts.effect, parts.effect_declared) = (effect, true);
        }
        parts.manifest = Some(manifest);
        self
    }

    /// Counts from 0.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Sets which attempt this is, from 0.
    pub const fn set_attempt(&mut self, attempt: u32) {
        self.attempt = attempt;
    }

    /// Notes, for all copies of the call, that an attempt has begun.
    pub fn note_attempt(&self) {
        self.body.attempted.store(true, Ordering::Relaxed);
    }

    /// Whether an attempt of any copy of the call has begun.
    #[must_use]
    pub fn had_attempt(&self) -> bool {
        self.body.attempted.load(Ordering::Relaxed)
    }

    /// When the call came in, or its backoff ended, where somebody looked at the clock.
    #[must_use]
    pub const fn stamp(&self) -> Option<Instant> {
        self.stamp
    }

    /// Notes the time, so that layers further in need not look at the clock again.
    pub const fn set_stamp(&mut self, now: Option<Instant>) {
        self.stamp = now;
    }

    /// Declares what the tool does to the world.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        let parts = self.parts_mut();
        parts.effect = effect;
        parts.effect_declared = true;
        self
    }

    /// Sets the session.
    #[must_use]
    pub fn session(mut self, session: impl Into<Box<str>>) -> Self {
        self.parts_mut().context.session = Some(session.into());
        self
    }

    /// Sets the user or account.
    #[must_use]
    pub fn actor(mut self, actor: impl Into<Box<str>>) -> Self {
        self.parts_mut().context.actor = Some(actor.into());
        self
    }

    /// Sets the turn.
    #[must_use]
    pub fn turn(mut self, turn: impl Into<Box<str>>) -> Self {
        self.parts_mut().turn = Some(turn.into());
        self
    }

    /// Sets the request's id.
    #[must_use]
    pub fn request_id(mut self, id: impl Into<Box<str>>) -> Self {
        self.parts_mut().request_id = Some(id.into());
        self
    }

    /// Sets the id that the model gave to the call.
    #[must_use]
    pub fn tool_call_id(mut self, id: impl Into<Box<str>>) -> Self {
        self.parts_mut().tool_call_id = Some(id.into());
        self
    }

    /// Sets the caller's idempotency key.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<Box<str>>) -> Self {
        self.parts_mut().idempotency.key = Some(key.into());
        self
    }

    /// Sets what to do with a duplicate.
    #[must_use]
    pub fn dedupe(mut self, mode: DedupeMode) -> Self {
        self.parts_mut().idempotency.mode = mode;
        self
    }

    /// Sets when the answer is of no use any more.
    #[must_use]
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.parts_mut().deadline = Some(deadline);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_undeclared_tool_is_mutating() {
        let call = ToolCall::new("x", Params::empty_object());
        assert_eq!(call.parts().effect, Effect::Mutating);
        assert!(!call.parts().effect_declared);
    }

    #[test]
    fn changing_a_clone_leaves_the_original_and_shares_the_params() {
        let call = ToolCall::new("x", Params::empty_object());
        let other = call.clone().session("s");
        assert_eq!(call.parts().context.session, None);
        assert!(call.parts().params.ptr_eq(&other.parts().params));
    }

    #[test]
    fn debug_shows_no_params() {
        let params = Params::from_text(r#"{"password":"hunter2"}"#).unwrap();
        assert!(!format!("{:?}", ToolCall::new("x", params)).contains("hunter2"));
    }
}
