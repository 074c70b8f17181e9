//! Keys of requests for deduplication, and the recording of responses.
use crate::Replay;

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
    /// The session in which the record is found among equal ones, where that is not the request's.
    pub session: Option<&'r str>,
}

/// A key that cannot be used. The tool did not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidKey(Box<str>);

impl InvalidKey {
    /// Says what is wrong and what to do.
    #[must_use]
    pub fn new(why: impl Into<Box<str>>) -> Self {
        Self(why.into())
    }
}

/// How a response is recorded and replayed. Apart from [`ResponsePolicy`](super::ResponsePolicy),
/// since what is kept must be `Clone` and `Send`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not define how to record a `{Res}`",
    label = "no `StoreResponse<{Res}>` here",
    note = "write `impl tr_core::StoreResponse<{Res}> for {Self}` beside your response type",
    note = "or give the layer a policy that does: `.policy(NamedPolicy::new(\"my_tool\").stored_as_json())` (needs serde's impls), or, for a type of another crate, one of your own: `.policy(MyPolicy)`"
)]
pub trait StoreResponse<Res> {
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
}
