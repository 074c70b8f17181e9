//! A policy for requests and responses of any type.
use super::{
    request::{CloneRequest, RequestPolicy},
    response::ResponsePolicy,
};
use crate::KeyRef;

/// The policy for requests of any type, all under one name.
///
/// # When to use
///
/// Around a service with types of its own, instead of impls for them. All requests share the breaker, the
/// budget and the counters of the name; they are mutating, without a deadline or a key; they are copied by
/// `Clone`. Each response is a success, and an error is classified by its type
/// ([`classify::error`](crate::classify::error)): its message is not read, so that a "404 not found" in words
/// is transient like any error that nothing is known of. What differs is said with the methods of
/// [`PolicyExt`](super::PolicyExt).
///
/// Responses that are bytes or text (`Vec<u8>`, `String`, `bytes::Bytes`) can be recorded as they are; for
/// other types, [`stored_as_json`](super::PolicyExt::stored_as_json) records them by serde.
///
/// ```
/// use tr_policy::{Effect, NamedPolicy, PolicyExt, RequestPolicy};
///
/// struct Lookup { host: String }
///
/// let policy = NamedPolicy::new("dns").read_only();
/// let lookup = Lookup { host: "example.org".into() };
/// assert_eq!((policy.key(&lookup).name, policy.effect(&lookup)), ("dns", Effect::ReadOnly));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct NamedPolicy {
    name: &'static str,
}

impl NamedPolicy {
    /// A policy that names all requests `name`.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name }
    }
}

impl<Req> RequestPolicy<Req> for NamedPolicy {
    fn key<'r>(&self, _: &'r Req) -> KeyRef<'r> {
        KeyRef::new(self.name)
    }

    fn single_key(&self) -> Option<KeyRef<'_>> {
        Some(KeyRef::new(self.name))
    }
}

impl<Res> ResponsePolicy<Res> for NamedPolicy {}

impl<Req: Clone> CloneRequest<Req> for NamedPolicy {
    fn clone_request(&self, req: &Req) -> Option<Req> {
        Some(req.clone())
    }
}
