//! How layers read requests and responses.
//!
//! Every layer takes a policy, by default [`DefaultPolicy`]. A policy implements two traits:
//! [`RequestPolicy`] for the type of the requests, of which only [`key`](RequestPolicy::key) has no
//! default, and [`ResponsePolicy`] for the type of the responses, all of whose methods have
//! defaults. What would force a bound on types that don't need it is apart, each for one layer:
//! [`CloneRequest`] for retry, and those of `tr-core` for idempotency, loop guard and integrity.
//!
//! [`DefaultPolicy`] implements them, with the feature `http`, for `http::Request`; `tr-core` has its answers
//! for tool calls. For a type of your own, write `impl RequestPolicy<MyRequest> for DefaultPolicy`
//! beside the type, or give a layer a policy of your own with `.policy(MyPolicy)`. Policies are
//! small `Copy` types.
//!
//! ```
//! use tr_policy::{DefaultPolicy, KeyRef, RequestPolicy, ResponsePolicy};
//!
//! struct Lookup { host: String }
//! struct Address(std::net::IpAddr);
//!
//! impl RequestPolicy<Lookup> for DefaultPolicy {
//!     fn key<'r>(&self, lookup: &'r Lookup) -> KeyRef<'r> {
//!         KeyRef::new(&lookup.host)
//!     }
//! }
//! impl ResponsePolicy<Address> for DefaultPolicy {}
//! ```
//!
//! A method's default means "unknown": the layer uses its own settings.
//!
//! Often no impl is needed: [`NamedPolicy`] is for requests of any type, and [`PolicyExt`] changes one
//! answer of a policy.
//!
//! ```
//! use tr_policy::{DefaultPolicy, NamedPolicy, PolicyExt};
//!
//! // HTTP requests to a model: a repeat of a POST costs tokens and changes nothing.
//! let models = DefaultPolicy.idempotent();
//! // Requests of any type; an answer of 0 means: try again.
//! let quota = NamedPolicy::new("quota").read_only().transient_response(|left: &u32| *left == 0);
//! # let _ = (models, quota);
//! ```
//!
//! # When the compiler says that trait bounds were not satisfied
//!
//! If a trait is not implemented, the service has no `ready()` and no `oneshot(request)`, and the
//! error does not name the trait. Name the request type, and it does:
//! `ServiceExt::<MyRequest>::ready(&mut service)`.
mod adapted;
mod change;
mod default_policy;
#[cfg(feature = "http")]
mod http;
mod idempotency;
mod named;
mod request;
mod response;

pub use self::{
    adapted::{Adapted, KeyFn, Keyed, PolicyExt, WithEffectBy, WithFailure, WithPermanentError},
    change::{
        DedupeKeyBy, EffectBy, JudgeError, JudgeResponse, KeyBy, Own, StoredAsJson, WithEffect,
    },
    default_policy::DefaultPolicy,
    idempotency::{Derive, InvalidKey, RecordRef},
    named::NamedPolicy,
    request::{CloneRequest, RequestPolicy},
    response::{End, ResponsePolicy},
};
