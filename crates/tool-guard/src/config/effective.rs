//! Every setting with its value and its origin: defaults, under the file, under variables, under options.
use clap::ValueEnum;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tool_reliability::config::Preset;
use tr_config::{
    schemas,
    settings::{Origin, Setting},
};

/// Who reads the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Door {
    /// tool-guard mcp
    Mcp,
    /// tool-guard turn
    Turn,
    /// A program that builds a stack with tool-reliability
    Program,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum From {
    Default,
    /// A default of `tool-guard` or of the preset, which differs from the stack's.
    Preset(&'static str),
    Line(usize),
    Variable(String),
    Option(&'static str),
}

impl From {
    /// Whether the operator has not set it.
    const fn is_default(&self) -> bool {
        matches!(self, Self::Default | Self::Preset(_))
    }
}

/// A whole configuration.
#[derive(Debug)]
pub(crate) struct Effective {
    /// The values by their paths, and where each comes from. A path that leads further is a table.
    pub(super) values: BTreeMap<Vec<String>, (Value, From)>,
}

/// What is set for each effect.
const EFFECTS: [&str; 3] = ["read_only", "idempotent", "mutating"];

impl Effective {
    /// Joins the settings of a file and of variables with the options of the command line.
    pub(super) fn new(
        settings: Vec<Setting>,
        options: Vec<(&'static str, Value, &'static str)>,
        door: Door,
    ) -> Self {
        let said = settings.iter().find(|setting| setting.path == ["preset"]);
        let said = said.and_then(|setting| {
            Preset::ALL.into_iter().find(|preset| Some(preset.name()) == setting.value.as_str())
        });
        let preset = said.unwrap_or(match door {
            Door::Turn => Preset::ErrorHandling,
            Door::Mcp | Door::Program => Preset::ToolReliability,
        });
        let mut all = Self { values: BTreeMap::new() };
        let stack = schemas::defaults(Preset::ToolReliability);
        all.fill(&mut Vec::new(), &schemas::defaults(preset), &|path, value| {
            let at = path.iter().try_fold(&stack, |table, part| table.get(part));
            if at == Some(value) { From::Default } else { From::Preset(preset.name()) }
        });
        for (path, value) in of_door(door) {
            all.put(dotted(path), value, From::Preset(door.name()));
        }
        for Setting { path, value, origin, .. } in settings {
            let from = match origin {
                Origin::Line(line) => From::Line(line),
                Origin::Variable(name) => From::Variable(name),
                _ => From::Default,
            };
            all.put(path, value, from);
        }
        for (path, value, option) in options {
            all.put(dotted(path), value, From::Option(option));
        }
        if door != Door::Program {
            // To name the default store is to insist on it.
            all.remove_default("records.where");
        }
        all.complete(door);
        all.drop_overruled();
        all
    }

    /// Adds defaults.
    fn fill(
        &mut self,
        path: &mut Vec<String>,
        defaults: &Value,
        from: &impl Fn(&[String], &Value) -> From,
    ) {
        let Some(table) = defaults.as_object() else {
            return self.put(path.clone(), defaults.clone(), from(path, defaults));
        };
        for (name, value) in table {
            path.push(name.clone());
            self.fill(path, value, from);
            path.pop();
        }
    }

    /// Sets a value. It takes the place of a table, and a table on its path that of a value.
    fn put(&mut self, path: Vec<String>, value: Value, from: From) {
        self.values.retain(|known, _| !known.starts_with(&path) && !path.starts_with(known));
        self.values.insert(path, (value, from));
    }

    fn is_table(&self, path: &[String]) -> bool {
        let is_in = |known: &Vec<String>| known.len() > path.len() && known.starts_with(path);
        self.values.keys().any(is_in)
    }

    fn is_there(&self, path: &[String]) -> bool {
        self.values.contains_key(path) || self.is_table(path)
    }

    fn is_said(&self, path: &str) -> bool {
        self.values.get(&dotted(path)).is_some_and(|(_, from)| !from.is_default())
    }

    fn remove_default(&mut self, path: &str) {
        if !self.is_said(path) {
            self.values.remove(&dotted(path));
        }
    }

    /// Adds the defaults of sections that do nothing unless they are there, and the signals of loops,
    /// which depend on the mode.
    fn complete(&mut self, door: Door) {
        if door == Door::Mcp {
            let mode = self.values.get(&dotted("loops.mode"));
            let is_noted = mode.is_some_and(|(mode, _)| mode == "note" || mode == "block");
            let signals = self.values.get(&dotted("loops.signals")).cloned();
            let from = From::Preset(Door::Mcp.name());
            let enabled = match signals {
                Some((_, said)) if said.is_default() && is_noted => Some(from.clone()),
                Some((Value::Bool(true), said)) => Some(said),
                _ => None,
            };
            if let Some(from) = enabled {
                self.put(dotted("loops.signals.enabled"), json!(true), from);
            }
            if self.is_table(&dotted("loops.signals")) {
                self.put(dotted("loops.signals.refuse"), json!(false), from);
            }
        }
        for (place, defaults) in schemas::section_defaults() {
            let place = dotted(place);
            if !self.is_table(&place) {
                continue;
            }
            for (name, value) in defaults.as_object().into_iter().flatten() {
                let path = [&*place, std::slice::from_ref(name)].concat();
                if !self.is_there(&path) {
                    self.values.insert(path, (value.clone(), From::Default));
                }
            }
        }
    }

    /// Removes the defaults that a setting overrules: those of effects, and `jitter` where `jitter_percent` is set.
    fn drop_overruled(&mut self) {
        if self.is_said("retry.jitter_percent") {
            self.remove_default("retry.jitter");
        }
        for name in ["consecutive", "failure_rate", "cooldown_ms"] {
            if self.is_said(&format!("breaker.{name}")) {
                EFFECTS.iter().for_each(|it| self.remove_default(&format!("breaker.{it}.{name}")));
            }
        }
    }

    /// The keys without a value, in the order of their names; of tables without any, only the table.
    pub(super) fn unset(&self) -> Vec<String> {
        let mut unset: Vec<String> = Vec::new();
        for key in schemas::keys(&schemas::config()) {
            let (path, name) = (&key.path[..], key.name());
            let is_within = unset
                .iter()
                .any(|table| name.strip_prefix(&**table).is_some_and(|n| n.starts_with('.')));
            let is_named = path.iter().any(|part| part == "*");
            let skip = is_named || is_within || path[0] == "defaults";
            if !skip && !self.is_there(path) && !self.values.contains_key(&path[..path.len() - 1]) {
                unset.push(name);
            }
        }
        unset
    }
}

fn dotted(path: &str) -> Vec<String> {
    path.split('.').map(str::to_owned).collect()
}

impl Door {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Mcp => "tool-guard mcp",
            Self::Turn => "tool-guard turn",
            Self::Program => "a program",
        }
    }
}

/// The defaults of `tool-guard` that differ from the stack's.
fn of_door(door: Door) -> Vec<(&'static str, Value)> {
    let records = vec![
        ("silent_failures", json!(false)),
        ("idempotency.failed_ttl_ms", json!(0)),
        ("idempotency.inflight_ttl_ms", json!(30_000)),
        ("idempotency.unknown_ttl_ms", json!(2_592_000_000_u64)),
    ];
    let own = match door {
        Door::Program => return Vec::new(),
        Door::Turn => vec![("loops.enabled", json!(false))],
        Door::Mcp => {
            vec![("attempt_timeout_ms", json!(58_000)), ("idempotency.derived_keys", json!("off"))]
        }
    };
    [records, own].concat()
}
