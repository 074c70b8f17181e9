//! Events, metrics and spans of tool calls.
mod describe;
mod error;
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
mod watch;

#[cfg(feature = "json")]
pub use self::json::JsonLines;
pub use self::{
    describe::{Describe, traceparent},
    error::ConfigError,
    layer::TelemetryLayer,
    log::TARGET,
    metrics::{CacheReadings, Names},
    observer::TelemetryObserver,
    service::Telemetry,
    signals::{Builder, Signals},
};
