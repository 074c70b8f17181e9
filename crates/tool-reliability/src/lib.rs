//! The ready stack of reliability layers around a tool service.
//!
//! Agents call tools over flaky networks, retry blindly, run a payment twice, and loop on a
//! malformed call until their context is gone. [`ToolStack`] puts all layers of this project
//! around a tool, in the order in which they work together. Each layer is a feature: any subset can
//! be stacked with tower's `ServiceBuilder` ([single layers](#single-layers)).
//!
//! # When to use
//!
//! [`ToolStack`] around every tool that a model calls; single layers around a plain HTTP client, or
//! any other tower service.
//!
//! # Example
//!
//! ```
//! use tool_reliability::ToolStack;
//! use tower::{Service, ServiceExt, service_fn};
//! use tr_core::{BoxError, Effect, Params, ToolCall, ToolOutcome};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), BoxError> {
//! let stack = ToolStack::default();
//! let mut pay = stack.service(service_fn(|call: ToolCall| async move {
//!     // Charge the card here.
//!     Ok::<_, BoxError>(ToolOutcome::success(call.parts().params.clone()))
//! }));
//!
//! let call = ToolCall::new("pay", Params::from_text(r#"{"order": 42}"#)?)
//!     .effect(Effect::Mutating)
//!     .session("s-1")
//!     .idempotency_key("order-42");
//! let first = pay.ready().await?.call(call.clone()).await?;
//! let again = pay.ready().await?.call(call).await?;
//! assert!(!first.from_cache() && again.from_cache());
//! # Ok(()) }
//! ```
//!
//! # Single layers
//!
//! ```toml
//! tool-reliability = { path = "…", default-features = false, features = ["retry", "breaker", "http"] }
//! ```
//!
//! Each goes into a `ServiceBuilder` by `.layer(…)`. Outermost first, their order is telemetry,
//! integrity, loop guard, idempotency, retry, breaker, timeout.
//!
//! # Order, and why
//!
//! | | layer | |
//! |---|---|---|
//! | 0 | [`Switch`] | off is a true bypass: the bare tool, with its hooks; [`rollout`] |
//! | 1 | [`telemetry`] of the call | sees all outcomes, replayed and refused ones too |
//! | 2 | call hooks, [default deadline](timeout) | may give a key and change params, so before any digest; a deadline for calls without one |
//! | 3 | [`integrity`] | each recorded use gets its result; does nothing without [sessions](Builder::sessions) |
//! | 4 | [loop guard](loopguard) | counts replayed failures too |
//! | 5 | [`checked`] | params that fail their tool's schema are no call |
//! | 6 | [`idempotency`] | one claim covers all attempts |
//! | 7 | [deadline](timeout), [`retry`] | each attempt goes through what is below |
//! | 8 | attempt hooks, telemetry of the attempt | once per attempt |
//! | 9 | [`breaker`] | sees attempts, and timeouts among them |
//! | 10 | [attempt timeout](timeout) | the tool, and its readiness, within bounds |
//! | 11 | [`cancel`] | ends an attempt whose call is cancelled |
//! | 12 | [`adapter`] | judges the tool's own errors, and answers that are failures, once for all |
//!
//! # Defaults
//!
//! - An attempt has 10 s. A call has 4 attempts within 30 s, with delays drawn from 0 up to 200, 400
//!   and 800 ms.
//! - A breaker opens on 5 failures in a row, 8 for a tool declared to only read; or if half of the
//!   last 20 calls failed, 30 % for a tool declared mutating.
//! - Records last 24 h. Loops are broken at the second identical failure.
//! - No session is recorded or checked before [`Builder::sessions`] names where sessions are.
//!
//! A duplicate of a call in flight waits for it, at most 30 s. All calls are
//! guarded; a [`Rollout`] selects those that are only watched or bypassed.
//! `TOOL_RELIABILITY_ENABLED` set to `false` turns a stack off when it is built; [`KillSwitch`]
//! does while it runs. The other switches of the environment: [`Environment`].
//!
//! # Errors
//!
//! [`ErrorsAsOutcomes`] turns them into outcomes, for dispatchers that must always answer; [`Envelopes`]
//! reads and writes envelopes, [`Measured`] only writes them. Else they are
//! the layers' own; every one of them says in its [`FailureInfo`](tr_core::FailureInfo) whether the tool ran.
//!
//! # Features
//!
//! `stack` alone is on by default.
//!
//! | feature | |
//! |---|---|
//! | `retry`, `breaker`, `timeout`, `idempotency`, `loop-guard`, `integrity`, `telemetry` | one layer each |
//! | `stack` | all of them, and [`ToolStack`] |
//! | `http`, `hyper-util`, `h2` | the layers take `http::Request`; they know the errors of these clients |
//! | `http-server` | idempotency keys for the routes of one's own HTTP server |
//! | `sqlite`, `redis`, `redis-tls`, `encryption` | records of calls that outlive the process; Redis over TLS; sealed records |
//! | `catalog`, `input-schema` | catalogs and configurations in TOML; what catalogs say of params is checked |
//! | `admin` | `GET` and `POST /debug/tool-reliability` as a tower service |
//! | `json` | events as JSON lines |
//!
//! # Knows nothing of
//!
//! how a layer decides: it orders them, switches them, and translates at both ends.
/// Calls a builder's method for each value that is there.
#[cfg(feature = "stack")]
macro_rules! set {
    ($builder:expr, $($name:ident = $value:expr),* $(,)?) => {{
        let mut builder = $builder;
        $(
            if let Some(value) = $value {
                builder = builder.$name(value);
            }
        )*
        builder
    }};
}

