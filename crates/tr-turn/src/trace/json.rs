//! A trace as JSON lines.
use super::{Entry, Fact, Trace};
use serde::{Serialize, Serializer, ser::SerializeMap};
use std::{fmt::Write as _, time::Duration};
use tr_core::{Verdict, rfc3339};

impl Trace {
    /// The trace as JSON lines, one per entry, with `event_type`, `tool_id`, the members of the
    /// event, and `timestamp`; then `message`, `turn_id`, `call`, `attempt` and `at_ms`, the time
    /// since the turn started.
    #[must_use]
    pub fn to_json_lines(&self) -> String {
        let mut lines = String::new();
        for entry in &self.entries {
            let line = serde_json::to_string(&Record { trace: self, entry });
            let line = line.expect("names and numbers");
            let _ = writeln!(lines, "{}", tr_core::printable_json(&line));
        }
        lines
    }
}

struct Record<'t> {
    trace: &'t Trace,
    entry: &'t Entry,
}

impl Serialize for Record<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { trace, entry } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("event_type", event_type(&entry.fact))?;
        if let Some(tool) = &entry.tool {
            map.serialize_entry("tool_id", &**tool)?;
        }
        fact(&entry.fact, &mut map)?;
        // Whole seconds, as required; `at_ms` is exact.
        let unix_ms = trace.began_ms.saturating_add(millis(entry.at));
        let whole = rfc3339(unix_ms - unix_ms % 1000).to_string().replace(".000Z", "Z");
        map.serialize_entry("timestamp", &whole)?;
        if let Some(message) = entry.fact.sentence(entry) {
            map.serialize_entry("message", &message)?;
        }
        map.serialize_entry("turn_id", &*trace.turn)?;
        if let Some(call) = &entry.call {
            map.serialize_entry("call", &**call)?;
        }
        if entry.attempt > 0 {
            map.serialize_entry("attempt", &entry.attempt)?;
        }
        map.serialize_entry("at_ms", &millis(entry.at))?;
        map.end()
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

const fn event_type(fact: &Fact) -> &'static str {
    match fact {
        Fact::TurnStarted { .. } => "TurnStarted",
        Fact::ToolStarted => "ToolStarted",
        Fact::ToolTimeout { .. } => "ToolTimeout",
        Fact::ToolError { .. } => "ToolError",
        Fact::CircuitBreaker { .. } => "CircuitBreaker",
        Fact::RecoveryDecision { .. } => "RecoveryDecision",
        Fact::DefaultValueUsed { .. } => "DefaultValueUsed",
        Fact::AlternativeToolUsed { .. } => "AlternativeToolUsed",
        Fact::ToolOutcome { .. } => "ToolOutcome",
        Fact::Escalated { .. } => "Escalated",
        Fact::TurnEnded { .. } => "TurnEnded",
    }
}

fn fact<M: SerializeMap>(fact: &Fact, map: &mut M) -> Result<(), M::Error> {
    match fact {
        Fact::TurnStarted { calls, timeout } => {
            map.serialize_entry("calls", calls)?;
            map.serialize_entry("timeout_ms", &millis(*timeout))
        }
        Fact::ToolTimeout { after } => map.serialize_entry("timeout_ms", &millis(*after)),
        Fact::ToolError { code, error, verdict, reason, ran, breaker } => {
            map.serialize_entry("code", code)?;
            map.serialize_entry("error", error)?;
            map.serialize_entry("classification", class(*verdict))?;
            map.serialize_entry("reason", reason)?;
            map.serialize_entry("ran", ran)?;
            map.serialize_entry("circuit_breaker", breaker)
        }
        Fact::CircuitBreaker { breaker, from, to } => {
            map.serialize_entry("circuit_breaker", breaker)?;
            map.serialize_entry("from", from)?;
            map.serialize_entry("to", to)
        }
        Fact::RecoveryDecision { decision, reason, delay } => {
            map.serialize_entry("decision", decision)?;
            map.serialize_entry("reason", reason)?;
            match delay {
                Some(delay) => map.serialize_entry("delay_ms", &millis(*delay)),
                None => Ok(()),
            }
        }
        Fact::DefaultValueUsed { instead_of } | Fact::AlternativeToolUsed { instead_of } => {
            map.serialize_entry("instead_of", &**instead_of)
        }
        Fact::ToolOutcome { outcome, ran, .. } => {
            map.serialize_entry("outcome", outcome.as_str())?;
            map.serialize_entry("ran", ran)
        }
        Fact::ToolStarted | Fact::Escalated { .. } | Fact::TurnEnded { .. } => Ok(()),
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
