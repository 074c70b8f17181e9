//! What a configuration says of telemetry.
use crate::telemetry::{Builder, Signals, redact::Redactor};
use tr_config::TelemetryConfig;

/// The signals that a configuration describes: events. A program adds its meter, its tracer and its key.
///
/// ```
/// use tool_reliability::{ToolStack, config::{self, Config}};
///
/// let config = Config::from_json(r#"{"telemetry": {"names": ["gen_ai"]}}"#)?;
/// let meter = opentelemetry::global::meter("my-agent");
/// let signals = config::telemetry(&config.telemetry).meter(meter).build()?;
/// let stack = ToolStack::builder().telemetry(signals).config(&config).build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub fn telemetry(config: &TelemetryConfig) -> Builder {
    let redactor = config.hide.as_ref().map(|hide| Redactor::default().hiding(hide));
    let mut builder = set!(config.apply(Signals::builder()), redactor = redactor);
    if config.params_shape == Some(true) {
        builder = builder.params_shape();
    }
    let shown = config.show_params.iter().cloned();
    shown.fold(builder, |builder, (tool, names)| builder.show_params(tool, names))
}
