//! Tries a tool call again where that is safe.
//!
//! # When to use
//!
//! Outside the breaker and the attempt timeout, so that each attempt passes through both, and
//! inside deduplication, so that one claim covers all attempts.
//!
//! A failed attempt is tried again if it is *transient* and a repeat can do no harm: the tool did
//! not run, or it only reads, or a repeat changes nothing more, or somebody said that a repeat is
//! safe. A mutating call that may have run is never repeated of our own accord.
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
//! attempt later than 30 s after the first; no budget. The other presets are those of
//! [`RetryConfig`].
//!
//! # What stops it
//!
//! [`RetryStop`] lists all reasons; [`decide`] is the decision itself, a pure function. Besides a failure
//! that is permanent and a repeat that could do harm:
//!
//! - *time*: no attempt starts past the call's deadline or the policy's `max_elapsed`. A
//!   `Retry-After` that reaches past either fails at once and hands the hint on.
//! - *the wait itself*: a call whose deadline passes, or which is
//!   [taken back](tr_core::Cancellation), while it waits for its next attempt ends at that moment, by
//!   what its attempts said: nothing is in flight then.
//! - *an open breaker*: its refusal ends retrying, without another delay.
//! - *a retry further in*: what is marked as exhausted is not multiplied.
//! - *a retry further out*: a call that says it is not the first attempt gets one attempt here. An
//!   HTTP request says so in `x-retry-attempt` or what other clients use instead, which `docs/retry.md`
//!   lists with how each counts.
//! - *the budget*: a [`Budget`] holds retries to a share of successes, for one tool or a group.
//!
//! # Errors
//!
//! [`RetryExhausted`], once there were retries or time or budget forbade the first one. It says
//! whether the tool ran in *any* attempt. A call whose only attempt may not be retried keeps its own
//! error. A response that is a failure (an HTTP 503, an outcome with an error) is never turned
//! into an error: the last one is returned, and is told of the retries. Only if the attempt after it
//! was waited for and then cannot start (too late, or the inner service is gone), its code and verdict
//! are all that is left of it.
//!
//! # Panics
//!
//! A backoff needs a tokio runtime with its timer, and panics without one.
//!
//! # Cost
//!
//! A call that succeeds at once costs a copy of the request and a clone of the inner service: no
//! allocation, no randomness, and a look at the clock only if it has to wait. What further attempts
//! need is made when one fails. Whatever differs from the defaults (a policy, a budget, an observer)
//! is shared, which adds a reference count that threads share by stripe only.
//!
//! # Knows nothing of
//!
//! other layers but by the codes of their errors, and of what a call did: it stores nothing beyond
//! the call.
mod attempts;
mod bucket;
mod budget;
mod checks;
mod config;
mod decide;
mod error;
pub mod future;
mod layer;
mod rare;
mod rng;
mod service;
mod shared;
mod sync;
mod wait;

pub use self::{
    budget::{Budget, BudgetBuilder},
    checks::ConfigError,
    config::{Anchor, RetryConfig},
    decide::{Decision, Failed, RetryStop, decide},
    error::RetryExhausted,
    layer::{Builder, RetryLayer},
    rng::Rng,
    service::Retry,
};
