//! The events as JSON lines.
use crate::log::TARGET;
use serde_json::Value;
use std::{
    fmt::{self, Write as _},
    io::Write,
    sync::{Arc, Mutex},
};
use tr_core::{
    SystemClock, WallClock, debug_parts, internal::lock, printable_json, rfc3339, setters,
};
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

    setters! {
        /// Takes the time from `clock`.
        fn clock(clock: Arc<dyn WallClock>) { clock = clock }
    }
}

impl<S: Subscriber, W: Write + Send + 'static> Layer<S> for JsonLines<W> {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if metadata.target() != TARGET {
            return;
        }
        let mut said = Said::default();
        event.record(&mut said);
        let (at, level) = (rfc3339(self.clock.unix_ms()), metadata.level().as_str());
        let mut line = format!(r#"{{"timestamp":"{at}","level":"{}""#, level.to_ascii_lowercase());
        for field in metadata.fields() {
            let known = said.0.iter().find(|(name, _)| *name == field.name());
            let _ = write!(line, r#","{}":{}"#, field.name(), known.map_or("null", |it| &it.1));
        }
        line.push_str("}\n");
        let mut writer = lock(&self.writer);
        let _ = writer.write_all(printable_json(&line).as_bytes()).and_then(|()| writer.flush());
    }
}

/// The fields that are known, as JSON.
#[derive(Default)]
struct Said(Vec<(&'static str, String)>);

impl Visit for Said {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name(), Value::from(value).to_string()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.push((field.name(), value.to_string()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.push((field.name(), value.to_string()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
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
