//! A trace for people: a bar per call, then failures and recoveries.
use super::{Entry, Fact, Outcome, Trace, json::class};
use std::{fmt, time::Duration};
use tr_core::{BreakerState, printable};

/// The width of the whole turn in columns.
const WIDTH: usize = 40;

/// A call's line. Names and messages are untrusted, so they are shown through [`printable`].
struct Row<'t> {
    name: &'t str,
    tool: &'t str,
    /// When it ran and when it waited for the next attempt, in order.
    spans: Vec<Span>,
    end: Option<(&'t Entry, Outcome)>,
    attempts: u32,
}

#[derive(Clone, Copy)]
struct Span {
    from: Duration,
    to: Duration,
    runs: bool,
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.entries.last().map_or(Duration::ZERO, |entry| entry.at);
        write!(f, "{} · {}", printable(&self.turn), HumanDuration(total))?;
        let summary = self.entries.iter().rev().find_map(|entry| match &entry.fact {
            Fact::TurnEnded { summary } => Some(summary),
            _ => None,
        });
        if let Some(summary) = summary {
            write!(f, " · {}", printable(summary))?;
        }
        writeln!(f, "\n")?;
        let rows = rows(&self.entries);
        let longest = rows.iter().map(|row| printable(row.name).chars().count()).max().unwrap_or(0);
        for row in &rows {
            let took = match (row.spans.first(), row.spans.last()) {
                (Some(first), Some(last)) => {
                    HumanDuration(last.to.saturating_sub(first.from)).to_string()
                }
                _ => "–".to_owned(),
            };
            let bar = bar(&row.spans, total);
            let (name, ending) = (printable(row.name), row.ending());
            writeln!(f, "{name:<longest$} │{bar}│ {took:>6}  {}", printable(&ending))?;
        }
        let mut noted = false;
        for entry in &self.entries {
            let Some(note) = note(entry) else { continue };
            if !std::mem::replace(&mut noted, true) {
                writeln!(f)?;
            }
            let name = printable(entry.call.as_deref().unwrap_or_default());
            writeln!(f, "{:>6}  {name:<longest$}  {}", HumanDuration(entry.at), printable(&note))?;
        }
        Ok(())
    }
}

/// One row per call, in the order in which they come up.
fn rows(entries: &[Entry]) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    let mut index = std::collections::HashMap::new();
    for entry in entries {
        let (Some(name), Some(tool)) = (entry.call.as_deref(), entry.tool.as_deref()) else {
            continue;
        };
        let at = *index.entry(name).or_insert_with(|| {
            let end = None;
            rows.push(Row { name, tool, spans: Vec::new(), end, attempts: 0 });
            rows.len() - 1
        });
        rows[at].take(entry);
    }
    rows
}

impl<'t> Row<'t> {
    fn take(&mut self, entry: &'t Entry) {
        let at = entry.at;
        // In these, `attempt` is the count; in others, the number of the attempt.
        if matches!(entry.fact, Fact::ToolOutcome { .. } | Fact::AlternativeToolUsed { .. }) {
            self.attempts = self.attempts.max(entry.attempt);
        }
        match entry.fact {
            Fact::ToolStarted => self.spans.push(Span { from: at, to: at, runs: true }),
            Fact::RecoveryDecision { delay: Some(delay), .. } => {
                self.close(at);
                let again = at + delay;
                self.spans.push(Span { from: at, to: again, runs: false });
                self.spans.push(Span { from: again, to: again, runs: true });
            }
            Fact::AlternativeToolUsed { .. } => self.close(at),
            Fact::ToolOutcome { outcome, .. } => {
                self.close(at);
                self.end = Some((entry, outcome));
            }
            _ => {}
        }
    }

    /// Ends the running span, and drops spans that have not started.
    fn close(&mut self, at: Duration) {
        while self.spans.last().is_some_and(|span| span.from > at) {
            self.spans.pop();
        }
        if let Some(span) = self.spans.last_mut().filter(|span| span.runs || span.to > at) {
            span.to = at;
        }
    }

    fn ending(&self) -> String {
        let Some((entry, outcome)) = self.end else { return String::new() };
        let mut text = match (outcome, entry.fact.sentence(entry)) {
            (Outcome::Skipped, Some(sentence)) => sentence,
            _ => outcome.to_string(),
        };
        if self.attempts > 1 {
            text += &format!(", {} attempts", self.attempts);
        }
        if let Some(tool) = entry.tool.as_deref().filter(|tool| *tool != self.tool) {
            text += &format!(", by {tool}");
        }
        text
    }
}

/// `█` where it ran, `░` where it waited for the next attempt.
fn bar(spans: &[Span], total: Duration) -> String {
    let column = |at: Duration| {
        let share = if total.is_zero() { 0.0 } else { at.div_duration_f64(total) };
        ((share * WIDTH as f64).round() as usize).min(WIDTH)
    };
    let mut cells = [' '; WIDTH];
    for span in spans {
        let from = column(span.from).min(WIDTH - 1);
        // At least one column, without hiding others.
        let to = column(span.to).max(from + 1);
        for cell in &mut cells[from..to] {
            match (span.runs, *cell) {
                (true, ' ') => *cell = '█',
                (false, ' ') => *cell = '░',
                _ => {}
            }
        }
    }
    cells.iter().collect()
}

/// The line of an entry, if it has one.
fn note(entry: &Entry) -> Option<String> {
    Some(match &entry.fact {
        Fact::ToolTimeout { after } => format!("timeout after {}", HumanDuration(*after)),
        Fact::ToolError { error, verdict, reason, breaker, .. } => {
            let circuit = match breaker {
                BreakerState::Closed => String::new(),
                other => format!("; circuit {}", other.as_str()),
            };
            let class = class(*verdict);
            format!("attempt {}: {error} [{class}: {reason}{circuit}]", entry.attempt.max(1))
        }
        Fact::RecoveryDecision { decision, reason, delay } => match delay {
            Some(delay) if delay.is_zero() => format!("→ {decision} at once: {reason}"),
            Some(delay) => format!("→ {decision} in {}: {reason}", HumanDuration(*delay)),
            None => format!("→ {decision}: {reason}"),
        },
        Fact::ToolOutcome { outcome: Outcome::Success, .. } if entry.attempt <= 1 => return None,
        Fact::ToolOutcome { outcome: Outcome::Success, .. }
        | Fact::CircuitBreaker { .. }
        | Fact::DefaultValueUsed { .. }
        | Fact::AlternativeToolUsed { .. } => entry.fact.sentence(entry)?,
        Fact::Escalated { message } => format!("! {message}"),
        _ => return None,
    })
}

/// `50 ms`, `1.5 s`, `300 s`: at most three significant digits.
struct HumanDuration(Duration);

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_secs_f64() * 1e3;
        let text = match millis {
            _ if self.0.is_zero() => "0 s".to_owned(),
            ..0.9995 => format!("{:.0} µs", millis * 1e3),
            ..999.5 => format!("{millis:.0} ms"),
            _ if self.0.subsec_nanos() == 0 => format!("{} s", self.0.as_secs()),
            ..99_950.0 => format!("{:.1} s", millis / 1e3),
            _ => format!("{:.0} s", millis / 1e3),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (millis, text) in [
            (0.0, "0 s"),
            (0.25, "250 µs"),
            (50.0, "50 ms"),
            (1500.0, "1.5 s"),
            (20e3, "20 s"),
            (300e3, "300 s"),
        ] {
            assert_eq!(HumanDuration(Duration::from_secs_f64(millis / 1e3)).to_string(), text);
        }
    }
}
