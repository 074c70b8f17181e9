//! The ready stack of reliability layers around a tool service.
//!
//! Agents call tools over flaky networks, retry blindly, run a payment twice, and loop on a
//! malformed call until their context is gone. [`ToolStack`] puts all layers of this project
//! around a tool, in the order in which they work together; each of them is a crate of its own,
//! and any subset can be stacked with tower's `ServiceBuilder`.
//!
//! # When to use
//!
//! Around every tool that a model calls. For plain HTTP clients take `tr-retry`, `tr-breaker` and
//! `tr-timeout` alone.
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
//! # Order, and why
//!
//! | | layer | |
//! |---|---|---|
//! | 0 | [`Switch`] | off is a true bypass: the bare tool, with its hooks; [`rollout`] |
//! | 1 | [`telemetry`] of the call | sees all outcomes, replayed and refused ones too |
//! | 2 | call hooks, [default deadline](timeout) | may give a key and change params, so before any digest; a deadline for calls without one |
//! | 3 | [`integrity`] | each recorded use gets its result |
//! | 4 | [loop guard](loopguard) | counts replayed failures too |
//! | 5 | [`checked`] | params that fail their tool's schema are no call |
//! | 6 | [`idempotency`] | one claim covers all attempts |
//! | 7 | [deadline](timeout), [`retry`] | each attempt goes through what is below |
//! | 8 | attempt hooks, telemetry of the attempt | once per attempt |
//! | 9 | [`breaker`] | sees attempts, and timeouts among them |
//! | 10 | [attempt timeout](timeout) | the tool, and its readiness, within bounds |
//! | 11 | [`adapter`] | judges the tool's own errors, and answers that are failures, once for all |
//!
//! # Defaults
//!
//! 10 s for an attempt, 4 attempts within 30 s with delays
//! drawn from 0 up to 200, 400 and 800 ms, a breaker that opens on 5 failures in a row or half of the
//! last 20 (8 for a tool declared to only read, 30 % for one declared mutating), records for 24 h, loops broken at the second identical failure. A duplicate of a call
//! in flight waits for it, at most 30 s. All calls are guarded; a
//! [`Rollout`] selects those that are only watched or bypassed. `TOOL_RELIABILITY_ENABLED` set to `false`
//! turns a stack off when it is built; [`KillSwitch`] does while it runs. The other switches of the
//! environment: [`Environment`].
//!
//! # Errors
//!
//! [`ErrorsAsOutcomes`] turns them into outcomes, for dispatchers that must always answer; [`Measured`]
//! writes envelopes, with the attempts counted and the time measured. Else they are
//! the layers' own; every one of them says in its [`FailureInfo`](tr_core::FailureInfo) whether the tool ran.
//!
//! # Features
//!
//! None is on by default.
//!
//! - `sqlite`, `redis`: records of calls that outlive the process; `redis-tls`: Redis over TLS;
//!   `encryption`: sealed records.
//! - `catalog`: catalogues and configurations in TOML, `input-schema`: what catalogues say of params
//!   is checked.
//! - `admin`: `GET` and `POST /debug/tool-reliability` as a tower service.
//! - `json`: events as JSON lines.
//!
//! # Knows nothing of
//!
//! how a layer decides: it orders them, switches them, and translates at both ends.
pub mod adapter;
#[cfg(feature = "admin")]
pub mod admin;
mod cache;
mod called;
pub mod checked;
pub mod config;
pub mod environment;
pub mod errors_as_outcomes;
pub mod hooks;
mod measured;
mod observers;
mod order;
pub mod rollout;
mod stack;
mod switch;

pub use self::{
    environment::{ENABLED, Environment},
    errors_as_outcomes::ErrorsAsOutcomes,
    hooks::Hook,
    measured::{Finished, Measured, MeasuredFuture},
    rollout::{KillSwitch, Mode, Rollout, Share, Stage},
    stack::{Builder, Guarded, ToolStack},
    switch::{Switch, SwitchFuture},
};
pub use tr_breaker as breaker;
pub use tr_core::{self as core, ConfigError};
pub use tr_idempotency as idempotency;
pub use tr_integrity as integrity;
pub use tr_loopguard as loopguard;
pub use tr_retry as retry;
pub use tr_telemetry as telemetry;
pub use tr_timeout as timeout;
pub use tr_wire as wire;
