//! What layers read of a request.
use super::idempotency::{Derive, InvalidKey, RecordRef};
use crate::{
    BreakerOverride, CallInfo, Cancellation, DedupeKey, DedupeMode, DedupeScope, Effect,
    FencingToken, KeyRef, RetryOverrides, TtlOverride,
    internal::CoarseInstant,
    keys::{Fingerprint, FingerprintKey},
};
use std::{
    any::Any,
    time::{Duration, Instant},
};

/// Reads a request: its key, and with defaults its effect, deadline, attempt and idempotency key.
///
/// ```
/// use tr_policy::{DefaultPolicy, Effect, KeyRef, RequestPolicy};
///
/// struct Lookup { host: String }
///
/// impl RequestPolicy<Lookup> for DefaultPolicy {
///     fn key<'r>(&self, lookup: &'r Lookup) -> KeyRef<'r> {
///         KeyRef::new(&lookup.host)
///     }
///     fn effect(&self, _: &Lookup) -> Effect {
///         Effect::ReadOnly
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what a `{Req}` is",
    label = "no `RequestPolicy<{Req}>` here",
    note = "write `impl RequestPolicy<{Req}> for {Self}` with the method `key` beside your request type",
    note = "or give the layer a policy that does, also for a type of another crate: `.policy(NamedPolicy::new(\"my_tool\"))`, or one of your own: `.policy(MyPolicy)`",
    note = "for requests and responses of the crate `http` enable the feature `http` of `tr-core` or `tr-policy`"
)]
pub trait RequestPolicy<Req> {
    /// The tool, and so its breaker, its budget and its counters.
    fn key<'r>(&self, req: &'r Req) -> KeyRef<'r>;

    /// The breaker, if it is not the tool's own. Operators' changes to the tool's breaker apply to those
    /// of its [targets](KeyRef::is_target), too.
    fn breaker_key<'r>(&self, req: &'r Req) -> KeyRef<'r> {
        self.key(req)
    }

    /// The key of all requests, where they have one and the same; `None` where it depends on the request.
    ///
    /// With it, a breaker refuses before its inner service is ready, and counts failures of readiness.
    fn single_key(&self) -> Option<KeyRef<'_>> {
        None
    }

    /// The breaker settings in the tool's manifest.
    fn breaker_override(&self, _: &Req) -> BreakerOverride {
        BreakerOverride::default()
    }

    /// The description of the request in events.
    fn info<'r>(&self, req: &'r Req) -> CallInfo<'r> {
        CallInfo { effect: self.effect(req), ..CallInfo::of(self.key(req).name) }
    }

    /// The effect; [`Effect::Mutating`] if it is unknown, which is the default.
    fn effect(&self, _: &Req) -> Effect {
        Effect::Mutating
    }

    /// Whether the effect is declared.
    fn is_effect_declared(&self, _: &Req) -> bool {
        true
    }

    /// Whether a repeat is safe although an earlier attempt may have run: `Some(true)` if the
    /// caller or the manifest declares it, `Some(false)` if one of them forbids it.
    fn is_repeat_safe(&self, _: &Req) -> Option<bool> {
        None
    }

    /// The retry settings that the call and the tool's manifest override.
    fn retry_overrides<'r>(&self, _: &'r Req) -> RetryOverrides<'r> {
        RetryOverrides::default()
    }

    /// The calling agent, for retries that are opt-in per agent.
    fn agent<'r>(&self, _: &'r Req) -> Option<&'r str> {
        None
    }

    /// Whether the tool retries by itself; then the retry layer does not.
    fn retries_itself(&self, _: &Req) -> bool {
        false
    }

    /// The deadline.
    fn deadline(&self, _: &Req) -> Option<Instant> {
        None
    }

    /// Shortens the deadline of the request, so that inner layers do not begin what cannot end in
    /// time.
    fn set_deadline(&self, _: &mut Req, _: Instant) {}

    /// The cancellation of the request, for layers that wait with nothing in flight; `None` if the
    /// caller can only drop the future.
    fn cancellation<'r>(&self, _: &'r Req) -> Option<&'r dyn Cancellation> {
        None
    }

    /// How long one attempt may take.
    fn attempt_timeout(&self, _: &Req) -> Option<Duration> {
        None
    }

    /// How long an answer in chunks may wait for its next chunk.
    fn idle_timeout(&self, _: &Req) -> Option<Duration> {
        None
    }

    /// The channel that takes the answer in chunks, for those who know its type `C`; `None` if the caller
    /// takes it whole.
    fn chunks<'r, C: Any>(&self, _: &'r Req) -> Option<&'r C> {
        None
    }

    /// Ends what this attempt, from 0, and those before it may send of an answer in chunks. Returns
    /// whether a part of the answer was sent; then no other attempt may follow.
    fn end_attempt(&self, _: &Req, _attempt: u32) -> bool {
        false
    }

    /// Which attempt the request is by its caller's count, from 0. Above 0, an outer layer is
    /// retrying it.
    fn attempt(&self, _: &Req) -> u32 {
        0
    }

    /// Sets which attempt the request is, from 0.
    fn set_attempt(&self, _: &mut Req, _: u32) {}

    /// When a layer last read the clock for this request.
    #[doc(hidden)]
    fn stamp(&self, _: &Req) -> Option<CoarseInstant> {
        None
    }

    /// Sets the time; `None` if the time is stale.
    #[doc(hidden)]
    fn set_stamp(&self, _: &mut Req, _: Option<CoarseInstant>) {}

    /// The idempotency key and the digest of the params; `None` without a key, which is the default.
    ///
    /// # Errors
    /// If it has a key that cannot be used; the call is refused then, since running it without
    /// its key could run it twice.
    fn idempotency_key(&self, _: &Req) -> Result<Option<DedupeKey>, InvalidKey> {
        Ok(None)
    }

    /// A key derived from what the request says, for a request that has none; `None` if that
    /// cannot be done.
    ///
    /// # Errors
    /// If the request's params have no canonical form; the call is refused then.
    fn derived_key(&self, _: &Req, _: Derive) -> Result<Option<DedupeKey>, InvalidKey> {
        Ok(None)
    }

    /// What to do with a duplicate.
    fn dedupe_mode(&self, _: &Req) -> DedupeMode {
        DedupeMode::Enforced
    }

    /// Whether a request with other params may run once the one with its key has failed: the key says what is
    /// wanted, and the params how.
    fn corrects(&self, _: &Req) -> bool {
        false
    }

    /// Which calls the idempotency key may match; the global scope is for read-only requests.
    fn scope(&self, _: &Req) -> DedupeScope {
        DedupeScope::Session
    }

    /// Whether the key holds for a session, or for everybody. Where it does neither, it holds for one
    /// instance of the service: a layer whose records other services share tells them apart by its
    /// own name, and refuses the call if it has none.
    fn has_scope(&self, _: &Req) -> bool {
        true
    }

    /// How long records of this request are kept, where that differs from the layer's settings.
    fn record_ttls(&self, _: &Req) -> TtlOverride {
        TtlOverride::default()
    }

    /// Whether its record stays in this process, although the layer has a store. A request whose
    /// key holds in a store must not have one in the process too: it could run once for each.
    fn stays_in_process(&self, _: &Req) -> bool {
        false
    }

    /// Notes the claim that a record store granted on the request, so that the tool can pass it on.
    fn note_claim(&self, _: &mut Req, _: FencingToken) {}

    /// What a record shows operators of the request, in addition to the description in events.
    fn record<'r>(&self, _: &'r Req) -> RecordRef<'r> {
        RecordRef::default()
    }

    /// The tool's action, where its label ends in one, for telemetry.
    fn action<'r>(&self, _: &'r Req) -> Option<&'r str> {
        None
    }

    /// The idempotency key, hashed with `key`, for telemetry, which never shows the key itself.
    fn key_fingerprint(&self, _: &Req, _key: &FingerprintKey) -> Option<Fingerprint> {
        None
    }

    /// The params as JSON text. Telemetry shows only their shape, and only if asked for.
    fn params<'r>(&self, _: &'r Req) -> Option<&'r str> {
        None
    }

    /// Names of sensitive params and result fields. Telemetry removes their values in
    /// [`params`](Self::params) and [`ResponsePolicy::content`](super::ResponsePolicy::content) from
    /// everything that it logs of the call.
    fn sensitive_fields<'r>(&self, _: &'r Req) -> &'r [Box<str>] {
        &[]
    }

    /// The W3C `traceparent` that came with the request.
    fn traceparent<'r>(&self, _: &'r Req) -> Option<&'r str> {
        None
    }

    /// The trace that the request says it belongs to, where no span says it.
    fn trace_id<'r>(&self, _: &'r Req) -> Option<&'r str> {
        None
    }
}

/// Whether and how a request can be repeated. Apart from [`RequestPolicy`], since it forces
/// `Clone` on most types.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not copy a `{Req}` for another attempt",
    label = "no `CloneRequest<{Req}>` here",
    note = "write `impl CloneRequest<{Req}> for {Self}` beside your request type",
    note = "or give the layer a policy that does, also for a type of another crate: `.policy(NamedPolicy::new(\"my_tool\"))`, or one of your own: `.policy(MyPolicy)`",
    note = "for requests and responses of the crate `http` enable the feature `http` of `tr-core` or `tr-policy`"
)]
pub trait CloneRequest<Req> {
    /// The copy for another attempt, or `None` if there can be none (a body that streams).
    fn clone_request(&self, req: &Req) -> Option<Req>;
}
