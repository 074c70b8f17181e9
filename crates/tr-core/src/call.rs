//! One request to run one tool.
mod gathering;
mod hints;
#[cfg(feature = "keys")]
mod identity;
mod parts;
mod runs;
mod target;

pub use self::{
    hints::CallHints,
    parts::{Attachment, CallContext, CallParts, IdempotencyParts, TraceParts},
    runs::Runs,
};

use self::{
    gathering::Gathering,
    target::{Target, may_name_origin},
};
use crate::{
    BreakerHint, DedupeKey, DedupeMode, DedupeScope, Effect, FencingToken, InvalidKey, KeyRef,
    Params, Sensitive, ToolId, ToolManifest,
    canonical::Digest,
    chunks::{ChunkSink, Chunks},
    internal::CoarseInstant,
    setters,
};
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
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
    stamp: Option<CoarseInstant>,
    /// The run of the tool that this copy is for, from 1; 0 outside of any.
    run: u32,
}

/// The parts, and what is computed from them at most once.
#[derive(Debug)]
struct Body {
    parts: CallParts,
    digest: OnceLock<Result<Digest, InvalidKey>>,
    id: OnceLock<Result<Option<DedupeKey>, InvalidKey>>,
    args_hash: OnceLock<u64>,
    /// Only where the params may name one.
    target: OnceLock<Option<Box<Target>>>,
    attempted: AtomicBool,
    gathering: Gathering,
    /// What gathers for the run in which this was copied, to be changed.
    run_body: Option<Arc<Self>>,
    /// The claim under which this copy runs.
    fence: Option<FencingToken>,
    /// The call that this is a copy of.
    original: Option<Arc<Self>>,
}

impl Body {
    const fn new(parts: CallParts) -> Self {
        Self {
            parts,
            digest: OnceLock::new(),
            id: OnceLock::new(),
            args_hash: OnceLock::new(),
            target: OnceLock::new(),
            attempted: AtomicBool::new(false),
            gathering: Gathering::new(),
            run_body: None,
            fence: None,
            original: None,
        }
    }

    /// A copy of the same call, to be changed in what does not make it another.
    fn copy_of(call: &Arc<Self>) -> Self {
        let original = call.original.as_ref().unwrap_or(call);
        Self {
            // Those of the original are not of a copy whose params were changed.
            digest: call.digest.clone(),
            id: call.id.clone(),
            args_hash: call.args_hash.clone(),
            target: call.target.clone(),
            fence: call.fence,
            run_body: call.run_body.clone(),
            original: Some(original.clone()),
            ..Self::new(call.parts.clone())
        }
    }

    /// Whether an attempt has begun is known to all copies of a call.
    fn attempted(&self) -> &AtomicBool {
        self.original.as_ref().map_or(&self.attempted, |original| &original.attempted)
    }
}

impl From<CallParts> for ToolCall {
    fn from(parts: CallParts) -> Self {
        Self { body: Arc::new(Body::new(parts)), attempt: 0, stamp: None, run: 0 }
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

    /// Mutable access to the parts. Copies them if they are shared; the params stay shared.
    #[must_use]
    pub fn parts_mut(&mut self) -> &mut CallParts {
        if Arc::get_mut(&mut self.body).is_none() {
            let Body { parts, fence, original, .. } = &*self.body;
            let (fence, original) = (*fence, original.clone());
            let run_body = (self.run > 0).then(|| self.run_body().clone());
            self.body = Arc::new(Body { fence, original, run_body, ..Body::new(parts.clone()) });
        }
        let body = Arc::get_mut(&mut self.body).expect("not shared: just made unique");
        (body.digest, body.id, body.args_hash, body.target) = Default::default();
        &mut body.parts
    }

    /// The key of the call's breaker: what the call's hint says, or else its manifest's. Without
    /// either it is the tool and the [origin](KeyRef::origin) that the params name, where all
    /// absolute URLs among the strings at their top level have the same; else the tool.
    #[inline]
    #[must_use]
    pub fn breaker_key(&self) -> KeyRef<'_> {
        let parts = self.parts();
        let hint = parts.breaker.or_else(|| self.manifest()?.breaker_hint);
        match hint {
            None => self.target().unwrap_or_else(|| parts.tool.key()),
            Some(BreakerHint::Tool) => parts.tool.key(),
            Some(BreakerHint::Dependency) => {
                let dependency = self.manifest().and_then(|tool| tool.dependency.as_deref());
                dependency.map_or_else(|| parts.tool.key(), KeyRef::new)
            }
            Some(BreakerHint::Global) => KeyRef::new("global"),
        }
    }

