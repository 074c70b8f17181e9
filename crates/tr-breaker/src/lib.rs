//! Stops calling a tool that keeps failing.
//!
//! # When to use
//!
//! Inside retry, so that an open breaker ends the retries, and outside the attempt timeout, so that
//! timeouts count as failures and probes end. Each tool has a breaker; if the params name an origin,
//! each pair of tool and origin has one. A call's breaker hint selects one for a dependency or for all
//! calls instead.
//!
//! # Example
//!
//! ```
//! use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
//! use tr_breaker::{BreakerLayer, CircuitOpen};
//! use tr_core::{BoxError, BreakerState, Params, ToolCall, ToolOutcome};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), BoxError> {
//! let layer = BreakerLayer::builder().consecutive_failures(5).build()?;
//! let registry = layer.registry().clone();
//! let mut tool = ServiceBuilder::new().layer(layer).service(service_fn(|_: ToolCall| async {
//!     Err::<ToolOutcome, BoxError>("connection refused".into())
//! }));
//!
//! let call = ToolCall::new("flight_search", Params::empty_object());
//! for _ in 0..5 {
//!     let failed = tool.ready().await?.call(call.clone()).await;
//!     assert_eq!(failed.unwrap_err().to_string(), "connection refused");
//! }
//!
//! let breaker = registry.get(call.parts().tool.key()).expect("made by the first call");
//! assert_eq!(breaker.state(), BreakerState::Open);
//! let refused = tool.ready().await?.call(call).await.unwrap_err();
//! let open = refused.downcast::<CircuitOpen>()?;
//! assert_eq!(open.last_failure(), Some("connection refused"));
//! # Ok(()) }
//! ```
//!
//! # With `http` requests
//!
//! With the feature `http` of `tr-policy` or `tr-core`, it also works on `http::Request`: one breaker for each scheme,
//! host and port, failures by the status.
//!
//! ```
//! use http::{Request, Response, StatusCode};
//! use tower::{Layer, ServiceExt, service_fn};
//! use tr_breaker::{BreakerLayer, CircuitOpen};
//! use tr_policy::BoxError;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), BoxError> {
//! let client = service_fn(|_: Request<String>| async {
//!     let unavailable = Response::builder().status(StatusCode::SERVICE_UNAVAILABLE);
//!     Ok::<_, BoxError>(unavailable.body(String::new())?)
//! });
//! let client = BreakerLayer::builder().consecutive_failures(3).build()?.layer(client);
//!
//! let get = || Request::post("http://api.example/flights").body(String::new());
//! for _ in 0..3 {
//!     // Responses pass unchanged, and count by their status.
//!     assert_eq!(client.clone().oneshot(get()?).await?.status(), 503);
//! }
//! let refused = client.clone().oneshot(get()?).await.unwrap_err().downcast::<CircuitOpen>()?;
//! assert_eq!(refused.breaker(), "http://api.example");
//! assert!(refused.retry_after().is_some());
//! # Ok(()) }
//! ```
//!
//! # States
//!
//! | state | calls | leaves it |
//! |---|---|---|
//! | `CLOSED` | pass and are counted | at 5 failures in a row, or 50 % of the last 20 calls if there are 10, all within 120 s |
//! | `OPEN` | are refused | 30 s later, by the clock |
//! | `HALF_OPEN` | one at a time passes as a probe | to `CLOSED` after 2 successes, to `OPEN` at a failure or when a probe's lease ends |
//! | `FORCED_OPEN` | are refused | by [`BreakerHandle::reset`] or [`BreakerHandle::set_mode`] |
//!
//! A transient end counts as a failure, timeouts and rate limits included. A permanent one does not,
//! because the tool answered: it resets the failures in a row and is not part of the rate. A cancelled
//! or dropped call, or one that panics, does not count: put timeouts inside. A call that was admitted
//! before the last change of state does not count when it ends.
//!
//! # Errors
//!
//! [`CircuitOpen`], when a call is refused: the tool did not run. The inner service's errors pass
//! unchanged.
//!
//! # Defaults
//!
//! [`Builder`] lists them; [`BreakerLayer::default`] tolerates more failures of read-only
//! tools and fewer of mutating ones.
//!
//! # Features
//!
//! - `serde`: a [`Snapshot`] can be serialized.
//!
//! # Knows nothing of
//!
//! other layers, stores, exporters, other processes. It spawns nothing and never sleeps.
mod builder;
mod circuit;
mod clock;
pub mod error;
mod fast_path;
mod first;
pub mod future;
mod handle;
mod keyed;
mod layer;
mod observers;
mod ramp;
mod registry;
mod service;
mod settings;
mod shortened;
mod snapshot;
mod sync;
mod window;

pub use self::{
    builder::Builder,
    error::CircuitOpen,
    handle::{BreakerHandle, Counts, Registry},
    layer::BreakerLayer,
    service::Breaker,
    settings::Mode,
    snapshot::Snapshot,
};
pub use tr_policy::ConfigError;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
