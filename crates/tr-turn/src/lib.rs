//! Runs a turn as a graph of tool calls over any tool service, with a bounded time and a report at
//! the end.
//!
//! An agent's turn rarely needs one tool. It searches flights and hotels at once, compares both
//! results, and books. When one call fails, the turn has to decide what that means for the others.
//! [`Turns`] runs such a [`Plan`]: independent calls go on, dependents of a failed call are skipped
//! or get a default value, an alternative tool runs instead, and the [`Report`] at the turn's
//! timeout has the results so far.
//!
//! # When to use
//!
//! Around a service that calls one tool: the stack of [`tool_reliability`], with its retries,
//! breakers, records and timeouts, or any other `Service<ToolCall, Response = ToolOutcome>`.
//!
//! # Example
//!
//! ```
//! use serde_json::json;
//! use std::sync::Arc;
//! use tool_reliability::ToolStack;
//! use tower::service_fn;
//! use tr_core::{BoxError, Effect, ToolCall, ToolOutcome};
//! use tr_turn::{Call, Draft, Recorder, Tools, Turns};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), BoxError> {
//! let recorder = Recorder::default();
//! let stack = ToolStack::builder()
//!     .hook(recorder.clone())
//!     .observer(Arc::new(recorder.clone()))
//!     .build()?;
//! let tools = stack.service(service_fn(|call: ToolCall| async move {
//!     match call.parts().tool.label() {
//!         "flight_search" => Ok(ToolOutcome::success(json!([{"id": "LH 1", "price": 99}]))),
//!         "book" => Ok(ToolOutcome::success(call.parts().params.clone())),
//!         _ => Err(BoxError::from("Invalid city code: LX")),
//!     }
//! }));
//!
//! let plan = Draft::new("trip-1")
//!     .call(Call::new("flight_search").effect(Effect::ReadOnly))
//!     .call(Call::new("hotel_search").effect(Effect::ReadOnly))
//!     .call(Call::new("book").params(json!({"flight": {"$from": "flight_search", "at": "/0/id"}})))
//!     .check(&Tools::any())?;
//! let report = Turns::new(tools).recorder(recorder).run(plan).await;
//!
//! assert_eq!(report.summary, "Completed flight search and book, but hotel search failed");
//! assert_eq!(report.call("book").unwrap().content().unwrap().get(), r#"{"flight":"LH 1"}"#);
//! for call in report.escalated() {
//!     println!("{} needs your attention", call.name);
//! }
//! print!("{}", report.trace);
//! # Ok(()) }
//! ```
//!
//! # What a failure means
//!
//! [`decide`](decide::decide) is one pure function. In this order: an alternative tool runs, unless
//! the failed one may have changed something; the dependents get a default value; the call is
//! skipped. It is also escalated to the user if the error is permanent, if a tool that changes
//! something may have run, or if the call is required. The stack makes its retries before that.
//!
//! # Time
//!
//! The turn, each call and each attempt have their limits ([`Limits`]); the error names the
//! innermost limit that fired. A call carries the nearest deadline to the inner layers, so no retry
//! starts past it. A turn ends at its timeout whatever its tools do, as long as they yield.
//!
//! # Cancellation
//!
//! [`Turn::canceller`] cancels calls by their ids, or the turn. A turn that is dropped drops its
//! calls: it polls them itself and spawns nothing. A stack with records runs a dropped call to its
//! end in order to record it; a cancellation ends that run too. A stack that you build from
//! the layers needs [`CancelLayer`](tool_reliability::cancel::CancelLayer) around the tool for that.
//!
//! # Errors
//!
//! [`PlanError`], before any call starts. A turn itself never fails: each call's end is in its
//! [`CallReport`], with whether its tool ran.
//!
//! # Knows nothing of
//!
//! models, transcripts, transports. It stores nothing, and retries nothing itself.
mod cancel;
mod core;
pub mod decide;
mod error;
mod json;
pub mod plan;
mod planner;
mod recorder;
mod report;
mod running;
mod summary;
mod template;
pub mod trace;
mod turn;
mod watch;

pub use self::{
    cancel::Canceller,
    decide::{Decision, Recovery},
    plan::{Call, Draft, Limits, Plan, PlanError, Tools},
    recorder::Recorder,
    report::{CallReport, CutShort, Failure, Report},
    trace::{Entry, Fact, Outcome, Trace},
    turn::{Turn, Turns},
    watch::{TurnInfo, Watch},
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
