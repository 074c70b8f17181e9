//! Identity of a request for deduplication, and the recording of its answer.
use crate::{DedupeKey, DedupeMode, FencingToken, Replay, Scope, manifest::TtlOverride};
use std::{error::Error, fmt};

/// The identity of a request for deduplication.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not define the idempotency key of a `{Req}`",
    label = "no `IdempotencyOf<{Req}>` here",
    note = "write `impl tr_core::IdempotencyOf<{Req}> for {Self}` beside your request type, or give the layer a policy of your own with `.policy(MyPolicy)`"
)]
pub trait IdempotencyOf<Req> {
    /// Its key and digest; `None` if it has no key.
    ///
    /// # Errors
    /// If it has a key that cannot be used; the call is refused then, since running it without
    /// its key could run it twice.
    fn id_of(&self, req: &Req) -> Result<Option<DedupeKey>, InvalidKey>;

    /// What to do with a duplicate.
    fn mode_of(&self, _: &Req) -> DedupeMode {
        DedupeMode::Enforced
    }

    /// Which calls the key may match; the global scope is for read-only requests.
    fn scope_of(&self, _: &Req) -> Scope {
        Scope::Session
    }

    /// Whether the key holds for a session, or for everybody. Where it does neither, it holds for one
    /// instance of the service: a layer whose records other services share tells them apart by its
    /// own name, and refuses the call if it has none.
    fn has_scope(&self, _: &Req) -> bool {
        true
    }

    /// A key derived from what the request says, for a request that has none; `None` if that
    /// cannot be done.
    ///
    /// # Errors
    /// If the request's params have no canonical form; the call is refused then.
    fn derived_of(&self, _: &Req, _: Derive) -> Result<Option<DedupeKey>, InvalidKey> {
        Ok(None)
    }

    /// How long records of this request are kept, where that differs from the layer's settings.
    fn ttls_of(&self, _: &Req) -> TtlOverride {
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
    fn record_of<'r>(&self, _: &'r Req) -> RecordRef<'r> {
        RecordRef::default()
    }
}

/// Which repeats a derived key covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Derive {
    /// The same tool with the same params within one session.
    Session,
    /// The same within one step of one turn; nothing for a request that names no step.
    Step,
}

/// What a record shows operators of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordRef<'r> {
    /// The caller's key as the caller spelled it.
    pub key: Option<&'r str>,
    /// The user or account.
    pub actor: Option<&'r str>,
}

/// A key that cannot be used. The tool did not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidKey(Box<str>);

impl InvalidKey {
    /// Says what is wrong and what to do.
    #[must_use]
    pub fn new(why: impl Into<Box<str>>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for InvalidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for InvalidKey {}

/// How an answer is recorded and replayed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not define how to record a `{Res}`",
    label = "no `Codec<{Res}>` here",
    note = "write `impl tr_core::Codec<{Res}> for {Self}` beside your response type, or give the layer a policy of your own with `.policy(MyPolicy)`"
)]
pub trait Codec<Res> {
    /// What is kept in the record.
    type Stored: Clone + Send + 'static;

    /// What to keep, or `None` if this answer cannot be kept (it streams).
    fn store(&self, res: &Res) -> Option<Self::Stored>;

    /// How many bytes of memory are kept with `stored`, so that records can be bounded by them. The
    /// size of the value itself by default.
    fn size_of(&self, stored: &Self::Stored) -> usize {
        std::mem::size_of_val(stored)
    }

    /// A failure in few words, to be kept where the whole is too large: its kind and its code, and
    /// the beginning of its message. `None` where there is none: a duplicate gets the code alone.
    fn shorten(&self, _stored: &Self::Stored) -> Option<Self::Stored> {
        None
    }

    /// The answer for a duplicate.
    fn load(&self, stored: Self::Stored, replay: Replay) -> Res;

    /// Notes on the answer that it could not be recorded.
    fn note_unrecorded(&self, _: &mut Res) {}
}
