//! Events as lines for people: when, what, which tool, and why.
use anstyle::{AnsiColor, Style};
use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt::{self, Write as _},
};
use tool_reliability::telemetry::TARGET;
use tr_core::{SystemClock, WallClock as _, printable, rfc3339};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::layer::{Context, Layer};

/// The width of the longest word for an event.
const WORD: usize = 9;

/// Says each event of interest in one line.
pub(super) struct HumanLines<F> {
    /// Gets each line, with its newline.
    pub(super) say: F,
    pub(super) colors: bool,
}

impl<S: Subscriber, F: Fn(&str) + 'static> Layer<S> for HumanLines<F> {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() != TARGET {
            return;
        }
        let mut said = Said::default();
        event.record(&mut said);
        if let Some(line) = line(SystemClock.unix_ms(), &said, self.colors) {
            (self.say)(&line);
        }
    }
}

/// The fields of an event.
#[derive(Debug, Default)]
struct Said(BTreeMap<&'static str, String>);

impl Said {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn number(&self, name: &str) -> u64 {
        self.get(name).and_then(|number| number.parse().ok()).unwrap_or_default()
    }

    fn is(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }
}

impl Visit for Said {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

/// One word for what happened.
struct Word(&'static str, AnsiColor);

/// The line for an event, with its newline; `None` if the event is of no interest to people.
fn line(unix_ms: u64, said: &Said, colors: bool) -> Option<String> {
    let (word, what) = match said.get("event")? {
        "tool_call_start" | "tool_invocation" => return None,
        "tool_call_end" => end(said)?,
        "tool_call_blocked" => (Word("refused", AnsiColor::Red), reason(said)),
        "tool_call_retry" => (
            Word("retry", AnsiColor::Yellow),
            format!(
                "attempt {} failed ({}), again in {}",
                said.number("attempt"),
                said.get("errorCode").unwrap_or("unknown"),
                time(said.number("delayMs"))
            ),
        ),
        "tool_call_circuit_state" => {
            let (from, to) = (said.get("fromState"), said.get("breakerState"));
            let (from, to) = (from.unwrap_or("?"), to.unwrap_or("?"));
            let color = if to == "CLOSED" { AnsiColor::Green } else { AnsiColor::Red };
            (Word("breaker", color), format!("{from} -> {to}"))
        }
        "summary" => (Word("summary", AnsiColor::Cyan), summary(said)),
        other => (Word("guard", AnsiColor::Cyan), all(other, said)),
    };
    let tool = said.get("toolName").map(|tool| format!("{tool}: ")).unwrap_or_default();
    let decided = if said.is("shadow") { " (decided, not done)" } else { "" };
    let stamp = rfc3339(unix_ms).to_string();
    let stamp = stamp.get(11..19).unwrap_or(&stamp);
    let style = if colors { Style::new().fg_color(Some(word.1.into())) } else { Style::new() };
    let padding = " ".repeat(WORD.saturating_sub(word.0.len()));
    let text = format!("{tool}{what}{decided}");
    Some(format!("{stamp}Z {style}{}{style:#}{padding} {}\n", word.0, printable(&text)))
}

/// A line for a call that failed, was retried or was replayed.
fn end(said: &Said) -> Option<(Word, String)> {
    let took = time(said.number("elapsedMs"));
    let attempts = said.number("attempt");
    if said.is("fromCache") {
        let what = match said.get("errorCode") {
            Some(_) => format!("recorded failure, {}", reason(said)),
            None => "recorded answer".into(),
        };
        return Some((Word("replayed", AnsiColor::Cyan), what));
    }
    match said.get("errorCode") {
        None if attempts > 1 => {
            let what = format!("succeeded at attempt {attempts}, after {took}");
            Some((Word("recovered", AnsiColor::Green), what))
        }
        None => None,
        Some("cancelled") => Some((Word("cancelled", AnsiColor::Yellow), format!("after {took}"))),
        Some(_) => {
            let tries = if attempts > 1 { format!("{attempts} attempts, ") } else { String::new() };
            Some((Word("failed", AnsiColor::Red), format!("{} ({tries}{took})", reason(said))))
        }
    }
}

/// Code and text of a failure.
fn reason(said: &Said) -> String {
    // What the model reads beside it is left out.
    let error = said.get("error").and_then(|error| error.split("\n[").next());
    match (said.get("errorCode"), error) {
        (Some(code), Some(error)) => format!("{code}: {error}"),
        (code, error) => code.or(error).unwrap_or("unknown").to_owned(),
    }
}

fn summary(said: &Said) -> String {
    let count = |name: &str, what: &str| format!("{} {what}", said.number(name));
    let by = said.get("refusedBy").filter(|by| !by.is_empty());
    let by = by.map(|by| format!(" ({})", by.replace(' ', ", "))).unwrap_or_default();
    let retries = match said.number("retries") {
        0 => String::new(),
        1 => " (1 retry)".into(),
        retries => format!(" ({retries} retries)"),
    };
    let mut parts = vec![
        count("calls", "calls"),
        count("retried", "retried") + &retries,
        count("replayed", "replayed"),
        count("refused", "refused") + &by,
        count("unknown", "left unknown"),
    ];
    if said.number("unfinished") > 0 {
        parts.push(count("unfinished", "cut off"));
    }
    if said.number("unrecorded") > 0 {
        parts.push(count("unrecorded", "not recorded"));
    }
    parts.join(", ")
}

/// An event of the guard's own, with its fields.
fn all(event: &str, said: &Said) -> String {
    let mut text = event.replace('_', " ");
    for (name, value) in said.0.iter().filter(|(name, _)| **name != "event") {
        let name = if *name == "needs_restart" {
            Cow::Borrowed("needs a restart")
        } else {
            (*name).into()
        };
        if !value.is_empty() {
            let _ = write!(text, ", {name}: {value}");
        }
    }
    text
}

fn time(ms: u64) -> String {
    if ms < 1000 { format!("{ms} ms") } else { format!("{:.1} s", ms as f64 / 1000.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line for these fields.
    fn said(fields: &[(&'static str, &str)]) -> Option<String> {
        let said = Said(fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect());
        line(1_700_000_000_000, &said, false)
    }

    #[test]
    fn each_event_is_one_line_that_says_what_and_why() {
        let tool = ("toolName", "pay");
        let cases: [(&[_], _); 9] = [
            (
                &[
                    ("event", "tool_call_retry"),
                    tool,
                    ("attempt", "1"),
                    ("errorCode", "http_503"),
                    ("delayMs", "1500"),
                ],
                "retry     pay: attempt 1 failed (http_503), again in 1.5 s",
            ),
            (
                &[
                    ("event", "tool_call_blocked"),
                    tool,
                    ("errorCode", "circuit_open"),
                    ("error", "open"),
                ],
                "refused   pay: circuit_open: open",
            ),
            (
                &[
                    ("event", "tool_call_circuit_state"),
                    tool,
                    ("fromState", "CLOSED"),
                    ("breakerState", "OPEN"),
                    ("shadow", "true"),
                ],
                "breaker   pay: CLOSED -> OPEN (decided, not done)",
            ),
            (
                &[
                    ("event", "tool_call_end"),
                    tool,
                    ("errorCode", "timeout"),
                    ("error", "late"),
                    ("attempt", "3"),
                    ("elapsedMs", "20"),
                ],
                "failed    pay: timeout: late (3 attempts, 20 ms)",
            ),
            (
                &[
                    ("event", "tool_call_end"),
                    tool,
                    ("attempt", "2"),
                    ("elapsedMs", "20"),
                    ("fromCache", "false"),
                ],
                "recovered pay: succeeded at attempt 2, after 20 ms",
            ),
            (
                &[("event", "tool_call_end"), tool, ("attempt", "0"), ("fromCache", "true")],
                "replayed  pay: recorded answer",
            ),
            (
                &[
                    ("event", "tool_call_end"),
                    tool,
                    ("fromCache", "true"),
                    ("errorCode", "declined"),
                    ("error", "no"),
                ],
                "replayed  pay: recorded failure, declined: no",
            ),
            (
                &[("event", "config_reloaded"), ("needs_restart", "retry loops")],
                "guard     config reloaded, needs a restart: retry loops",
            ),
            (
                &[
                    ("event", "summary"),
                    ("calls", "9"),
                    ("retried", "1"),
                    ("retries", "2"),
                    ("replayed", "0"),
                    ("refused", "3"),
                    ("refusedBy", "circuit_open=2 loop_detected=1"),
                    ("unknown", "1"),
                    ("unfinished", "1"),
                    ("unrecorded", "1"),
                ],
                "summary   9 calls, 1 retried (2 retries), 0 replayed, 3 refused (circuit_open=2, loop_detected=1), 1 left unknown, 1 cut off, 1 not recorded",
            ),
        ];
        for (fields, wanted) in cases {
            assert_eq!(said(fields).unwrap(), format!("22:13:20Z {wanted}\n"));
        }
        for nothing in ["tool_call_start", "tool_call_end"] {
            assert_eq!(said(&[("event", nothing), tool, ("attempt", "1")]), None);
        }
    }

    #[test]
    fn foreign_words_stay_in_their_line_and_colors_are_ours_alone() {
        let fields =
            [("event", "tool_call_blocked"), ("toolName", "a\u{1b}[31m\nb"), ("error", "\u{202e}")];
        let line = said(&fields).unwrap();
        assert_eq!(line, "22:13:20Z refused   a\\u{1b}[31m\\nb: \\u{202e}\n");
        let said = Said(fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect());
        let colored = super::line(1_700_000_000_000, &said, true).unwrap();
        assert_eq!(colored.matches('\u{1b}').count(), 2, "{colored:?}");
        assert!(colored.contains("\u{1b}[31mrefused\u{1b}[0m "), "{colored:?}");
    }
}
