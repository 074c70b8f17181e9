//! What a call or a tool's manifest may change of a layer's settings: plain data, all optional.
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Changes to a retry policy. What is `None` stays as it was.
///
/// Precedence: the call's over the manifest's over the effect's over the layer's own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RetryOverride {
    /// Attempts in all, the first included.
    pub attempts: Option<u32>,
    /// Ceiling of the first delay.
    pub base: Option<Duration>,
    /// By what each further ceiling grows.
    pub multiplier: Option<f64>,
    /// No ceiling grows past this.
    pub cap: Option<Duration>,
    /// The delay is drawn between these shares of the ceiling.
    pub jitter: Option<(f64, f64)>,
    /// No attempt starts later than this after the first.
    pub max_elapsed: Option<Duration>,
    /// Only these codes are retried; empty means all that are transient.
    pub only_codes: Option<Vec<Box<str>>>,
}

/// The overrides that apply to one call, strongest first.
#[derive(Clone, Copy, Debug, Default)]
pub struct RetryOverrides<'r> {
    /// The caller's.
    pub call: Option<&'r RetryOverride>,
    /// The tool's, from its manifest.
    pub tool: Option<&'r RetryOverride>,
}

/// A tool's changes to its breaker.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct BreakerOverride {
    /// Failures in a row that open it.
    pub consecutive: Option<u32>,
    /// The share of failures, from 0 to 1, that opens it.
    pub failure_rate: Option<f64>,
    /// How long it stays open.
    pub cooldown: Option<Duration>,
    /// What an operator has ordered for the tool's own breaker, whatever its calls do.
    pub order: Option<BreakerOrder>,
}

/// What an operator has ordered for a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BreakerOrder {
    /// It refuses all calls.
    ForcedOpen,
    /// It counts nothing and refuses no call.
    Disabled,
    /// It decides and reports, and refuses no call.
    Shadow,
}

impl BreakerOverride {
    /// This change, and `other` where it says nothing.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            consecutive: self.consecutive.or(other.consecutive),
            failure_rate: self.failure_rate.or(other.failure_rate),
            cooldown: self.cooldown.or(other.cooldown),
            order: self.order.or(other.order),
        }
    }
}

/// How long records of a tool's calls are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TtlOverride {
    /// Of successes.
    pub done: Option<Duration>,
    /// Of failures.
    pub failed: Option<Duration>,
    /// Of calls that run.
    pub inflight: Option<Duration>,
    /// Of calls of unknown outcome.
    pub unknown: Option<Duration>,
}

impl TtlOverride {
    /// These, and those of `other` where nothing is said.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            done: self.done.or(other.done),
            failed: self.failed.or(other.failed),
            inflight: self.inflight.or(other.inflight),
            unknown: self.unknown.or(other.unknown),
        }
    }
}

/// What to do with a call whose key is known already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DedupeMode {
    /// Waits for the running call and gives its answer.
    #[default]
    #[serde(rename = "enforced", alias = "enabled")]
    Enforced,
    /// Refuses at once with the in-flight marker while the call runs.
    #[serde(rename = "bestEffort")]
    BestEffort,
    /// Runs, as if there were no key.
    #[serde(rename = "disabled")]
    Disabled,
}

/// Whose calls a key may match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DedupeScope {
    /// Those of the same session and actor (and tenant and workspace).
    #[default]
    Session,
    /// Everybody's; only for tools that are [`ReadOnly`](crate::Effect::ReadOnly).
    Global,
}

/// A breaker's state, as the wire and the logs spell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BreakerState {
    /// Calls go through.
    Closed,
    /// Calls are refused.
    Open,
    /// A few probes go through.
    HalfOpen,
    /// Calls are refused until an operator resets it.
    ForcedOpen,
}

impl BreakerState {
    /// The state as the wire spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "CLOSED",
            Self::Open => "OPEN",
            Self::HalfOpen => "HALF_OPEN",
            Self::ForcedOpen => "FORCED_OPEN",
        }
    }
}
