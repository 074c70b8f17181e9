//! The defaults of a configuration, written as a configuration: each is in the description of its key.
//! `tool-guard config show` and the published schema print them; a test compares them with the stack's own.
use super::keys::shapes;
use crate::stack::{Config, Preset};
use serde_json::{Map, Value, json};
use tr_wire::read::schema_of;

/// The defaults of a configuration with this preset. A key without a default is not there. A stack that is
/// configured with exactly these settings equals one that is configured with the preset alone.
#[must_use]
pub fn defaults(preset: Preset) -> Value {
    let mut all = described().0;
    all["preset"] = json!(preset.name());
    all["telemetry"]["show_params"] = json!({});
    match preset {
        Preset::ToolReliability => {}
        Preset::ErrorHandling => {
            all["attempt_timeout_ms"] = json!(30_000);
            all["retry"] = json!({
                "attempts": 5,
                "base_ms": 100,
                "multiplier": 2,
                "cap_ms": "none",
                "jitter": [0.9, 1.1],
                "anchor": "attempt_start",
                "max_elapsed_ms": "none",
                "only_codes": [],
            });
            let breaker = &mut all["breaker"];
            breaker["successes_to_close"] = json!(1);
            if let Some(breaker) = breaker.as_object_mut() {
                breaker.remove("read_only");
                breaker.remove("mutating");
            }
        }
        Preset::Utee => {
            all["attempt_timeout_ms"] = json!("none");
            all["retry"] = json!({
                "attempts": 3,
                "base_ms": 100,
                "multiplier": 2,
                "cap_ms": 5_000,
                "jitter": [0.8, 1.2],
                "anchor": "attempt_end",
                "max_elapsed_ms": "none",
                "only_codes": [],
            });
        }
    }
    all
}

/// The defaults of the sections that are off unless a configuration has them: each section's path
/// (`retry.budget`), and its keys.
#[must_use]
pub fn section_defaults() -> Vec<(&'static str, Value)> {
    described().1
}

/// Those sections.
const OFF: [&str; 3] = ["retry.budget", "loops.signals", "sessions"];

/// What the descriptions of the keys say, of `tool_reliability`.
fn described() -> (Value, Vec<(&'static str, Value)>) {
    let (_, schema) = schema_of::<Config>("stack-config", "Stack configuration");
    let mut off = Vec::new();
    (gather(&schema, &schema, "", &mut off).into(), off)
}

/// The defaults of a table's keys, those of its tables included.
fn gather(
    root: &Value,
    table: &Value,
    place: &str,
    off: &mut Vec<(&'static str, Value)>,
) -> Map<String, Value> {
    let mut all = Map::new();
    for (name, member) in table["properties"].as_object().into_iter().flatten() {
        let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
        let tables = shapes(root, member).into_iter();
        let within: Map<_, _> = tables.flat_map(|it| gather(root, it, &place, off)).collect();
        match OFF.into_iter().find(|section| *section == place) {
            Some(section) => off.push((section, within.into())),
            None if within.is_empty() => {}
            None => drop(all.insert(name.clone(), within.into())),
        }
        all.extend(member.get("default").map(|value| (name.clone(), value.clone())));
    }
    all
}
