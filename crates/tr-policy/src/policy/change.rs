//! What the methods of [`PolicyExt`](super::PolicyExt) change: each gives one answer, the others are the policy's.
use super::response::End;
use crate::{Classification, DedupeKey, Effect, Ran, Verdict, code, error};
use std::error::Error;

/// What a change answers about a request; `None` leaves it to the policy.
#[diagnostic::on_unimplemented(
    message = "the closure of this policy does not take a `{Req}`",
    note = "the closures of `effect_by`, `key_by` and `idempotency_key_by` take a reference to the request type of the service"
)]
pub trait Change<Req> {
    /// Whether each request has a name of its own.
    #[doc(hidden)]
    const NAMES: bool = false;

    #[doc(hidden)]
    fn name<'r>(&self, _: &'r Req) -> Option<&'r str> {
        None
    }

    #[doc(hidden)]
    fn effect(&self, _: &Req) -> Option<Effect> {
        None
    }

    #[doc(hidden)]
    fn idempotency_key(&self, _: &Req) -> Option<Option<DedupeKey>> {
        None
    }
}

/// What a change answers about a response; `None` leaves it to the policy.
#[diagnostic::on_unimplemented(
    message = "the closure of this policy does not take a `{Res}`",
    note = "the closures of `transient_response`, `permanent_response` and `refused_response` take a reference to the response type of the service"
)]
pub trait ResponseChange<Res> {
    #[doc(hidden)]
    fn judge(&self, _: End<'_, Res>) -> Option<Judged> {
        None
    }
}

/// The structs, and what they do not change.
macro_rules! changes {
    ($($(#[doc = $doc:literal])+ $name:ident $(<$f:ident>)? ($field:ty);)+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy)]
        pub struct $name $(<$f>)? (pub(super) $field);

        crate::debug_parts! { $name $(<$f>)?, |_it| }
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
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
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

impl<Req> Change<Req> for WithEffect {
    fn effect(&self, _: &Req) -> Option<Effect> {
        Some(self.0)
    }
}

impl<Req, F: Fn(&Req) -> Effect> Change<Req> for EffectBy<F> {
    fn effect(&self, req: &Req) -> Option<Effect> {
        Some((self.0)(req))
    }
}

impl<Req, F: Fn(&Req) -> &str> Change<Req> for KeyBy<F> {
    const NAMES: bool = true;

    fn name<'r>(&self, req: &'r Req) -> Option<&'r str> {
        Some((self.0)(req))
    }
}

impl<Req, F: Fn(&Req) -> Option<DedupeKey>> Change<Req> for DedupeKeyBy<F> {
    fn idempotency_key(&self, req: &Req) -> Option<Option<DedupeKey>> {
        Some((self.0)(req))
    }
}

impl<Req, F> Change<Req> for JudgeResponse<F> {}
impl<Req, F> Change<Req> for JudgeError<F> {}
impl<Req> Change<Req> for StoredAsJson {}

impl<Res> ResponseChange<Res> for WithEffect {}
impl<Res, F> ResponseChange<Res> for EffectBy<F> {}
impl<Res, F> ResponseChange<Res> for KeyBy<F> {}
impl<Res, F> ResponseChange<Res> for DedupeKeyBy<F> {}
impl<Res> ResponseChange<Res> for StoredAsJson {}

impl<Res, F: Fn(&Res) -> bool> ResponseChange<Res> for JudgeResponse<F> {
    fn judge(&self, end: End<'_, Res>) -> Option<Judged> {
        let (is, judged) = &self.0;
        end.is_ok_and(is).then_some(*judged)
    }
}

impl<Res, F: Knows> ResponseChange<Res> for JudgeError<F> {
    fn judge(&self, end: End<'_, Res>) -> Option<Judged> {
        let (is, judged) = &self.0;
        // What a layer made stays what it is.
        let failed = end.err().filter(|failed| error::failure_info(*failed).is_none())?;
        is.knows(failed).then_some(*judged)
    }
}

impl Judged {
    /// The same end, judged like this.
    pub(super) fn of(self, found: Classification<'_>) -> Classification<'_> {
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