#[cfg(feature = "stack")]
pub mod adapter;
#[cfg(feature = "admin")]
pub mod admin;
#[cfg(feature = "stack")]
mod cache;
#[cfg(feature = "stack")]
pub mod cancel;
#[cfg(feature = "stack")]
pub mod checked;
#[cfg(feature = "stack")]
pub mod config;
#[cfg(feature = "stack")]
pub mod envelopes;
#[cfg(feature = "stack")]
pub mod environment;
#[cfg(feature = "stack")]
pub mod errors_as_outcomes;
#[cfg(feature = "stack")]
pub mod hooks;
#[cfg(feature = "http-server")]
pub mod http_server;
#[cfg(feature = "stack")]
mod measured;
#[cfg(feature = "stack")]
mod observers;
#[cfg(feature = "stack")]
mod order;
#[cfg(feature = "stack")]
pub mod rollout;
#[cfg(feature = "stack")]
mod stack;
#[cfg(feature = "stack")]
pub mod streaming;
#[cfg(feature = "stack")]
mod switch;

#[cfg(feature = "stack")]
pub use self::{
    envelopes::{Envelopes, EnvelopesLayer},
    environment::{ENABLED, Environment},
    errors_as_outcomes::ErrorsAsOutcomes,
    hooks::Hook,
    measured::{Finished, Measured, MeasuredFuture},
    rollout::{KillSwitch, Mode, Rollout, Share, Stage},
    stack::{Builder, Guarded, ToolStack},
    streaming::Streaming,
    switch::{Switch, SwitchFuture},
};
#[cfg(feature = "breaker")]
pub use tr_breaker::{self as breaker, BreakerLayer};
pub use tr_core::{
    self as core, BoxError, ConfigError, DefaultPolicy, Effect, NamedPolicy, Params, PolicyExt,
    Ran, RequestPolicy, ResponsePolicy, ToolCall, ToolError, ToolManifest, ToolOutcome, Verdict,
    find, ran,
};
#[cfg(feature = "idempotency")]
pub use tr_idempotency::{self as idempotency, IdempotencyLayer};
#[cfg(feature = "integrity")]
pub use tr_integrity::{self as integrity, IntegrityLayer, ModelGuardLayer};
#[cfg(feature = "loop-guard")]
pub use tr_loopguard::{self as loopguard, LoopGuardLayer};
#[cfg(feature = "retry")]
pub use tr_retry::{self as retry, RetryLayer};
#[cfg(feature = "telemetry")]
pub use tr_telemetry::{self as telemetry, TelemetryLayer};
#[cfg(feature = "timeout")]
pub use tr_timeout::{self as timeout, AttemptTimeoutLayer, DeadlineLayer, DefaultDeadlineLayer};
#[cfg(feature = "integrity")]
pub use tr_transcript as transcript;
#[cfg(feature = "stack")]
pub use tr_wire as wire;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
