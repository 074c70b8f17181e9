//! What the methods of [`PolicyExt`](super::PolicyExt) change: each overrides one answer, the others are the policy's.
use super::{
    idempotency::InvalidKey,
    request::RequestPolicy,
    response::{End, ResponsePolicy},
};
use crate::{
    CallInfo, Classification, DedupeKey, Effect, KeyRef, Ran, Verdict,
    canonical::{Fingerprint, FingerprintKey},
    code, error,
};
use std::{error::Error, fmt};

/// What a change answers about a request.
#[diagnostic::on_unimplemented(
    message = "the closure of this policy does not take a `{Req}`",
    note = "the closures of `effect_by`, `key_by` and `idempotency_key_by` take a reference to the request type of the service"
)]
pub trait Change<P: RequestPolicy<Req>, Req> {
    #[doc(hidden)]
    fn key<'r>(&self, policy: &P, req: &'r Req) -> KeyRef<'r> {
        policy.key(req)
    }

    #[doc(hidden)]
    fn breaker_key<'r>(&self, policy: &P, req: &'r Req) -> KeyRef<'r> {
        policy.breaker_key(req)
    }

    #[doc(hidden)]
    fn single_key<'p>(&self, policy: &'p P) -> Option<KeyRef<'p>> {
        policy.single_key()
    }

    #[doc(hidden)]
    fn info<'r>(&self, policy: &P, req: &'r Req) -> CallInfo<'r> {
        CallInfo { effect: self.effect(policy, req), ..policy.info(req) }
    }

    #[doc(hidden)]
    fn effect(&self, policy: &P, req: &Req) -> Effect {
        policy.effect(req)
    }

    #[doc(hidden)]
    fn is_effect_declared(&self, policy: &P, req: &Req) -> bool {
        policy.is_effect_declared(req)
    }

    #[doc(hidden)]
    fn idempotency_key(&self, policy: &P, req: &Req) -> Result<Option<DedupeKey>, InvalidKey> {
        policy.idempotency_key(req)
    }

    #[doc(hidden)]
    fn key_fingerprint(&self, policy: &P, req: &Req, key: &FingerprintKey) -> Option<Fingerprint> {
        policy.key_fingerprint(req, key)
    }
}

/// What a change answers about a response.
#[diagnostic::on_unimplemented(
    message = "the closure of this policy does not take a `{Res}`",
    note = "the closures of `transient_response`, `permanent_response` and `refused_response` take a reference to the response type of the service"
)]
pub trait ResponseChange<P: ResponsePolicy<Res>, Res> {
    #[doc(hidden)]
    fn classify<'r>(&self, policy: &P, end: End<'r, Res>) -> Classification<'r> {
        policy.classify(end)
    }
}

/// A change that leaves recording as it is.
#[diagnostic::on_unimplemented(message = "`stored_as_json` needs a response with serde's impls")]
pub trait KeepsStored {}

/// The structs, and what they do not change.
macro_rules! changes {
    ($($(#[doc = $doc:literal])+ $name:ident $(<$f:ident>)? ($field:ty);)+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy)]
        pub struct $name $(<$f>)? (pub(super) $field);

        impl $(<$f>)? fmt::Debug for $name $(<$f>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }

        impl $(<$f>)? KeepsStored for $name $(<$f>)? {}
    )+};
}

changes! {
    /// [`with_effect`](super::PolicyExt::with_effect).
    WithEffect(Effect);
    /// [`effect_by`](super::PolicyExt::effect_by).
    EffectBy<F>(F);
    /// [`key_by`](super::PolicyExt::key_by).
    KeyBy<F>(F);
    /// [`idempotency_key_by`](super::PolicyExt::idempotency_key_by).
    DedupeKeyBy<F>(F);
    /// Judges the responses that the closure knows: [`transient_response`](super::PolicyExt::transient_response) and its
    /// like.
    JudgeResponse<F>((F, Judged));
    /// Judges the errors that the closure knows: [`transient_error`](super::PolicyExt::transient_error) and its like.
    JudgeError<F>((F, Judged));
}

/// A function on a program's own error, wherever it is in the chain.
#[derive(Debug)]
pub struct Own<E>(pub(super) fn(&E) -> bool);

impl<E> Clone for Own<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Own<E> {}

/// What says whether it knows an error.
pub trait Knows {
    #[doc(hidden)]
    fn knows(&self, error: &(dyn Error + 'static)) -> bool;
}

impl<F: Fn(&(dyn Error + 'static)) -> bool> Knows for F {
    fn knows(&self, error: &(dyn Error + 'static)) -> bool {
        self(error)
    }
}

impl<E: Error + 'static> Knows for Own<E> {
    fn knows(&self, error: &(dyn Error + 'static)) -> bool {
        error::find(error).is_some_and(self.0)
    }
}

/// How a closure judges the ends that it knows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Judged {
    /// Another attempt may succeed.
    Transient,
    /// The same, and nothing was done.
    Refused,
    /// Final: the service has answered.
    Permanent,
    /// Final, and it says nothing of the service.
    Ignored,
}

/// [`stored_as_json`](super::PolicyExt::stored_as_json).
#[derive(Clone, Copy, Debug)]
pub struct StoredAsJson;

impl<P: RequestPolicy<Req>, Req> Change<P, Req> for WithEffect {
    fn effect(&self, _: &P, _: &Req) -> Effect {
        self.0
    }

    fn is_effect_declared(&self, _: &P, _: &Req) -> bool {
        true
    }
}

impl<P: RequestPolicy<Req>, Req, F: Fn(&Req) -> Effect> Change<P, Req> for EffectBy<F> {
    fn effect(&self, _: &P, req: &Req) -> Effect {
        (self.0)(req)
    }

    fn is_effect_declared(&self, _: &P, _: &Req) -> bool {
        true
    }
}

impl<P: RequestPolicy<Req>, Req, F: Fn(&Req) -> &str> Change<P, Req> for KeyBy<F> {
    fn key<'r>(&self, _: &P, req: &'r Req) -> KeyRef<'r> {
        KeyRef::new((self.0)(req))
    }

    fn breaker_key<'r>(&self, policy: &P, req: &'r Req) -> KeyRef<'r> {
        self.key(policy, req)
    }

    fn single_key<'p>(&self, _: &'p P) -> Option<KeyRef<'p>> {
        None
    }

    fn info<'r>(&self, policy: &P, req: &'r Req) -> CallInfo<'r> {
        CallInfo { tool: (self.0)(req), ..policy.info(req) }
    }
}

