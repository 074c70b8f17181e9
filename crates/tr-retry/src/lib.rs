//! Tries a tool call again where that is safe.
//!
//! # When to use
//!
//! Outside the breaker and the attempt timeout, so that each attempt passes through both, and
//! inside deduplication, so that one claim covers all attempts.
//!
//! A failed attempt is retried if the failure is *transient* and a repeat is safe: the tool did not
//! run, or it is read-only or idempotent, or the call or the manifest declares a repeat safe. A
//! mutating call that may have run is never retried otherwise.
//!
//! # Example
//!
//! ```
//! use std::sync::atomic::{AtomicU32, Ordering};
//! use tower::{ServiceBuilder, ServiceExt};
//! use tr_core::{BoxError, Effect, Params, ToolCall, ToolOutcome};
//! use tr_retry::RetryLayer;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), BoxError> {
//! static ASKED: AtomicU32 = AtomicU32::new(0);
//! let tool = ServiceBuilder::new()
//!     .layer(RetryLayer::default())
//!     .service_fn(|_: ToolCall| async {
//!         match ASKED.fetch_add(1, Ordering::Relaxed) {
//!             0 | 1 => Err(BoxError::from("connection reset by peer")),
//!             _ => Ok(ToolOutcome::default()),
//!         }
//!     });
//!
//! let search = ToolCall::new("flight_search", Params::empty_object()).effect(Effect::ReadOnly);
//! let outcome = tool.oneshot(search).await?;
//! assert_eq!(outcome.retried().len(), 2);
//! # Ok(())
//! # }
//! ```
//!
//! # Defaults
//!
//! [`RetryLayer::default`]: 4 attempts, delays drawn from 0 up to 200, 400 and 800 ms, no
//! attempt later than 30 s after the first; no budget. [`RetryConfig`] has the other presets.
//!
//! # What stops it
//!
//! [`RetryStop`] lists all reasons; [`decide`] is the decision itself, a pure function. Besides a
//! permanent failure and an unsafe repeat:
//!
//! - *time*: no attempt starts after the call's deadline or `max_elapsed`. A `Retry-After` that
//!   reaches past either fails the call at once; the error carries the hint.
//! - *the wait itself*: a call whose deadline passes or which is [cancelled](tr_policy::Cancellation)
//!   during a backoff ends at once with the last attempt's error: nothing is in flight then.
//! - *an open breaker*: its refusal ends the retries without another delay.
//! - *an inner retry*: a failure that is marked as exhausted is not retried again.
//! - *an outer retry*: a call that is itself a retry gets one attempt here. An HTTP request says so in
//!   `x-retry-attempt` or the header of another client; `docs/retry.md` lists them.
//! - *the budget*: a [`Budget`] limits retries to a share of the successes, for one tool or a group.
//!
//! # Errors
//!
//! [`RetryExhausted`], once there were retries or time or budget forbade the first one. It says
//! whether the tool ran in *any* attempt. A call whose only attempt may not be retried keeps its own
//! error. A response that is a failure (an HTTP 503, an outcome with an error) is never turned
//! into an error: the last one is returned, with the retries noted. The exception: if the next attempt
//! cannot start after the backoff (deadline, or the inner service failed), the response is gone, and
//! the error has its code and verdict.
//!
//! # Panics
//!
//! A backoff needs a tokio runtime with its timer, and panics without one.
//!
//! # Cost
//!
//! A call whose first attempt succeeds costs a copy of the request and a clone of the inner service:
//! no allocation, no random number, and a clock read only if the attempt is pending. From then on a
//! first attempt's time counts: what it does before it first waits is in no latency. The settings
//! have one reference count, sharded by thread.
//!
//! # Knows nothing of
//!
//! other layers, except for the codes of their errors, and the calls of before: it keeps no state
//! beyond the call.
mod attempts;
mod bucket;
mod budget;
mod config;
mod decide;
mod error;
pub mod future;
mod layer;
mod rng;
mod service;
mod shared;
mod sync;

pub use self::{
    budget::{Budget, BudgetBuilder},
    config::{Anchor, RetryConfig},
    decide::{Decision, Failed, RetryStop, decide},
    error::RetryExhausted,
    layer::{Builder, RetryLayer},
    rng::Rng,
    service::Retry,
};
pub use tr_policy::ConfigError;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
