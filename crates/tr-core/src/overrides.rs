//! What a manifest says of a tool's breaker and of its place in a turn: plain data.
use serde::{Deserialize, Serialize};

/// Which calls share a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BreakerHint {
    /// Those of one tool, whatever their params name.
    Tool,
    /// Those of all tools that stand on one dependency, as their manifests name it.
    Dependency,
    /// All.
    Global,
}

/// A hint for scheduling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// After the others.
    Low,
    /// The default.
    #[default]
    Normal,
    /// Before the others.
    High,
}
