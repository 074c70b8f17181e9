//! Breaks loops of tool calls.
//!
//! A model that calls `read({})`, hears that `path` is missing, and calls `read({})` again does so
//! until its context is full. This layer watches the failures of each turn and does three things:
//!
//! - A failure that will repeat (a parameter is missing or of the wrong type) is told so:
//!   `[NON-RETRYABLE]`.
//! - The second failure of the same call with the same error carries `[LOOP DETECTED]`, and the
//!   third such call is not executed.
//! - The fifth failure of any kind in one turn carries `[TOOL ERROR LIMIT]`, and no further call of
//!   that turn is executed.
//!
//! Successes neither count nor reset. A call that was not executed does not count. Where nobody
//! says when a turn begins, the fifth failure only warns (`[TOOL ERRORS]`), and nothing is refused
//! but a call that is identical to failed ones; see [`Mode`]. With [`Signals`], which are off until
//! asked for, loops in which nothing fails are seen too: they are warned of first and refused later.
//!
//! # When to use
//!
//! Around whatever answers a model, outside a cache of answers: replayed failures count too.
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
//! A turn is what the call says it is; see [`LoopOf`](tr_core::LoopOf). Calls that name a session
//! but no turn share one until [`Turns::begin`] is called. Until somebody calls it, a counted
//! failure expires after 60 s ([`Builder::memory`]) and at the next success of its tool. Calls that
//! name neither share one per layer.
//!
//! # Errors
//!
//! [`LoopDetected`] and [`ToolErrorLimit`]: the call was not executed. An error of the inner
//! service that we add a note to becomes a [`Noted`] with that error as its source.
//!
//! # Knows nothing of
//!
//! retries, breakers, records, transcripts; it never looks into params beyond the names and types
//! that the attribution log shows, and keeps hashes of answers, never answers.
mod attribution;
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
    config::{Builder, ConfigError, Mode},
    error::{LoopDetected, Noted, ToolErrorLimit},
    future::LoopGuardFuture,
    layer::LoopGuardLayer,
    log_file::{FileLog, LOG_PATH},
    message::{NON_RETRYABLE, loop_detected, tool_error_limit, tool_errors},
    service::LoopGuard,
    signals::Signals,
    turns::Turns,
};
