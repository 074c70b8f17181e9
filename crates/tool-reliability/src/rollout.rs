//! Gradual rollout of a stack: which calls it guards, which it only observes, which it leaves
//! alone.
//!
//! # When to use
//!
//! To add the stack to tools in production: first observe all calls ([`Mode::Observe`]), then let the
//! stack say what it would do ([`Mode::Shadow`]), then guard those that only read, then a few sessions
//! of the others, then all. And to turn it off for one tool only.
//!
//! # Example
//!
//! ```
//! use tool_reliability::{Mode, Rollout, Share, Stage, ToolStack};
//! use tr_core::Effect;
//!
//! let tenth = Share::percent(10.0).expect("from 0 to 100");
//! let rollout = Rollout::new(Mode::Shadow)
//!     .effect(Effect::ReadOnly, Mode::Enforce)
//!     .effect(Effect::Mutating, Stage::part(Mode::Enforce, tenth, Mode::Shadow))
//!     .tool("legacy_search", Mode::Off);
//!
//! let stack = ToolStack::builder().rollout(rollout).build()?;
//! // Later, while calls run:
//! stack.kill_switch().set_rollout(Rollout::new(Mode::Enforce));
//! # Ok::<_, tool_reliability::ConfigError>(())
//! ```
//!
//! # What the modes do
//!
//! | | |
//! |---|---|
//! | [`Off`](Mode::Off) | the bare tool with its hooks: the same params, no record, no telemetry of ours |
//! | [`Observe`](Mode::Observe) | the same, with telemetry around it: events, metrics and spans of each call |
//! | [`Shadow`](Mode::Shadow) | the same, with metrics and spans of each call, and the stack beside it: its decisions are reported, not applied |
//! | [`Enforce`](Mode::Enforce) | the stack |
//!
//! # What shadow knows
//!
//! The tool runs once, and its caller gets the answer unchanged. In parallel the stack runs on
//! that answer, with the same breakers, records, turns and retry budget that enforced calls
//! have. Each call that it would have refused, replayed, timed out or retried is reported as an
//! event with `shadow: true`, and counted in metrics of its own; breakers really change their
//! state, and report it. Sessions are not written to. A retry that it reports is not made, so its
//! result is unknown: the call ends there, and its failure counts once for the breaker and not for
//! the loop guard. A call whose caller drops it is recorded as any other that may have run.
mod kill_switch;
mod observe;
mod shadow;

pub use self::{kill_switch::KillSwitch, shadow::ShadowEnd};
pub(crate) use self::{
    observe::{ObservedFuture, Observers},
    shadow::{Observation, ShadowEnds, routed},
};
pub use tr_config::{Mode, Rollout, Share, Stage};
