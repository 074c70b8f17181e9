//! A policy with one answer changed, so that a type or a tool that differs in one thing needs no policy of its own.
use super::{
    change::{
        Change, DedupeKeyBy, EffectBy, JudgeError, JudgeResponse, Judged, KeyBy, Own,
        ResponseChange, StoredAsJson, WithEffect,
    },
    default_policy::DefaultPolicy,
    idempotency::{Derive, InvalidKey, RecordRef},
    named::NamedPolicy,
    request::{CloneRequest, RequestPolicy},
    response::{End, ResponsePolicy},
};
use crate::{
    BreakerOverride, CallInfo, Cancellation, Classification, DedupeKey, DedupeMode, DedupeScope,
    Effect, FencingToken, KeyRef, Ran, Retried, RetryOverrides, TtlOverride,
    internal::CoarseInstant,
    keys::{Fingerprint, FingerprintKey},
};
use std::{
    any::Any,
    borrow::Cow,
    error::Error,
    time::{Duration, Instant},
};

/// Methods of [`PolicyExt`] that take a closure.
macro_rules! by_closure {
    ($($(#[$doc:meta])* fn $name:ident$(<$of:ident>)?($closure:ident: Fn($in:ty) -> $out:ty) -> $change:ident { $made:expr })*) => {$(
        $(#[$doc])*
        fn $name<$($of,)? F: Fn($in) -> $out>(self, $closure: F) -> Adapted<Self, $change<F>> {
            Adapted::new(self, $made)
        }
    )*};
}

/// Changes one answer of a policy.
///
/// # When to use
///
/// Where a policy is right but for one thing. Changes can be combined, and the last one that speaks of an
/// effect, a key, a response or an error counts; what no closure speaks of stays as it was, so an error that
/// nothing is known of is still retried. To retry some errors alone, make all others final:
/// `.permanent_error(|error| !is_late(error))`. Evidence of
/// `refused_*` is about the last attempt: inside of another retry, leave it out. A policy of your own
/// gets the methods by `impl PolicyExt for MyPolicy {}`.
/// The closures should capture nothing, or only what is `Copy`: the idempotency layer takes policies that are.
///
/// ```
/// use tr_policy::{Effect, NamedPolicy, PolicyExt, RequestPolicy};
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

    by_closure! {
        /// Declares what each request does to the world.
        fn effect_by<Req>(effect: Fn(&Req) -> Effect) -> EffectBy { EffectBy(effect) }

        /// Names what each request calls, and so its breaker, its budget and its counters.
        fn key_by<Req>(name: Fn(&Req) -> &str) -> KeyBy { KeyBy(name) }

        /// Gives each request its idempotency key; `None` for one without. With the feature `keys`,
        /// [`DedupeKey::of`] makes one.
        fn idempotency_key_by<Req>(key: Fn(&Req) -> Option<DedupeKey>) -> DedupeKeyBy { DedupeKeyBy(key) }

        /// Retries responses for which `is_transient` says so: another attempt may succeed. A mutating request
        /// that may have run is still not repeated; that takes
        /// [`refused_response`](Self::refused_response).
        fn transient_response<Res>(is_transient: Fn(&Res) -> bool) -> JudgeResponse { JudgeResponse((is_transient, Judged::Transient)) }

        /// Retries errors for which `is_transient` says so: another attempt may succeed. A mutating request
        /// that may have run is still not repeated; that takes [`refused_error`](Self::refused_error).
        ///
        /// The closure gets the outermost error; [`find`](crate::find) finds one's own in it. Errors of the
        /// layers stay what they are.
        fn transient_error(is_transient: Fn(&(dyn Error + 'static)) -> bool) -> JudgeError { JudgeError((is_transient, Judged::Transient)) }

        /// Takes responses for which `is_final` says so for answers that the same request will get every time: a
        /// validation that failed, an account that is closed. They are not retried, no breaker counts them, and the
        /// request has run ([`Ran::Yes`]).
        fn permanent_response<Res>(is_final: Fn(&Res) -> bool) -> JudgeResponse { JudgeResponse((is_final, Judged::Permanent)) }

        /// Takes errors for which `is_final` says so for answers that the same request will get every time. They
        /// are not retried, no breaker counts them, and the request has run ([`Ran::Yes`]).
        ///
        /// The closure gets the outermost error; [`find`](crate::find) finds one's own in it. Errors of the
        /// layers stay what they are.
        ///
        /// ```
        /// use std::io::{Error, ErrorKind};
        /// use tr_policy::{NamedPolicy, PolicyExt, find};
        ///
        /// // Only what took too long is tried again.
        /// let policy = NamedPolicy::new("lookup").read_only().permanent_error(|error| {
        ///     find::<Error>(error).is_none_or(|it| it.kind() != ErrorKind::TimedOut)
        /// });
        /// # let _ = policy;
        /// ```
        fn permanent_error(is_final: Fn(&(dyn Error + 'static)) -> bool) -> JudgeError { JudgeError((is_final, Judged::Permanent)) }

        /// Takes errors for which `says_nothing` says so for ends that say nothing of the service: they are not
        /// retried, and no breaker counts them for or against it. Whether the request has run stays unknown.
        ///
        /// Errors of the layers stay what they are.
        fn ignored_error(says_nothing: Fn(&(dyn Error + 'static)) -> bool) -> JudgeError { JudgeError((says_nothing, Judged::Ignored)) }

        /// Retries responses for which `is_refusal` says so, even of mutating requests: the closure states
        /// that the server did nothing and may succeed later ([`Ran::No`]). If it is wrong, a call runs twice.
        fn refused_response<Res>(is_refusal: Fn(&Res) -> bool) -> JudgeResponse { JudgeResponse((is_refusal, Judged::Refused)) }

        /// Retries errors for which `is_refusal` says so, even of mutating requests: the closure states that
        /// the server did nothing and may succeed later ([`Ran::No`]). If it is wrong, a call runs twice.
        ///
        /// Errors of the layers stay what they are.
        fn refused_error(is_refusal: Fn(&(dyn Error + 'static)) -> bool) -> JudgeError { JudgeError((is_refusal, Judged::Refused)) }
    }

    #[doc(hidden)]
    fn permanent_own_error<E>(self, is_final: fn(&E) -> bool) -> WithPermanentError<Self, E> {
        Adapted::new(self, JudgeError((Own(is_final), Judged::Permanent)))
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

/// A function that names what a request calls.
pub type KeyFn<Req> = fn(&Req) -> &str;

/// What a layer's `key` makes of its policy; for naming a stack's type.
pub type Keyed<P, Req> = Adapted<P, KeyBy<KeyFn<Req>>>;

/// What a layer's `effect` makes of its policy; for naming a stack's type.
pub type WithEffectBy<P, Req> = Adapted<P, EffectBy<fn(&Req) -> Effect>>;

/// What a layer's `failure` makes of its policy; for naming a stack's type.
pub type WithFailure<P, Res> = Adapted<P, JudgeResponse<fn(&Res) -> bool>>;

/// What a layer's `permanent_error` makes of its policy; for naming a stack's type.
pub type WithPermanentError<P, E> = Adapted<P, JudgeError<Own<E>>>;

impl<P, C> Adapted<P, C> {
    const fn new(policy: P, change: C) -> Self {
        Self { policy, change }
    }

    /// The policy without the change.
    #[doc(hidden)]
    pub const fn policy(&self) -> &P {
        &self.policy
    }
}

crate::debug_parts! { Adapted<P: ::std::fmt::Debug, C>, |it| policy = it.policy }

/// Methods that are the policy's own.
macro_rules! forwards {
    ($(fn $name:ident $(<$life:lifetime>)? ($($arg:ident: $type:ty),*) $(-> $out:ty)?;)*) => {$(
        #[inline]
        fn $name $(<$life>)? (&self, $($arg: $type),*) $(-> $out)? {
            self.policy.$name($($arg),*)
        }
    )*};
}

impl<P: RequestPolicy<Req>, C: Change<Req>, Req> RequestPolicy<Req> for Adapted<P, C> {
    fn key<'r>(&self, req: &'r Req) -> KeyRef<'r> {
        self.change.name(req).map_or_else(|| self.policy.key(req), KeyRef::new)
    }

    fn breaker_key<'r>(&self, req: &'r Req) -> KeyRef<'r> {
        self.change.name(req).map_or_else(|| self.policy.breaker_key(req), KeyRef::new)
    }

    fn single_key(&self) -> Option<KeyRef<'_>> {
        if C::NAMES { None } else { self.policy.single_key() }
    }

    fn info<'r>(&self, req: &'r Req) -> CallInfo<'r> {
        let info = self.policy.info(req);
        let tool = self.change.name(req).unwrap_or(info.tool);
        CallInfo { tool, effect: self.effect(req), ..info }
    }

    fn effect(&self, req: &Req) -> Effect {
        self.change.effect(req).unwrap_or_else(|| self.policy.effect(req))
    }

    fn is_effect_declared(&self, req: &Req) -> bool {
        self.change.effect(req).is_some() || self.policy.is_effect_declared(req)
    }

    fn idempotency_key(&self, req: &Req) -> Result<Option<DedupeKey>, InvalidKey> {
        self.change.idempotency_key(req).map_or_else(|| self.policy.idempotency_key(req), Ok)
    }

    fn key_fingerprint(&self, req: &Req, key: &FingerprintKey) -> Option<Fingerprint> {
        #[cfg(feature = "keys")]
        if let Some(own) = self.change.idempotency_key(req) {
            return Some(key.fingerprint(own?.key));
        }
        self.policy.key_fingerprint(req, key)
    }

    #[inline]
    fn chunks<'r, K: Any>(&self, req: &'r Req) -> Option<&'r K> {
        self.policy.chunks(req)
    }

    forwards! {
        fn breaker_override(req: &Req) -> BreakerOverride;
        fn is_repeat_safe(req: &Req) -> Option<bool>;
        fn retry_overrides<'r>(req: &'r Req) -> RetryOverrides<'r>;
        fn agent<'r>(req: &'r Req) -> Option<&'r str>;
        fn retries_itself(req: &Req) -> bool;
        fn deadline(req: &Req) -> Option<Instant>;
        fn set_deadline(req: &mut Req, deadline: Instant);
        fn cancellation<'r>(req: &'r Req) -> Option<&'r dyn Cancellation>;
        fn attempt_timeout(req: &Req) -> Option<Duration>;
        fn idle_timeout(req: &Req) -> Option<Duration>;
        fn end_attempt(req: &Req, attempt: u32) -> bool;
        fn attempt(req: &Req) -> u32;
        fn set_attempt(req: &mut Req, attempt: u32);
        fn stamp(req: &Req) -> Option<CoarseInstant>;
        fn set_stamp(req: &mut Req, now: Option<CoarseInstant>);
        fn derived_key(req: &Req, from: Derive) -> Result<Option<DedupeKey>, InvalidKey>;
        fn dedupe_mode(req: &Req) -> DedupeMode;
        fn corrects(req: &Req) -> bool;
        fn scope(req: &Req) -> DedupeScope;
        fn has_scope(req: &Req) -> bool;
        fn record_ttls(req: &Req) -> TtlOverride;
        fn stays_in_process(req: &Req) -> bool;
        fn note_claim(req: &mut Req, claim: FencingToken);
        fn record<'r>(req: &'r Req) -> RecordRef<'r>;
        fn action<'r>(req: &'r Req) -> Option<&'r str>;
        fn params<'r>(req: &'r Req) -> Option<&'r str>;
        fn sensitive_fields<'r>(req: &'r Req) -> &'r [Box<str>];
        fn traceparent<'r>(req: &'r Req) -> Option<&'r str>;
        fn trace_id<'r>(req: &'r Req) -> Option<&'r str>;
    }
}

impl<P: ResponsePolicy<Res>, C: ResponseChange<Res>, Res> ResponsePolicy<Res> for Adapted<P, C> {
    fn classify<'r>(&self, end: End<'r, Res>) -> Classification<'r> {
        let found = self.policy.classify(end);
        match self.change.judge(end) {
            Some(judged) => judged.of(found),
            None => found,
        }
    }

    forwards! {
        fn note_retries(res: &mut Res, retried: Vec<Retried>);
        fn note_attempts(res: &mut Res, ran: Ran, exhausted: bool);
        fn note_unrecorded(res: &mut Res);
        fn set_span(res: &mut Res, span: &str);
        fn add_span(res: &mut Res, span: &str);
        fn content<'r>(res: &'r Res) -> Option<&'r str>;
        fn message<'r>(end: End<'r, Res>) -> Option<Cow<'r, str>>;
        fn is_from_cache(res: &Res) -> bool;
    }
}

impl<P: CloneRequest<Req>, C, Req> CloneRequest<Req> for Adapted<P, C> {
    fn clone_request(&self, req: &Req) -> Option<Req> {
        self.policy.clone_request(req)
    }
}

#[cfg(test)]
mod tests;
