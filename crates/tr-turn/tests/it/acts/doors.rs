//! The places in a configuration at which one key can stand.
use serde_json::{Map, Value, json};
use tr_core::Effect;

/// What says who a tool is, or what only it can take.
pub(crate) const ONE_TOOL_S: [&str; 6] =
    ["name", "action", "input_schema", "default_value", "depends_on", "alternatives"];

pub(crate) struct Door {
    /// With dots.
    pub(crate) path: String,
    /// Of the calls by which it is seen.
    pub(crate) effect: Option<Effect>,
}

const EFFECTS: [(&str, Effect); 3] = [
    ("read_only", Effect::ReadOnly),
    ("idempotent", Effect::Idempotent),
    ("mutating", Effect::Mutating),
];

/// Where this key can stand, first of all there.
pub(crate) fn of(key: &str) -> Vec<Door> {
    let mut doors = vec![at(key, None)];
    let (section, rest) = key.split_once('.').unwrap_or((key, ""));
    match (section, rest) {
        ("retry", _) => doors.extend(both(key)),
        ("breaker", "consecutive" | "failure_rate" | "cooldown_ms") => {
            doors.extend(each_effect(section, rest));
            doors.extend(both(key));
        }
        ("rollout", "mode" | "percent" | "others") => {
            doors.extend(each_effect(section, rest));
            doors.push(at(&format!("rollout.tools.search.{rest}"), None));
        }
        _ => {}
    }
    if let Some(of_tool) = key.strip_prefix("tools.search.")
        && !ONE_TOOL_S.contains(&of_tool)
    {
        doors.push(at(&format!("defaults.{of_tool}"), None));
    }
    doors
}

fn at(path: &str, effect: Option<Effect>) -> Door {
    Door { path: path.into(), effect }
}

fn both(key: &str) -> [Door; 2] {
    [at(&format!("tools.search.{key}"), None), at(&format!("defaults.{key}"), None)]
}

fn each_effect(section: &str, key: &str) -> impl Iterator<Item = Door> {
    EFFECTS
        .into_iter()
        .map(move |(name, effect)| at(&format!("{section}.{name}.{key}"), Some(effect)))
}

impl Door {
    /// A configuration that says `beside`, and at this place `value`.
    pub(crate) fn config(&self, beside: &str, value: Option<&str>) -> Value {
        let parse = |text: &str| -> Value {
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
        };
        let mut config = json!({});
        let mut beside = match beside {
            "" => json!({}),
            text => parse(&format!("{{{text}}}")),
        };
        // Defaults are those of the tools that are listed.
        if self.path.starts_with("defaults.") {
            place(&mut config, "tools.search");
        }
        let (section, key) = self.path.rsplit_once('.').unwrap_or(("", &self.path));
        if let Some(near) = beside.as_object_mut().and_then(|beside| beside.remove("@")) {
            merge(place(&mut config, section), near);
        }
        merge(&mut config, beside);
        if let Some(value) = value {
            merge(place(&mut config, section), json!({ key: parse(value) }));
        }
        config
    }
}

fn place<'c>(config: &'c mut Value, path: &str) -> &'c mut Value {
    path.split('.').filter(|name| !name.is_empty()).fold(config, |at, name| {
        let members = at.as_object_mut().expect("sections are objects");
        members.entry(name).or_insert_with(|| Value::Object(Map::new()))
    })
}

fn merge(into: &mut Value, other: Value) {
    match (into, other) {
        (Value::Object(into), Value::Object(other)) => {
            for (name, value) in other {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, other) => *into = other,
    }
}
