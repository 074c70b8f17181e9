//! What a tool call says.
use super::{CallHints, Runs};
use crate::{
    BreakerHint, Cancellation, DedupeKey, DedupeMode, DedupeScope, Effect, Params, Priority,
    RetryOverride, ToolId, ToolManifest, canonical::Digest, chunks::Chunks, manifest::TtlOverride,
};
use std::{any::Any, fmt, sync::Arc, time::Instant};

/// All that a [`ToolCall`](crate::ToolCall) says. Fields are added in minor versions.
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
    /// Whether all params are the tool's own, as the arguments of an MCP call are: members named like
    /// [`VOLATILE`](crate::canonical::VOLATILE) ones then make two calls differ.
    pub own_params: bool,
    /// Key, mode and scope of deduplication.
    pub idempotency: IdempotencyParts,
    /// The caller's changes to the retry policy.
    pub retry: Option<RetryOverride>,
    /// Which calls share a breaker; `None` if the caller does not say.
    pub breaker: Option<BreakerHint>,
    /// What the caller knows of this call.
    pub hints: CallHints,
    /// When the answer is of no use any more.
    pub deadline: Option<Instant>,
    /// A hint for scheduling. A turn starts calls by it; a call by itself waits in no queue.
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
    /// The id by which a turn cancels the calls of its plan; any call is cancelled through
    /// `cancellation`.
    pub cancellation_id: Option<Box<str>>,
    /// Cancels the call, also a run of it that continues after its caller stopped waiting.
    pub cancellation: Option<Arc<dyn Cancellation>>,
    /// Counts how often the tool runs for this call; `None` if that is not needed.
    pub runs: Option<Runs>,
    /// Where the tool sends the chunks of its answer, if the caller takes chunks.
    pub chunks: Option<Chunks>,
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
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct IdempotencyParts {
    /// The key: the caller's, or else a hook's.
    pub key: Option<Box<str>>,
    /// Whether a hook gave the key, because the caller gave none. The same text from both makes
    /// two keys.
    pub from_hook: bool,
    /// A digest of what the call carries on from an earlier answer: under one key, a call that goes
    /// on from another place is another call.
    pub continues: Option<Digest>,
    /// What to do with a duplicate.
    pub mode: DedupeMode,
    /// Whose calls the key may match.
    pub scope: DedupeScope,
    /// Key and digest, where the caller has computed them already.
    pub id: Option<DedupeKey>,
    /// How long the call's record is kept, where that differs from what its tool's manifest says.
    pub ttls: TtlOverride,
    /// The record stays in this process although the layer has a store: for calls that need not
    /// outlive it.
    pub in_process: bool,
    /// The session in which the call's record is found among equal ones, where that is not the call's.
    pub record_session: Option<Box<str>>,
    /// What else the record says of the call to a person who settles it, a line `name: value` each: the server, the client,
    /// the params that tell it from others.
    pub about: Option<Box<str>>,
}

// Shows whether there is a key, not the key.
crate::debug_parts! { IdempotencyParts, |it|
    key = it.key.as_ref().map(|_| ".."), from_hook = it.from_hook, continues = it.continues.is_some(),
    mode = it.mode, scope = it.scope, id = it.id, ttls = it.ttls, in_process = it.in_process,
    record_session = it.record_session, about = it.about.is_some(),
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
            own_params: false,
            idempotency: IdempotencyParts::default(),
            retry: None,
            breaker: None,
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
            cancellation: None,
            runs: None,
            chunks: None,
            attachment: Attachment::default(),
        }
    }
}
