//! A policy with one answer changed, so that a type or a tool that differs in one thing needs no policy of its own.
use super::{
    as_json::AsJson,
    change::{
        Change, DedupeKeyBy, EffectBy, KeepsStored, KeyBy, RefusedError, RefusedResponse,
        ResponseChange, StoredAsJson, TransientError, TransientResponse, WithEffect,
    },
    default_policy::DefaultPolicy,
    idempotency::{Derive, InvalidKey, RecordRef, StoreResponse},
    named::NamedPolicy,
    request::{CloneRequest, RequestPolicy},
    response::{End, ResponsePolicy},
};
use crate::{
    CallInfo, Cancellation, Classification, DedupeKey, DedupeMode, DedupeScope, Effect,
    FencingToken, KeyRef, Ran, Replay, Retried, RetryOverrides,
    canonical::{Fingerprint, FingerprintKey},
    chunks::Chunks,
    internal::CoarseInstant,
    manifest::{BreakerOverride, TtlOverride},
};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    borrow::Cow,
    error::Error,
    fmt,
    time::{Duration, Instant},
};

/// Changes one answer of a policy.
///
/// # When to use
///
/// Where a policy is right but for one thing. Changes can be combined: of effects and keys the last one
/// counts; what the four methods for responses and errors say adds up, and narrows nothing. Evidence of
/// `refused_*` is about the last attempt: inside of another retry, leave it out. A policy of your own
/// gets the methods by `impl PolicyExt for MyPolicy {}`.
/// The closures should capture nothing, or only what is `Copy`: the idempotency layer takes policies that are.
///
/// ```
/// use tr_core::{Effect, NamedPolicy, PolicyExt, RequestPolicy};
///
/// struct Query { shard: &'static str, sql: String }
///
/// let policy = NamedPolicy::new("database")
///     .key_by(|query: &Query| query.shard)
///     .effect_by(|query: &Query| match query.sql.starts_with("SELECT") {
///         true => Effect::ReadOnly,
///         false => Effect::Mutating,
///     });
/// let query = Query { shard: "eu-1", sql: "SELECT 1".into() };
/// assert_eq!((policy.key(&query).name, policy.effect(&query)), ("eu-1", Effect::ReadOnly));
/// ```
pub trait PolicyExt: Sized {
    /// Declares all requests to only read: they may be repeated after any transient failure.
    fn read_only(self) -> Adapted<Self, WithEffect> {
        self.with_effect(Effect::ReadOnly)
    }

    /// Declares all requests to be idempotent: a repeat changes nothing more, so they may be repeated
    /// after any transient failure.
    fn idempotent(self) -> Adapted<Self, WithEffect> {
        self.with_effect(Effect::Idempotent)
    }

    /// Declares what all requests do to the world.
    fn with_effect(self, effect: Effect) -> Adapted<Self, WithEffect> {
        Adapted::new(self, WithEffect(effect))
    }

    /// Declares what each request does to the world.
    fn effect_by<Req, F>(self, effect: F) -> Adapted<Self, EffectBy<F>>
    where
        F: Fn(&Req) -> Effect,
    {
        Adapted::new(self, EffectBy(effect))
    }

    /// Names what each request calls, and so its breaker, its budget and its counters.
    fn key_by<Req, F>(self, name: F) -> Adapted<Self, KeyBy<F>>
    where
        F: Fn(&Req) -> &str,
    {
        Adapted::new(self, KeyBy(name))
    }

    /// Gives each request its idempotency key; `None` for one without. With the feature `keys`,
    /// [`DedupeKey::of`] makes one.
    fn idempotency_key_by<Req, F>(self, key: F) -> Adapted<Self, DedupeKeyBy<F>>
    where
        F: Fn(&Req) -> Option<DedupeKey>,
    {
        Adapted::new(self, DedupeKeyBy(key))
    }

    /// Retries responses for which `is_transient` says so: another attempt may succeed. A mutating request
    /// that may have run is still not repeated; that takes
    /// [`refused_response`](Self::refused_response).
    fn transient_response<Res, F>(self, is_transient: F) -> Adapted<Self, TransientResponse<F>>
    where
        F: Fn(&Res) -> bool,
    {
        Adapted::new(self, TransientResponse(is_transient))
    }

