//! A stack's service behind envelopes: bytes in, bytes out.
//!
//! # When to use
//!
//! Where calls come from another process as JSON, in the form of BS-TIM-5 v1.1 or of UTEE. Inside a
//! program, call the stack itself.
//!
//! # Example
//!
//! ```
//! use tool_reliability::{Envelopes, ToolStack};
//! use tower::{ServiceExt, service_fn};
//! use tr_core::{BoxError, Json, ToolCall, ToolOutcome};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
//! let clock = service_fn(async |_: ToolCall| {
//!     Ok::<_, BoxError>(ToolOutcome::success(Json::from_text("12")?))
//! });
//! let tools = Envelopes::new(ToolStack::default().service(clock));
//!
//! let request = r#"{"tool": "clock", "action": "", "params": {}, "requestId": "r-1"}"#;
//! let Ok(answer) = tools.clone().oneshot(request.into()).await;
//! assert_eq!(
//!     answer.to_json().get(),
//!     r#"{"requestId":"r-1","status":"success","result":12,"durationMs":0,"attempts":1,"fromCache":false}"#,
//! );
//!
//! // Every fault at once; nothing ran.
//! let Ok(answer) = tools.oneshot(r#"{"tool": 7, "params": []}"#.into()).await;
//! assert!(answer.is_refused());
//! # }
//! ```
//!
//! # What it does
//!
//! - It tells the two forms apart by their members, and answers in the form of the request.
//! - A request with faults gets an answer that lists all of them; nothing else happens: no attempt, no
//!   record, no hook, no breaker count.
//! - A request without an id gets a UUIDv7. `_utee` is taken out of the params.
//! - `timeout`, `retryPolicy`, `idempotencyKey`, trace ids and deadlines become the call's;
//!   [`EnvelopesLayer`] adds what a catalog declares of the tool.
//! - While a call with a `cancellationId` runs, a [`Canceller`] can end it.
//! - [`Envelopes::answers`] gives the answer in chunks to a request of UTEE with `preferStreaming`.
//! - The answer says how the call ended, whatever the end, with `attempts`, `durationMs`, `fromCache`,
//!   the spans and whether the tool ran. An answer of a tool that is an envelope is not wrapped again.
//!
//! # Whose call it is
//!
//! UTEE names no session and no actor. The program gives them with
//! [`EnvelopeRequest::on_behalf_of`]; what it says comes before what a request of BS-TIM-5 says of
//! itself. Keys and cancellation ids hold for tenant, workspace, session and actor. Requests without any
//! share one scope: that of the service.
//!
//! # Defaults
//!
//! 2 MiB for a request, 10,000 calls that can be cancelled at a time.
//!
//! # Errors
//!
//! The service has none: each request gets an answer. Beside the stack's errors these are
//! `invalid_envelope`, [`CallCancelled`](crate::cancel::CallCancelled) and [`TooManyCancellable`].
mod answer;
mod call;
mod future;
mod ids;
mod layer;
mod running;
mod service;
mod shared;
mod stream;

pub use self::{
    answer::Answer,
    call::EnvelopeRequest,
    future::EnvelopesFuture,
    layer::{EnvelopesBuilder, EnvelopesLayer},
    running::{Canceller, TooManyCancellable},
    service::Envelopes,
    stream::Answers,
};
pub use tr_wire::{Form, Request};
