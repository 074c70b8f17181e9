//! Idempotency keys for the routes of one's own HTTP server.
//!
//! A layer around the handlers of an HTTP server: a client that repeats a request with the same
//! `Idempotency-Key` gets the recorded response, and the handler does not run again.
//!
//! # When to use
//!
//! Around routes that change something and whose clients retry: payments, orders, messages. It
//! takes any tower service of `http` requests, with axum's bodies, hyper's or others. Put it around
//! the whole router and inside of authentication, since keys are scoped by the caller.
//!
//! # Example
//!
//! ```
//! use http::{Request, Response, request::Parts};
//! use std::convert::Infallible;
//! use tool_reliability::http_server::{GuardedBody, HttpIdempotencyLayer};
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//!
//! # use http_body_util::{BodyExt as _, Full};
//! # use bytes::Bytes;
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! // Which account calls; here its name is a header, which authentication has checked.
//! let account = |req: &Parts| Some(req.headers.get("x-account")?.to_str().ok()?.to_owned());
//! let layer = HttpIdempotencyLayer::builder("shop", account).build().unwrap();
//! let shop = ServiceBuilder::new().layer(layer).service(service_fn(
//!     |_: Request<GuardedBody<Full<Bytes>>>| async {
//!         Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("order 1")))
//!     },
//! ));
//!
//! for replayed in [false, true] {
//!     let order = Request::post("/orders")
//!         .header("idempotency-key", r#""8e03978e-40d5-43e8-bc93-6894a57f9324""#)
//!         .header("x-account", "ada")
//!         .body(Full::<Bytes>::from("1 × tea"))
//!         .unwrap();
//!     let response = shop.clone().oneshot(order).await.unwrap();
//!     assert_eq!(response.headers().contains_key("idempotency-replayed"), replayed);
//!     assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "order 1");
//! }
//! # }
//! ```
//!
//! # Which requests
//!
//! `GET`, `HEAD`, `OPTIONS` and `TRACE` pass unread, and so does a request without a key, unless
//! [`require_key`](HttpBuilder::require_key) refuses it. Of all others the body is read first, up to
//! 2 MiB. The key is a string as the IETF draft has it (`"8e03…"`), or bare, as Stripe's and most
//! other clients send it; both spellings are one key. Two requests are the same if method, path,
//! query and body are.
//!
//! # What is recorded
//!
//! Each response of the handler, whatever its status: a handler that answered has run, also with a
//! 500. [`DidNotRun`] in the response's extensions says otherwise; then a repeat runs. Recorded are
//! status, headers and body up to 1 MiB. A longer body, one with trailers and a `text/event-stream`
//! reach the client as they come, and are recorded as done without an answer.
//!
//! A client that disconnects ends nothing: once the handler was called, it runs to its end in a task
//! of the runtime and is recorded, its body included.
//!
//! # Errors
//!
//! Refusals are `application/problem+json` with the members `status`, `title`, `detail`, `code` and
//! `ran`, which says whether the handler ran for this key: `no`, `yes` or `unknown`.
//!
//! | status | code | `ran` | |
//! |---|---|---|---|
//! | 400 | `idempotency_key_missing`, `idempotency_key_invalid`, `body_unreadable` | no | |
//! | 403 | `no_principal` | no | the request has a key and nothing says whose |
//! | 409 | `idempotency_in_flight` | unknown | another request with this key runs; `Retry-After: 1` |
//! | 409 | `outcome_unknown`, `record_unreadable` | unknown | an earlier one may have run; not run again |
//! | 409 | `answer_not_kept` | yes | an earlier one has ended, and its response was not recorded |
//! | 413 | `body_too_large` | no | |
//! | 422 | `idempotency_conflict` | no | the key was used with another request |
//! | 503 | `store_unavailable`, `store_full` | no | `Retry-After: 1` |
//! | 500, 503, 504 | the error's own | by the error | the handler returned an error; 503 if it did not run, 504 for `timeout` |
//!
//! A request without a key that fails gets the handler's own error.
mod body;
mod handler;
mod key;
mod layer;
mod policy;
mod problem;
mod recorded;
mod service;

pub use self::{
    body::GuardedBody,
    layer::{HttpBuilder, HttpIdempotencyLayer},
    policy::DidNotRun,
    problem::Cause,
    recorded::RecordedResponse,
    service::{HttpIdempotency, HttpIdempotencyFuture},
};
