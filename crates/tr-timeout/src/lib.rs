//! Bounds one attempt of a tool call, and the whole call.
//!
//! [`AttemptTimeout`] ends an attempt that takes too long, its wait for readiness included.
//! [`Deadline`] ends a call with all its attempts and backoffs at its deadline. The error names the
//! innermost of them that fired.
//!
//! # When to use
//!
//! [`AttemptTimeoutLayer`] directly around the tool, inside retry and breaker: each attempt gets
//! its own time, and timeouts count as failures. [`DeadlineLayer`] outside of retry; with records,
//! inside of those.
//!
//! ```text
//! DeadlineLayer ─ retry ─ breaker ─ AttemptTimeoutLayer ─ tool
//! └────────── whole call ────────┘  └─── one attempt ───┘
//! ```
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//! use tower::{ServiceBuilder, ServiceExt};
//! use tr_core::{BoxError, Params, Ran, ToolCall, ToolOutcome};
//! use tr_timeout::{AttemptTimedOut, AttemptTimeoutLayer, DeadlineLayer};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), BoxError> {
//! let tool = ServiceBuilder::new()
//!     .layer(DeadlineLayer::builder().per_call(Duration::from_secs(120)).build()?)
//!     .layer(AttemptTimeoutLayer::builder().after(Duration::from_secs(30)).build()?)
//!     .service_fn(|_: ToolCall| async {
//!         tokio::time::sleep(Duration::from_secs(3_600)).await;
//!         Ok::<_, BoxError>(ToolOutcome::default())
//!     });
//!
//! let call = ToolCall::new("flight_search", Params::empty_object());
//! let error = tool.oneshot(call).await.unwrap_err();
//! assert_eq!(error.to_string(), "Tool timeout after 30s");
//! assert_eq!(error.downcast_ref::<AttemptTimedOut>().unwrap().ran(), Ran::Unknown);
//! # Ok(())
//! # }
//! ```
//!
//! # Defaults
//!
//! An attempt has 10 s ([`AttemptTimeoutLayer::default`]) unless its request sets its own timeout. A
//! call is limited by its own deadline only; [`DefaultDeadlineLayer`], outside of every layer that
//! waits, sets one on calls that have none.
//!
//! # Streams
//!
//! An answer in chunks ([`tr_core::chunks`]) has an attempt's time for its first chunk. From then on the
//! idle timeout holds ([`AttemptTimeoutBuilder::idle`]; by default as long as an attempt's time): how
//! long the next chunk may take. It runs only while the consumer waits for that chunk, so a slow
//! consumer does not end its tool. The deadline holds for the whole stream.
//!
//! # Errors
//!
//! [`AttemptTimedOut`] and [`DeadlineExceeded`], both transient with the code `timeout`. They say
//! [`Ran::No`](tr_core::Ran::No) if the inner service had not been called yet, else
//! [`Ran::Unknown`](tr_core::Ran::Unknown): what was dropped may have done its work. Errors of the
//! inner service pass unchanged.
//!
//! From outside, a deadline only knows that the next layer was called. So the deadline is part of
//! the call, and a layer that waits while nothing is in flight ends the wait at the deadline itself
//! and reports [`Ran::No`](tr_core::Ran::No): [`AttemptTimeout`] while its tool is not ready, a retry
//! between two attempts.
//!
//! # Cost
//!
//! A tool that answers at its first poll costs no timer, no allocation, and no clock read unless its
//! call has a deadline or `per_call` is set. A `per_call` that is earlier than the call's own
//! deadline copies the call's parts if they are shared. With an enabled observer, each call costs an
//! allocation for the description of the call, because the request is gone when the timeout fires.
//!
//! # Knows nothing of
//!
//! retries, breakers, turns, and any way to stop a tool other than dropping its future.
mod attempt;
mod config;
mod deadline;
mod default_deadline;
mod error;
pub mod future;
mod observer;
mod stream;
mod wait;

pub use self::{
    attempt::{AttemptTimeout, AttemptTimeoutBuilder, AttemptTimeoutLayer},
    deadline::{Deadline, DeadlineBuilder, DeadlineLayer},
    default_deadline::{DefaultDeadline, DefaultDeadlineLayer},
    error::{AttemptTimedOut, DeadlineExceeded},
};
pub use tr_core::ConfigError;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