    /// Retries errors for which `is_transient` says so: another attempt may succeed. A mutating request
    /// that may have run is still not repeated; that takes [`refused_error`](Self::refused_error).
    ///
    /// The closure gets the outermost error; [`find`](crate::find) finds one's own in it. Errors of the
    /// layers stay what they are.
    fn transient_error<F>(self, is_transient: F) -> Adapted<Self, TransientError<F>>
    where
        F: Fn(&(dyn Error + 'static)) -> bool,
    {
        Adapted::new(self, TransientError(is_transient))
    }

    /// Retries responses for which `is_refusal` says so, even of mutating requests: the closure states
    /// that the server did nothing and may succeed later ([`Ran::No`]). If it is wrong, a call runs twice.
    fn refused_response<Res, F>(self, is_refusal: F) -> Adapted<Self, RefusedResponse<F>>
    where
        F: Fn(&Res) -> bool,
    {
        Adapted::new(self, RefusedResponse(is_refusal))
    }

    /// Retries errors for which `is_refusal` says so, even of mutating requests: the closure states that
    /// the server did nothing and may succeed later ([`Ran::No`]). If it is wrong, a call runs twice.
    ///
    /// Errors of the layers stay what they are.
    fn refused_error<F>(self, is_refusal: F) -> Adapted<Self, RefusedError<F>>
    where
        F: Fn(&(dyn Error + 'static)) -> bool,
    {
        Adapted::new(self, RefusedError(is_refusal))
    }

    /// Records responses as JSON, by their serde impls.
    fn stored_as_json(self) -> Adapted<Self, StoredAsJson> {
        Adapted::new(self, StoredAsJson)
    }
}

impl PolicyExt for DefaultPolicy {}
impl PolicyExt for NamedPolicy {}
impl<P, C> PolicyExt for Adapted<P, C> {}

/// A policy with one answer changed by one of the methods of [`PolicyExt`].
#[derive(Clone, Copy)]
pub struct Adapted<P, C> {
    policy: P,
    change: C,
}

impl<P, C> Adapted<P, C> {
    const fn new(policy: P, change: C) -> Self {
        Self { policy, change }
    }
}

impl<P: fmt::Debug, C> fmt::Debug for Adapted<P, C> {
    /// Shows the policy that is changed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adapted").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl<P: RequestPolicy<Req>, C: Change<P, Req>, Req> RequestPolicy<Req> for Adapted<P, C> {
    fn key<'r>(&self, req: &'r Req) -> KeyRef<'r> {
        self.change.key(&self.policy, req)
    }

    fn breaker_key<'r>(&self, req: &'r Req) -> KeyRef<'r> {
        self.change.breaker_key(&self.policy, req)
    }

    fn breaker_override(&self, req: &Req) -> BreakerOverride {
        self.policy.breaker_override(req)
    }

    fn info<'r>(&self, req: &'r Req) -> CallInfo<'r> {
        self.change.info(&self.policy, req)
    }

    fn effect(&self, req: &Req) -> Effect {
        self.change.effect(&self.policy, req)
    }

    fn is_effect_declared(&self, req: &Req) -> bool {
        self.change.is_effect_declared(&self.policy, req)
    }

    fn is_repeat_safe(&self, req: &Req) -> Option<bool> {
        self.policy.is_repeat_safe(req)
    }

    fn retry_overrides<'r>(&self, req: &'r Req) -> RetryOverrides<'r> {
        self.policy.retry_overrides(req)
    }

    fn agent<'r>(&self, req: &'r Req) -> Option<&'r str> {
        self.policy.agent(req)
    }

    fn retries_itself(&self, req: &Req) -> bool {
        self.policy.retries_itself(req)
    }

    fn deadline(&self, req: &Req) -> Option<Instant> {
        self.policy.deadline(req)
    }

    fn set_deadline(&self, req: &mut Req, deadline: Instant) {
        self.policy.set_deadline(req, deadline);
    }

    fn cancellation<'r>(&self, req: &'r Req) -> Option<&'r dyn Cancellation> {
        self.policy.cancellation(req)
    }

    fn attempt_timeout(&self, req: &Req) -> Option<Duration> {
        self.policy.attempt_timeout(req)
    }

    fn idle_timeout(&self, req: &Req) -> Option<Duration> {
        self.policy.idle_timeout(req)
    }

    fn chunks<'r>(&self, req: &'r Req) -> Option<&'r Chunks> {
        self.policy.chunks(req)
    }

    fn attempt(&self, req: &Req) -> u32 {
        self.policy.attempt(req)
    }

    fn set_attempt(&self, req: &mut Req, attempt: u32) {
        self.policy.set_attempt(req, attempt);
    }

    fn stamp(&self, req: &Req) -> Option<CoarseInstant> {
        self.policy.stamp(req)
    }

    fn set_stamp(&self, req: &mut Req, now: Option<CoarseInstant>) {
        self.policy.set_stamp(req, now);
    }

    fn idempotency_key(&self, req: &Req) -> Result<Option<DedupeKey>, InvalidKey> {
        self.change.idempotency_key(&self.policy, req)
    }

    fn derived_key(&self, req: &Req, from: Derive) -> Result<Option<DedupeKey>, InvalidKey> {
        self.policy.derived_key(req, from)
    }

    fn dedupe_mode(&self, req: &Req) -> DedupeMode {
        self.policy.dedupe_mode(req)
    }

    fn scope(&self, req: &Req) -> DedupeScope {
        self.policy.scope(req)
    }

    fn has_scope(&self, req: &Req) -> bool {
        self.policy.has_scope(req)
    }

    fn record_ttls(&self, req: &Req) -> TtlOverride {
        self.policy.record_ttls(req)
    }

    fn stays_in_process(&self, req: &Req) -> bool {
        self.policy.stays_in_process(req)
    }

    fn note_claim(&self, req: &mut Req, claim: FencingToken) {
        self.policy.note_claim(req, claim);
    }

    fn record<'r>(&self, req: &'r Req) -> RecordRef<'r> {
        self.policy.record(req)
    }

    fn action<'r>(&self, req: &'r Req) -> Option<&'r str> {
        self.policy.action(req)
    }

    fn key_fingerprint(&self, req: &Req, key: &FingerprintKey) -> Option<Fingerprint> {
        self.change.key_fingerprint(&self.policy, req, key)
    }

    fn params<'r>(&self, req: &'r Req) -> Option<&'r str> {
        self.policy.params(req)
    }

    fn sensitive_fields<'r>(&self, req: &'r Req) -> &'r [Box<str>] {
        self.policy.sensitive_fields(req)
    }

    fn traceparent<'r>(&self, req: &'r Req) -> Option<&'r str> {
        self.policy.traceparent(req)
    }

    fn trace_id<'r>(&self, req: &'r Req) -> Option<&'r str> {
        self.policy.trace_id(req)
    }
}

