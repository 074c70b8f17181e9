//! The session layers' configuration.
use serde::{Deserialize, Serialize};
use tr_core::{ConfigError, internal::Faults};

/// The session layers' configuration: every key of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Layer0Config {
    /// Whether the layers do anything; on by default.
    pub enabled: bool,
    /// Validates before each call of the model; on by default.
    pub validate_before_call: bool,
    /// Repairs without asking what validation finds, in the session and in what is sent: before a
    /// call of the model, when a session is loaded, and when the provider refuses it. Off by
    /// default: a repair is planned and offered in the error, and not applied.
    pub auto_repair: bool,
    /// How many committed checkpoints are kept: 1 to 10,000, 10 by default.
    pub checkpoint_retention: usize,
    /// Keeps the messages in checkpoints, so that they can be restored after a change of the
    /// prefix; off by default.
    pub snapshot_messages: bool,
    /// Records in the session's [incidents](crate::Session::incidents) also what went well:
    /// checkpoints that are made, committed and pruned, cycles that are begun, recorded and
    /// abandoned, loads. Off by default: only failures and what was done about them are recorded.
    pub verbose: bool,
}

impl Default for Layer0Config {
    fn default() -> Self {
        Self {
            enabled: true,
            validate_before_call: true,
            auto_repair: false,
            checkpoint_retention: 10,
            snapshot_messages: false,
            verbose: false,
        }
    }
}

impl Layer0Config {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let mut faults = Faults::default();
        faults.range("checkpointRetention", self.checkpoint_retention, 1..=10_000);
        faults.into_result("session")
    }
}
