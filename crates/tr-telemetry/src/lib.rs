//! Events, metrics and spans of tool calls.
//!
//! [`Telemetry`] reports each call and each attempt; [`Signals::observer`] reports the events of the
//! layers in between. Neither depends on these layers, and neither decides anything.
//!
//! # When to use
//!
//! [`TelemetryLayer::call`] outermost, so that replayed and refused calls are seen too;
//! [`TelemetryLayer::attempt`] inside retry; [`Signals::observer`] with every layer that takes an
//! observer.
//!
//! ```text
//! TelemetryLayer::call ─ idempotency ─ retry ─ TelemetryLayer::attempt ─ breaker ─ timeout ─ tool
//!         │                   └──────────┴──────── observer ──────────────┴──────────┘
//!         └── events: tracing · metrics and spans: OpenTelemetry
//! ```
//!
//! # Example
//!
//! ```
//! use tower::{ServiceBuilder, ServiceExt};
//! use tr_core::{BoxError, Params, ToolCall, ToolOutcome};
//! use tr_telemetry::{Signals, TelemetryLayer};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let signals = Signals::builder()
//!     .meter(opentelemetry::global::meter("my-agent"))
//!     .tracer(opentelemetry::global::tracer("my-agent"))
//!     .tools(["flight_search", "pay"])
//!     .build()?;
//!
//! let tool = ServiceBuilder::new()
//!     .layer(TelemetryLayer::call(&signals))
//!     .layer(TelemetryLayer::attempt(&signals))
//!     .service_fn(async |_: ToolCall| Ok::<_, BoxError>(ToolOutcome::default()));
//! tool.oneshot(ToolCall::new("flight_search", Params::empty_object())).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What is reported
//!
//! - Events of `tracing`, target [`TARGET`]: `tool_call_start`, `tool_call_end`,
//!   `tool_call_blocked`, `tool_call_retry`, `tool_call_circuit_state`, `tool_call_uncounted`,
//!   `tool_session`. With the feature `json`, `JsonLines` writes them as one JSON object per line.
//! - Metrics in the sets of [`Names`] that were chosen.
//! - Spans `tool_execution`, in it `tool_attempt` and `retry_delay`. They are active while the
//!   call is polled, so spans that a tool opens are their children, and [`traceparent`] is what a
//!   tool sends along to another process.
//!
//! `docs/telemetry.md` lists every field, label and attribute.
//!
//! # What is never reported
//!
//! Params and results. The shape of params is, if asked for ([`Builder::params_shape`]), and the values of
//! those that a program lists ([`Builder::show_params`]). The idempotency
//! key appears as a keyed hash. Everything else that comes from outside passes the
//! [redactor](redact). Ids, sessions and keys are never labels of metrics; tools past a bound
//! share the label `_other`, as do unknown codes. A tool's label has 128 bytes at most, and
//! longer names that begin alike share one; one word of more than 1 KiB is counted as `_other`.
//!
//! # Defaults
//!
//! Events only; see [`Builder`].
//!
//! # Errors
//!
//! None of its own but [`ConfigError`]: errors of the inner service pass through untouched. A
//! dropped call is reported as `cancelled`, a panic as `outcome_unknown`.
//!
//! # Cost
//!
//! Without meter and tracer, and without a subscriber that wants the target: no clock read
//! and no allocation. With a meter alone: two clock reads, and no allocation if the feature `bound`
//! is on. That feature binds instruments to their labels, which OpenTelemetry
//! still calls experimental; it brings `opentelemetry_sdk`, because an SDK that does not know of
//! bound instruments would drop what they measure. A span that is not sampled allocates once, so
//! that inner spans know that it is not sampled; inside an unsampled span nothing is allocated.
//!
//! # Features
//!
//! None is on by default.
//!
//! - `json`: `JsonLines`, events as JSON lines.
//! - `bound`: instruments bound to their labels.
//!
//! # Knows nothing of
//!
//! the other layers, exporters, stores. What a layer moves to a task of its own is reported by the
//! observer, but not added to the log of the call.
pub mod future;
#[cfg(feature = "json")]
mod json;
mod layer;
mod log;
mod metrics;
mod notes;
mod observer;
pub mod redact;
mod service;
mod shape;
mod signals;
mod spans;
mod traceparent;
mod watch;

#[cfg(feature = "json")]
pub use self::json::JsonLines;
pub use self::{
    layer::TelemetryLayer,
    log::TARGET,
    metrics::{CacheReadings, Names, RecordCount, Refresh},
    service::Telemetry,
    signals::{Builder, Signals},
    traceparent::traceparent,
};
pub use tr_core::ConfigError;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