impl<P: ResponsePolicy<Res>, C: ResponseChange<P, Res>, Res> ResponsePolicy<Res> for Adapted<P, C> {
    fn classify<'r>(&self, end: End<'r, Res>) -> Classification<'r> {
        self.change.classify(&self.policy, end)
    }

    fn note_retries(&self, res: &mut Res, retried: Vec<Retried>) {
        self.policy.note_retries(res, retried);
    }

    fn note_attempts(&self, res: &mut Res, ran: Ran, exhausted: bool) {
        self.policy.note_attempts(res, ran, exhausted);
    }

    fn note_unrecorded(&self, res: &mut Res) {
        self.policy.note_unrecorded(res);
    }

    fn set_span(&self, res: &mut Res, span: &str) {
        self.policy.set_span(res, span);
    }

    fn add_span(&self, res: &mut Res, span: &str) {
        self.policy.add_span(res, span);
    }

    fn content<'r>(&self, res: &'r Res) -> Option<&'r str> {
        self.policy.content(res)
    }

    fn message<'r>(&self, end: End<'r, Res>) -> Option<Cow<'r, str>> {
        self.policy.message(end)
    }

    fn is_from_cache(&self, res: &Res) -> bool {
        self.policy.is_from_cache(res)
    }
}

impl<P: CloneRequest<Req>, C, Req> CloneRequest<Req> for Adapted<P, C> {
    fn clone_request(&self, req: &Req) -> Option<Req> {
        self.policy.clone_request(req)
    }
}

impl<P: StoreResponse<Res>, C: KeepsStored, Res> StoreResponse<Res> for Adapted<P, C> {
    type Stored = P::Stored;

    fn store(&self, res: &Res) -> Option<P::Stored> {
        self.policy.store(res)
    }

    fn size_of(&self, stored: &P::Stored) -> usize {
        self.policy.size_of(stored)
    }

    fn shorten(&self, stored: &P::Stored) -> Option<P::Stored> {
        self.policy.shorten(stored)
    }

    fn load(&self, stored: P::Stored, replay: Replay) -> Res {
        self.policy.load(stored, replay)
    }
}

impl<P, Res> StoreResponse<Res> for Adapted<P, StoredAsJson>
where
    Res: Serialize + DeserializeOwned + Clone + Send + 'static,
{
    type Stored = AsJson<Res>;

    fn store(&self, res: &Res) -> Option<AsJson<Res>> {
        Some(AsJson(res.clone()))
    }

    fn size_of(&self, stored: &AsJson<Res>) -> usize {
        stored.size()
    }

    fn load(&self, stored: AsJson<Res>, _: Replay) -> Res {
        stored.0
    }
}

#[cfg(test)]
mod tests;