    #[inline]
    fn target(&self) -> Option<KeyRef<'_>> {
        // Rules out nearly all params that name no origin.
        if may_name_origin(&self.parts().params) { self.find_target() } else { None }
    }

    #[cold]
    fn find_target(&self) -> Option<KeyRef<'_>> {
        let CallParts { tool, params, .. } = self.parts();
        let target = self.body.target.get_or_init(|| {
            let sensitive = self.manifest().map_or(&[][..], |tool| &tool.sensitive);
            Target::find(tool, params, sensitive).map(Box::new)
        });
        Some(target.as_ref()?.key(tool, params))
    }

    /// What is known of the tool.
    #[must_use]
    pub fn manifest(&self) -> Option<&ToolManifest> {
        self.parts().manifest.as_deref()
    }

    /// The sensitive fields of the call, if its tool has any, for whatever shows or logs it.
    #[must_use]
    pub fn sensitive(&self) -> Option<Sensitive<'_>> {
        let names = &*self.manifest()?.sensitive;
        (!names.is_empty()).then(|| Sensitive::new(names, self.parts().params.get()))
    }

    /// Attaches what is known of the tool; a declared effect becomes the call's, and so does the scope
    /// of keys of a tool that is declared read-only.
    #[must_use]
    pub fn manifested(mut self, manifest: Arc<ToolManifest>) -> Self {
        let parts = self.parts_mut();
        if let Some(effect) = manifest.effect {
            (parts.effect, parts.effect_declared) = (effect, true);
        }
        if manifest.scope == DedupeScope::Global && manifest.effect == Some(Effect::ReadOnly) {
            parts.idempotency.scope = DedupeScope::Global;
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

    /// Makes this a call of its own, apart from those that it was cloned from: no attempt of it has
    /// begun. For every other layer it is the same call, with its key and its claim. Copies the parts
    /// if they are shared; the params stay shared.
    pub fn set_unattempted(&mut self) {
        match Arc::get_mut(&mut self.body) {
            Some(body) if body.original.is_none() => body.attempted = AtomicBool::new(false),
            _ => self.body = Arc::new(Body { original: None, ..Body::copy_of(&self.body) }),
        }
    }

    /// Notes, for all copies of the call, that an attempt has begun.
    pub fn note_attempt(&self) {
        self.body.attempted().store(true, Ordering::Relaxed);
    }

    /// Whether an attempt of any copy of the call has begun.
    #[must_use]
    pub fn had_attempt(&self) -> bool {
        self.body.attempted().load(Ordering::Relaxed)
    }

    /// Counts a run of the tool for this call, if the call has a counter.
    #[inline]
    pub fn note_run(&self) {
        if let Some(runs) = &self.parts().runs {
            runs.note();
        }
    }

    /// What this attempt of the tool writes the chunks of its answer to. If the caller takes no chunks, they
    /// are gathered.
    #[must_use]
    pub fn chunk_sink(&self) -> ChunkSink {
        let chunks = match (self.consumed_chunks(), self.run) {
            (Some(chunks), _) => chunks.clone(),
            (None, 0) => Chunks::gathering(),
            (None, run) => self.run_body().gathering.of(run),
        };
        ChunkSink::new(chunks, self.attempt)
    }

    /// The channel of a caller that takes chunks.
    fn consumed_chunks(&self) -> Option<&Chunks> {
        self.parts().chunks.as_ref().filter(|chunks| !chunks.only_watches())
    }

    /// Makes this the copy of the call for one run of the tool: all sinks of it and of its clones write to the
    /// same channel, also where the caller takes no chunks.
    #[doc(hidden)]
    #[inline]
    pub fn begin_run(&mut self) {
        if self.body.run_body.is_some() {
            // A run inside of another, whose chunks are its own.
            self.body = Arc::new(Body { run_body: None, ..Body::copy_of(&self.body) });
        }
        self.run = self.body.gathering.begin();
    }

    /// Ends the run that [`begin_run`](Self::begin_run) began. Returns the channel of its chunks; `None` if
    /// there is none.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn end_run(&self) -> Option<Chunks> {
        let chunks = self.parts().chunks.as_ref();
        chunks.cloned().or_else(|| self.run_body().gathering.end(self.run))
    }

    fn run_body(&self) -> &Arc<Body> {
        self.body.run_body.as_ref().unwrap_or(&self.body)
    }

    /// When the call arrived or its backoff ended, if a layer has read the clock for it.
    #[doc(hidden)]
    #[must_use]
    pub const fn stamp(&self) -> Option<CoarseInstant> {
        self.stamp
    }

    /// Sets the time, so that inner layers need not read the clock again.
    #[doc(hidden)]
    pub const fn set_stamp(&mut self, now: Option<CoarseInstant>) {
        self.stamp = now;
    }

    /// The claim under which the call runs, where a store of records has granted one.
    #[must_use]
    pub fn fencing_token(&self) -> Option<FencingToken> {
        self.body.fence
    }

    /// Notes the claim under which this copy of the call runs: another copy may run under a later
    /// one. Copies the parts; the params stay shared.
    pub fn set_fencing_token(&mut self, fence: FencingToken) {
        self.body = Arc::new(Body { fence: Some(fence), ..Body::copy_of(&self.body) });
    }

    /// Shortens the deadline of this copy of the call: it is the same call, under the same key. Copies
    /// the parts if they are shared; the params stay shared.
    pub fn set_deadline(&mut self, deadline: Instant) {
        if Arc::get_mut(&mut self.body).is_none() {
            self.body = Arc::new(Body::copy_of(&self.body));
        }
        let body = Arc::get_mut(&mut self.body).expect("not shared: just made unique");
        body.parts.deadline = Some(deadline);
    }

    /// Declares what the tool does to the world.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        let parts = self.parts_mut();
        parts.effect = effect;
        parts.effect_declared = true;
        self
    }

    setters! {
        /// Sets the session.
        fn session(session: impl Into<Box<str>>) { parts_mut().context.session = Some(session.into()) }

        /// Sets the user or account.
        fn actor(actor: impl Into<Box<str>>) { parts_mut().context.actor = Some(actor.into()) }

        /// Sets the turn.
        fn turn(turn: impl Into<Box<str>>) { parts_mut().turn = Some(turn.into()) }

        /// Sets the request's id.
        fn request_id(id: impl Into<Box<str>>) { parts_mut().request_id = Some(id.into()) }

        /// Sets the id that the model gave to the call.
        fn tool_call_id(id: impl Into<Box<str>>) { parts_mut().tool_call_id = Some(id.into()) }

        /// Sets the caller's idempotency key.
        fn idempotency_key(key: impl Into<Box<str>>) { parts_mut().idempotency.key = Some(key.into()) }

        /// Sets what to do with a duplicate.
        fn dedupe(mode: DedupeMode) { parts_mut().idempotency.mode = mode }

        /// Sets when the answer is of no use any more.
        fn deadline(deadline: Instant) { parts_mut().deadline = Some(deadline) }
    }
}

#[cfg(test)]
mod tests;
