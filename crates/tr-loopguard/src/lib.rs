//! Breaks loops of tool calls.
//!
//! A model that calls `read({})`, gets the error that `path` is missing, and calls `read({})`
//! again, may do so until its context is full. This layer counts the failures of each turn and does
//! three things:
//!
//! - It adds `[NON-RETRYABLE]` to a failure that will repeat (a parameter is missing or of the
//!   wrong type).
//! - It adds `[LOOP DETECTED]` to the second failure of the same call with the same error, and does
//!   not execute the third such call.
//! - It adds `[TOOL ERROR LIMIT]` to the fifth failure of any kind in one turn, and executes no
//!   further call of that turn.
//!
//! Successes neither count nor reset. A call that was not executed does not count. Where the start
//! of a turn is not known, the fifth failure only adds a warning (`[TOOL ERRORS]`), and only a call
//! is refused that is identical to ones that failed because of their args alone; see [`Mode`].
//! [`Signals`], off by default, also detect loops without failures: the model is warned first, and
//! calls are refused later.
//!
//! # When to use
//!
//! Around the service that answers a model, outside a cache of responses: replayed failures count
//! too.
//!
//! # Example
//!
//! ```
//! use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
//! use tr_core::{BoxError, Params, ToolCall, ToolError, ToolOutcome};
//! use tr_loopguard::{LoopGuardLayer, LoopDetected};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let mut read = ServiceBuilder::new().layer(LoopGuardLayer::default()).service(service_fn(
//!     |_: ToolCall| async {
//!         let error = ToolError::new("invalid_params", "Missing required parameter: path");
//!         Ok::<_, BoxError>(ToolOutcome::failure(error))
//!     },
//! ));
//! let call = ToolCall::new("read", Params::empty_object()).session("s").turn("t");
//! for _ in 0..2 {
//!     read.ready().await.unwrap().call(call.clone()).await.unwrap();
//! }
//! let error = read.ready().await.unwrap().call(call).await.unwrap_err();
//! assert!(error.is::<LoopDetected>());
//! # }
//! ```
//!
//! # Turns
//!
//! The call names its turn; see [`LoopPolicy`](tr_core::LoopPolicy). Calls that name a session but no turn
//! share one until [`Turns::begin`] is called. Without a call of [`Turns::begin`], a counted
//! failure expires after 60 s ([`Builder::memory`]) and at the next success of its tool. Calls that
//! name neither share one turn per layer.
//!
//! # Errors
//!
//! [`LoopDetected`], [`ToolErrorLimit`] and [`ToolCallLimit`]: the call was not executed. An error of the inner
//! service with an added note becomes a [`Noted`] with that error as its source.
//!
//! # Knows nothing of
//!
//! retries, breakers, records, transcripts. Of params it reads only the names and types that the
//! attribution log shows, and it keeps hashes of responses, never responses.
mod attribution;
mod call;
mod call_limit;
mod compare;
mod config;
mod error;
mod future;
mod layer;
mod log_file;
mod message;
mod service;
mod signals;
mod track;
mod turn;
mod turns;
mod watch;

pub use self::{
    attribution::{Attribution, AttributionLog},
    config::Mode,
    error::{LoopDetected, Noted, ToolCallLimit, ToolErrorLimit},
    future::LoopGuardFuture,
    layer::{Builder, LoopGuardLayer},
    log_file::{FileLog, LOG_PATH},
    message::{NON_RETRYABLE, loop_detected, tool_error_limit, tool_errors},
    service::LoopGuard,
    signals::Signals,
    turns::Turns,
};
pub use tr_core::ConfigError;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
