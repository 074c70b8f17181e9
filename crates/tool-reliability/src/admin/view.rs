//! The state of a stack as JSON, without secrets.
use crate::{Mode, ToolStack, rollout::Rollout};
use serde_json::{Value, json};
use std::{collections::HashSet, sync::Arc};
use tr_breaker::BreakerHandle;
use tr_core::{ToolManifest, ToolOutcome};
use tr_idempotency::{
    DedupeRecord, StoreHandle,
    store::{StoreError, UnreadableRecord},
};
use tr_telemetry::redact::{REDACTED, Redact, Redactor};

/// What to do about records that cannot be read.
const FORGET: &str = "use the version that wrote them; if none did, find out whether the calls ran, then delete the \
                      records: tool-guard records forget KEY --force, or StoreHandle::clear";

/// The longest list that is shown.
const SHOWN: usize = 100;

/// The whole stack. If the store is unreachable, only its part is missing.
pub(super) async fn state(stack: &ToolStack, known: &[Arc<ToolManifest>]) -> Value {
    let redactor = Redactor::default();
    let switch = stack.kill_switch();
    let rollout = switch.rollout();
    let mut breakers = stack.breakers().all();
    breakers.push(stack.breakers().overflow());
    // Records that need a decision come first.
    breakers.sort_by_key(|breaker| {
        (breaker.state() == tr_core::BreakerState::Closed, breaker.name().to_owned())
    });
    let records = stack.records();
    let counts = records.counts();
    let mut shown = json!({
        "on": switch.is_on(),
        "mode": mode(&rollout),
        "rollout": rollout,
        "breakersInAll": breakers.len(),
        "breakers": breakers.iter().take(SHOWN).map(breaker).collect::<Vec<_>>(),
        "records": {
            "records": counts.records, "inflight": counts.inflight,
            "unknown": counts.unknown, "waiters": counts.waiters,
        },
        "stale": list(&records.stale()),
        "unknown": list(&records.unknown()),
    });
    if let Some(store) = records.in_store() {
        let lists = in_store(&store).await;
        shown["store"] = lists.unwrap_or_else(|error| json!({ "error": error.to_string() }));
    }
    redact(&mut shown, &redactor);
    withhold(&mut shown, known);
    shown
}

/// Leaves out the failure messages of tools with sensitive fields: they may quote them.
fn withhold(shown: &mut Value, known: &[Arc<ToolManifest>]) {
    let tools: Vec<_> = known.iter().filter(|tool| !tool.sensitive.is_empty()).collect();
    if tools.is_empty() {
        return;
    }
    for list in ["/stale", "/unknown", "/store/stale", "/store/unknown"] {
        let records = shown.pointer_mut(list).and_then(Value::as_array_mut);
        for record in records.into_iter().flatten() {
            let is_one = tools.iter().any(|tool| record["tool"] == *tool.tool.full_name());
            if let (true, Some(error)) = (is_one, record.get_mut("error")) {
                error["message"] = error["code"].clone();
            }
        }
    }
    let names: HashSet<String> = known.iter().map(|tool| tool.tool.to_string()).collect();
    for breaker in shown["breakers"].as_array_mut().into_iter().flatten() {
        let name = breaker["name"].as_str().unwrap_or_default();
        // That of what a tool reaches is called by both.
        let tool = name.rsplit_once(' ').map_or(name, |(tool, _)| tool);
        let name = if names.contains(name) { name } else { tool };
        let is_one = tools.iter().any(|tool| tool.tool.to_string() == name);
        // A breaker that is no tool's own may have heard of any.
        if (is_one || !names.contains(name)) && !breaker["lastFailure"].is_null() {
            breaker["lastFailure"] = REDACTED.into();
        }
    }
}

async fn in_store(store: &StoreHandle<ToolOutcome>) -> Result<Value, StoreError> {
    let stale = store.stale(store.lease(), SHOWN).await?;
    let unknown = store.unknown(SHOWN).await?;
    let mut shown = json!({ "stale": list(&stale.records), "unknown": list(&unknown.records) });
    if !unknown.unreadable.is_empty() {
        shown["unreadable"] = unknown.unreadable.iter().map(unreadable).collect();
        shown["whatToDo"] = FORGET.into();
    }
    Ok(shown)
}

/// The mode of all calls, where it is the same for all; else the rollout tells which has which.
fn mode(rollout: &Rollout) -> &'static str {
    rollout.uniform().map_or("by call", Mode::as_str)
}

/// One breaker.
pub(super) fn breaker(breaker: &BreakerHandle) -> Value {
    let counts = breaker.counts();
    json!({
        "name": breaker.name(),
        "state": breaker.state(),
        "mode": format!("{:?}", breaker.mode()).to_lowercase(),
        "calls": counts.calls,
        "failures": counts.failures,
        "consecutiveFailures": counts.consecutive_failures,
        "probes": counts.probes,
        "timeLeftMs": breaker.time_left().map(|left| left.as_millis() as u64),
        "lastFailure": breaker.last_failure().as_deref(),
    })
}

fn list(records: &[DedupeRecord]) -> Vec<Value> {
    let shown = records.iter().take(SHOWN);
    shown.filter_map(|record| serde_json::to_value(record).ok()).collect()
}

/// A record that cannot be read, with the members of those that can.
fn unreadable(record: &UnreadableRecord) -> Value {
    json!({
        "key": record.key.to_string(), "tool": record.tool, "state": "unreadable",
        "updatedAtMs": record.changed_at, "error": record.why,
    })
}

/// Hashes, which look like secrets and are none.
const HASHES: [&str; 3] = ["key", "owner", "paramsDigest"];

fn redact(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::String(text) => {
            let clean = redactor.redact(text);
            if clean != *text {
                *text = clean.into_owned();
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(|element| redact(element, redactor)),
        Value::Object(members) => {
            for (name, value) in members {
                if !HASHES.contains(&name.as_str()) {
                    redact(value, redactor);
                }
            }
        }
        _ => {}
    }
}
