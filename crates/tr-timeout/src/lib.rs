//! Bounds one attempt of a tool call, and the whole call.
//!
//! [`AttemptTimeout`] ends an attempt that takes too long, its wait for readiness included.
//! [`Deadline`] ends a call, with all its attempts and backoffs, when its answer is of no use any
//! more. The innermost that fires names itself in the error.
//!
//! # When to use
//!
//! [`AttemptTimeoutLayer`] directly around the tool, inside retry and breaker: each attempt gets
//! its own time, and timeouts count as failures. [`DeadlineLayer`] outermost.
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
//! An attempt has 10 s ([`AttemptTimeoutLayer::default`]) unless its request says
//! otherwise. A call has until its own deadline, if it has one; [`DefaultDeadlineLayer`], outside of
//! everything that waits, gives one to calls that have none.
//!
//! # Errors
//!
//! [`AttemptTimedOut`] and [`DeadlineExceeded`], both transient with the code `timeout`. They say
//! [`Ran::No`](tr_core::Ran::No) if the inner service had not been called yet, else
//! [`Ran::Unknown`](tr_core::Ran::Unknown): what was dropped may have done its work. Errors of the
//! inner service pass through untouched.
//!
//! A deadline can be told from outside only that the layer next to it was called. So it is told
//! inward, with the call, and whoever waits with nothing in flight ends at it by himself and says
//! so: [`AttemptTimeout`] while its tool is not ready, a retry between two attempts.
//!
//! # Cost
//!
//! A tool that answers at its first poll costs no timer and no allocation, and no look at the
//! clock unless its call has a deadline or an allowance. An allowance (`per_call`) that is sooner
//! than the call's own deadline costs a copy of the call's parts if somebody shares them. With an
//! observer that is enabled, each call is noted in an allocation of its own, because its request is
//! gone when time runs out.
//!
//! # Knows nothing of
//!
//! retries, breakers, turns, and of how a tool could be stopped other than by dropping its future.
mod attempt;
mod config;
mod deadline;
mod default_deadline;
mod error;
pub mod future;
mod observer;
mod text;

pub use self::{
    attempt::{AttemptTimeout, AttemptTimeoutBuilder, AttemptTimeoutLayer},
    config::ConfigError,
    deadline::{Deadline, DeadlineBuilder, DeadlineLayer},
    default_deadline::{DefaultDeadline, DefaultDeadlineLayer},
    error::{AttemptTimedOut, DeadlineExceeded},
};
