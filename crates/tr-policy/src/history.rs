//! What a response or an error says of its past: that it is a replay, and the retries before it.
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// That an outcome is a replay, and of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replay {
    /// Whether the first call was still running.
    pub matched_on: MatchedOn,
    /// How old the recorded outcome is.
    pub age: Duration,
    /// A keyed hash of the key, for logs.
    pub fingerprint: [u8; 8],
}

/// What a duplicate matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum MatchedOn {
    /// A call that was still running.
    Inflight,
    /// A recorded outcome.
    Completed,
}

/// One retry, as `retriedBy` lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retried {
    /// The attempt that failed, from 1.
    pub attempt: u32,
    /// How long we waited after it.
    pub delay: Duration,
    /// Why: the code of its failure.
    pub reason: Box<str>,
    /// How long it took; of a call's first attempt, what it did before it first waited is left out.
    pub latency: Duration,
}
