//! The events as JSON lines.
use crate::log::TARGET;
use serde_json::{Map, Value};
use std::{
    fmt,
    io::Write,
    sync::{Arc, Mutex},
};
use tr_core::{SystemClock, WallClock, debug_parts, internal::lock, printable_json, rfc3339};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::layer::{Context, Layer};

/// Writes each event as one line: a JSON object with `timestamp`, `level`, and the event's own
/// fields under their names, `null` where they are not known.
///
/// A line that cannot be written is lost: a log never fails a call.
///
/// ```
/// use tracing_subscriber::prelude::*;
///
/// let lines = tr_telemetry::JsonLines::new(std::io::stdout());
/// tracing_subscriber::registry().with(lines).init();
/// ```
pub struct JsonLines<W> {
    writer: Mutex<W>,
    clock: Arc<dyn WallClock>,
}

impl<W: Write + Send + 'static> JsonLines<W> {
    /// Writes to `writer`, a line at a time.
    #[must_use]
    pub fn new(writer: W) -> Self {
        Self { writer: Mutex::new(writer), clock: Arc::new(SystemClock) }
    }

    /// Takes the time from `clock`.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn WallClock>) -> Self {
        self.clock = clock;
        self
    }
}

impl<S: Subscriber, W: Write + Send + 'static> Layer<S> for JsonLines<W> {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if metadata.target() != TARGET {
            return;
        }
        let mut line = Map::new();
        line.insert("timestamp".into(), rfc3339(self.clock.unix_ms()).to_string().into());
        line.insert("level".into(), metadata.level().as_str().to_ascii_lowercase().into());
        for field in metadata.fields() {
            line.insert(field.name().into(), Value::Null);
        }
        event.record(&mut Fields(&mut line));

        let text = Value::Object(line).to_string();
        let mut text = printable_json(&text).into_owned();
        text.push('\n');
        let mut writer = lock(&self.writer);
        let _ = writer.write_all(text.as_bytes()).and_then(|()| writer.flush());
    }
}

struct Fields<'l>(&'l mut Map<String, Value>);

impl Fields<'_> {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().into(), value.into());
    }
}

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }
}

debug_parts! { JsonLines<W>, |_it| }

#[cfg(test)]
mod tests {
    use super::*;
    use tr_testkit::logs::Logs;
    use tracing_subscriber::{prelude::*, registry};

    #[test]
    fn what_a_line_says_does_nothing_to_a_terminal() {
        let (logs, _guard) = Logs::listen(|logs| registry().with(JsonLines::new(logs)));
        let attack = "a\u{1b}[2J\n\u{9b}2J\u{202e}";
        tracing::warn!(target: TARGET, tool = attack);
        let text = logs.text();
        assert!(text.contains(r"a\u001b[2J\n\u009b2J\u202e"), "{text}");
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["tool"], attack);
    }
}