impl<P: RequestPolicy<Req>, Req, F> Change<P, Req> for DedupeKeyBy<F>
where
    F: Fn(&Req) -> Option<DedupeKey>,
{
    fn idempotency_key(&self, _: &P, req: &Req) -> Result<Option<DedupeKey>, InvalidKey> {
        Ok((self.0)(req))
    }

    #[cfg(feature = "keys")]
    fn key_fingerprint(&self, _: &P, req: &Req, key: &FingerprintKey) -> Option<Fingerprint> {
        Some(key.fingerprint((self.0)(req)?.key))
    }
}

impl<P: RequestPolicy<Req>, Req, F> Change<P, Req> for JudgeResponse<F> {}
impl<P: RequestPolicy<Req>, Req, F> Change<P, Req> for JudgeError<F> {}
impl<P: RequestPolicy<Req>, Req> Change<P, Req> for StoredAsJson {}

impl<P: ResponsePolicy<Res>, Res> ResponseChange<P, Res> for WithEffect {}
impl<P: ResponsePolicy<Res>, Res, F> ResponseChange<P, Res> for EffectBy<F> {}
impl<P: ResponsePolicy<Res>, Res, F> ResponseChange<P, Res> for KeyBy<F> {}
impl<P: ResponsePolicy<Res>, Res, F> ResponseChange<P, Res> for DedupeKeyBy<F> {}
impl<P: ResponsePolicy<Res>, Res> ResponseChange<P, Res> for StoredAsJson {}

impl<P: ResponsePolicy<Res>, Res, F: Fn(&Res) -> bool> ResponseChange<P, Res> for JudgeResponse<F> {
    fn classify<'r>(&self, policy: &P, end: End<'r, Res>) -> Classification<'r> {
        let (found, (is, judged)) = (policy.classify(end), &self.0);
        if end.is_ok_and(is) { judged.of(found) } else { found }
    }
}

impl<P, Res, F> ResponseChange<P, Res> for JudgeError<F>
where
    P: ResponsePolicy<Res>,
    F: Knows,
{
    fn classify<'r>(&self, policy: &P, end: End<'r, Res>) -> Classification<'r> {
        let (found, (is, judged)) = (policy.classify(end), &self.0);
        // What a layer made stays what it is.
        let is = |failed: &(dyn Error + 'static)| {
            error::failure_info(failed).is_none() && is.knows(failed)
        };
        if end.is_err_and(|failed| is(failed)) { judged.of(found) } else { found }
    }
}

impl Judged {
    /// The same end, judged like this.
    fn of(self, found: Classification<'_>) -> Classification<'_> {
        let is_success = found.verdict.is_success();
        let (verdict, ran, code) = match self {
            Self::Transient | Self::Refused => {
                let hinted = found.verdict.is_transient();
                let verdict = if hinted { found.verdict } else { Verdict::TRANSIENT };
                let ran = if self == Self::Refused { Ran::No } else { found.ran };
                (verdict, ran, code::UNCLASSIFIED)
            }
            Self::Permanent => (Verdict::Permanent, Ran::Yes, code::TOOL_ERROR),
            Self::Ignored => (Verdict::Permanent, Ran::Unknown, code::TOOL_ERROR),
        };
        let code = if is_success { code } else { found.code };
        Classification { verdict, ran, code, ..found }
    }
}
