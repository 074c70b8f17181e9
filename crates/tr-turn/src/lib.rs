//! Turns of tool calls that always end: a graph of calls, run over any tool service.
//!
//! An agent's turn rarely needs one tool. It searches flights and hotels at once, compares when
//! both are there, and books. When one of them fails, somebody has to decide what that means for
//! the others, and to tell the user. [`Turns`] runs such a [`Plan`]: independent calls go on,
//! dependents of a failed call are skipped or get a default value, an alternative takes over, and
//! at the turn's timeout there is a [`Report`] with what there is.
//!
//! # When to use
//!
//! Around a tool service that knows how to call one tool well: the stack of [`tool_reliability`],
//! whose retries, breakers, records and timeouts a turn builds on. Any other
//! `Service<ToolCall, Response = ToolOutcome>` does too.
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
//! [`decide`](decide::decide) is one pure function. In this order: another tool takes over, unless
//! nobody knows whether the failed one has changed something; a default value goes to the dependents; the call is
//! left out; the user is told as well, if the error is permanent, if nobody knows whether a tool
//! that changes something ran, or if the turn cannot do without the call. Retries are the stack's,
//! and over by then.
//!
//! # Time
//!
//! The turn, each call and each attempt have their limits ([`Limits`]), and the innermost that
//! fires names itself. A call carries the nearest deadline inward, so no retry starts past it. A
//! turn ends at its timeout whatever its tools do, as long as they yield.
//!
//! # Cancellation
//!
//! [`Turn::canceller`] withdraws calls by their ids, or the turn. Dropped, a turn drops its calls:
//! it polls them itself and spawns nothing. A stack with records runs a call that was dropped to
//! its end, for the sake of the record; [`CancelLayer`] around the bare tool makes a withdrawal
//! reach that run too.
//!
//! # Errors
//!
//! [`PlanError`], before anything starts. A turn itself never fails: each call's end stands in its
//! [`CallReport`], with whether its tool ran.
//!
//! # Knows nothing of
//!
//! models, transcripts, transports. It stores nothing, and retries nothing itself.
pub mod cancel;
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
    cancel::{CancelLayer, Canceller},
    decide::{Decision, Recovery},
    plan::{Call, Draft, Limits, Plan, PlanError, Tools},
    recorder::Recorder,
    report::{CallReport, CutShort, Failure, Report},
    trace::{Entry, Fact, Outcome, Trace},
    turn::{Turn, Turns},
    watch::{TurnInfo, Watch},
};
