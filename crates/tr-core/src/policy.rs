//! How layers read requests and responses.
//!
//! Every layer takes a policy, by default [`DefaultPolicy`]. A policy implements two traits:
//! [`RequestPolicy`] for the type of the requests, of which only [`key`](RequestPolicy::key) has no
//! default, and [`ResponsePolicy`] for the type of the responses, all of whose methods have
//! defaults. What would force a bound on types that don't need it is apart, each for one layer:
//!
//! | trait | layer |
//! |---|---|
//! | [`CloneRequest`] | retry |
//! | [`StoreResponse`] | idempotency |
//! | [`LoopPolicy`] | loop guard |
//! | [`TranscriptPolicy`] | integrity |
//!
//! [`DefaultPolicy`] implements all of them for [`ToolCall`](crate::ToolCall) ([`LoopPolicy`] with
//! the feature `keys`) and, with the feature `http`, the two policies and [`CloneRequest`] for
//! `http::Request`. For a type of your own, write `impl RequestPolicy<MyRequest> for DefaultPolicy`
//! beside the type, or give a layer a policy of your own with `.policy(MyPolicy)`. Policies are
//! small `Copy` types.
//!
//! ```
//! use tr_core::{DefaultPolicy, KeyRef, RequestPolicy, ResponsePolicy};
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
//! use tr_core::{DefaultPolicy, NamedPolicy, PolicyExt};
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
mod as_json;
mod loops;
mod store;
mod tool_call;
#[cfg(feature = "keys")]
mod tool_loop;
mod tool_outcome;
mod transcript;

pub use self::{
    as_json::AsJson,
    loops::{LoopPolicy, LoopRef, TurnRef},
    store::StoreResponse,
    transcript::{Answer, CycleRef, TranscriptPolicy},
};
pub use tr_policy::policy::*;
