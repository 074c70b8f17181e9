//! A trace as JSON lines.
use super::{Entry, Fact, Trace};
use serde_json::{Value, json};
use std::fmt::Write as _;
use tr_core::{Verdict, internal::millis, rfc3339};

impl Trace {
    /// The trace as JSON lines, one per entry, with `event_type`, `tool_id`, the members of the
    /// event, and `timestamp`; then `message`, `turn_id`, `call`, `attempt` and `at_ms`, the time
    /// since the turn started.
    #[must_use]
    pub fn to_json_lines(&self) -> String {
        let mut lines = String::new();
        for entry in &self.entries {
            let members = line(self, entry).into_iter();
            let members: Vec<_> =
                members.map(|(name, value)| format!("\"{name}\":{value}")).collect();
            let line = format!("{{{}}}", members.join(","));
            let _ = writeln!(lines, "{}", tr_core::printable_json(&line));
        }
        lines
    }
}

/// The members of one line, in order.
type Members = Vec<(&'static str, Value)>;

fn line(trace: &Trace, entry: &Entry) -> Members {
    let (event, own) = fact(&entry.fact);
    // Whole seconds, as required; `at_ms` is exact.
    let unix_ms = trace.began_ms.saturating_add(millis(entry.at));
    let whole = rfc3339(unix_ms - unix_ms % 1000).to_string().replace(".000Z", "Z");
    let mut line = vec![("event_type", json!(event))];
    line.extend(entry.tool.as_deref().map(|tool| ("tool_id", json!(tool))));
    line.extend(own);
    line.push(("timestamp", json!(whole)));
    line.extend(entry.fact.sentence(entry).map(|message| ("message", json!(message))));
    line.push(("turn_id", json!(&*trace.turn)));
    line.extend(entry.call.as_deref().map(|call| ("call", json!(call))));
    line.extend((entry.attempt > 0).then(|| ("attempt", json!(entry.attempt))));
    line.push(("at_ms", json!(millis(entry.at))));
    line
}

/// The name of the event, and its own members.
fn fact(fact: &Fact) -> (&'static str, Members) {
    match fact {
        Fact::TurnStarted { calls, timeout } => {
            let timeout = json!(millis(*timeout));
            ("TurnStarted", vec![("calls", json!(calls)), ("timeout_ms", timeout)])
        }
        Fact::ToolStarted => ("ToolStarted", vec![]),
        Fact::ToolTimeout { after } => ("ToolTimeout", vec![("timeout_ms", json!(millis(*after)))]),
        Fact::ToolError { code, error, verdict, reason, ran, breaker } => {
            let members = vec![
                ("code", json!(code)),
                ("error", json!(error)),
                ("classification", json!(class(*verdict))),
                ("reason", json!(reason)),
                ("ran", json!(ran)),
                ("circuit_breaker", json!(breaker)),
            ];
            ("ToolError", members)
        }
        Fact::CircuitBreaker { breaker, from, to } => {
            let breaker = ("circuit_breaker", json!(breaker));
            ("CircuitBreaker", vec![breaker, ("from", json!(from)), ("to", json!(to))])
        }
        Fact::RecoveryDecision { decision, reason, delay } => {
            let mut members = vec![("decision", json!(decision)), ("reason", json!(reason))];
            members.extend(delay.map(|delay| ("delay_ms", json!(millis(delay)))));
            ("RecoveryDecision", members)
        }
        Fact::DefaultValueUsed { instead_of } => {
            ("DefaultValueUsed", vec![("instead_of", json!(&**instead_of))])
        }
        Fact::AlternativeToolUsed { instead_of } => {
            ("AlternativeToolUsed", vec![("instead_of", json!(&**instead_of))])
        }
        Fact::ToolOutcome { outcome, ran, .. } => {
            ("ToolOutcome", vec![("outcome", json!(outcome.to_string())), ("ran", json!(ran))])
        }
        Fact::Escalated { .. } => ("Escalated", vec![]),
        Fact::TurnEnded { .. } => ("TurnEnded", vec![]),
    }
}

/// The required names of the classes.
pub(super) const fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Success => "Success",
        Verdict::Transient { .. } => "Transient",
        Verdict::Permanent => "Permanent",
        Verdict::Cancelled => "Cancelled",
    }
}
