//! Configured telemetry, where the program gives none of its own.
use super::Builder;
use crate::config;
use tr_config::TelemetryConfig;

impl Builder {
    /// Applies the section `telemetry`. Signals that the program has given, or gives later, replace it.
    pub(crate) fn configured_telemetry(mut self, config: &TelemetryConfig) -> Self {
        if *config == TelemetryConfig::default() || self.telemetry.is_some() {
            return self;
        }
        match config::telemetry(config).build() {
            Ok(signals) => self.telemetry = Some(signals),
            Err(error) => self = self.fault(error),
        }
        self
    }
}
