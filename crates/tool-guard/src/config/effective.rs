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

/// A key of the configuration: a table, or a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Table(BTreeMap<String, Self>),
    Value(Value, From),
}

/// A whole configuration.
#[derive(Debug)]
pub(crate) struct Effective {
    pub(super) root: Node,
    /// Keys that have no value.
    pub(super) unset: Vec<String>,
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
        let mut root = Node::Table(BTreeMap::new());
        let stack = schemas::defaults(Preset::ToolReliability);
        root.fill(&mut Vec::new(), &schemas::defaults(preset), &|path, value| {
            let at = path.iter().try_fold(&stack, |table, part| table.get(part));
            if at == Some(value) { From::Default } else { From::Preset(preset.name()) }
        });
        for (path, value) in of_door(door) {
            root.put(&path.split('.').collect::<Vec<_>>(), value, From::Preset(door.name()));
        }
        for Setting { path, value, origin, .. } in settings {
            let from = match origin {
                Origin::Line(line) => From::Line(line),
                Origin::Variable(name) => From::Variable(name),
                _ => From::Default,
            };
            let path: Vec<_> = path.iter().map(String::as_str).collect();
            root.put(&path, value, from);
        }
        for (path, value, option) in options {
            root.put(&path.split('.').collect::<Vec<_>>(), value, From::Option(option));
        }
        if door != Door::Program
            && let Some(records) = root.table_mut(&["records"])
            && matches!(records.get("where"), Some(Node::Value(_, from)) if from.is_default())
        {
            // To name the default store is to insist on it.
            records.remove("where");
        }
        root.complete(door);
        root.drop_overruled();
        let unset = unset(&root);
        Self { root, unset }
    }
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
        ("idempotency.failed_ttl_ms", json!(1)),
        ("idempotency.inflight_ttl_ms", json!(30_000)),
        ("idempotency.unknown_ttl_ms", json!(2_592_000_000_u64)),
    ];
    let own = match door {
        Door::Program => return Vec::new(),
        Door::Turn => vec![("loops.enabled", json!(false))],
        Door::Mcp => {
            vec![("attempt_timeout_ms", json!(50_000)), ("idempotency.derived_keys", json!("off"))]
        }
    };
    [records, own].concat()
}

impl Node {
    /// Adds defaults.
    fn fill<'p>(
        &mut self,
        path: &mut Vec<&'p str>,
        defaults: &'p Value,
        from: &impl Fn(&[&str], &Value) -> From,
    ) {
        match defaults.as_object() {
            None => self.put(path, defaults.clone(), from(path, defaults)),
            Some(table) => {
                for (name, value) in table {
                    path.push(name);
                    self.fill(path, value, from);
                    path.pop();
                }
            }
        }
    }

    /// Sets a value; the tables that lead to it are made.
    fn put(&mut self, path: &[&str], value: Value, from: From) {
        match path {
            [] => *self = Self::Value(value, from),
            [name, rest @ ..] => {
                if !matches!(self, Self::Table(_)) {
                    *self = Self::Table(BTreeMap::new());
                }
                if let Self::Table(table) = self {
                    let inner = table.entry((*name).to_owned());
                    inner.or_insert_with(|| Self::Table(BTreeMap::new())).put(rest, value, from);
                }
            }
        }
    }

    pub(super) fn get(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, name| match node {
            Self::Table(table) => table.get(*name),
            Self::Value(..) => None,
        })
    }

    fn table_mut(&mut self, path: &[&str]) -> Option<&mut BTreeMap<String, Self>> {
        let node = path.iter().try_fold(self, |node, name| match node {
            Self::Table(table) => table.get_mut(*name),
            Self::Value(..) => None,
        })?;
        match node {
            Self::Table(table) => Some(table),
            Self::Value(..) => None,
        }
    }

    /// Adds the defaults of sections that do nothing unless they are there, and the signals of loops,
    /// which depend on the mode.
    fn complete(&mut self, door: Door) {
        let is_noted = matches!(self.get(&["loops", "mode"]),
            Some(Self::Value(mode, _)) if mode == "note" || mode == "block");
        let signals = ["loops", "signals"];
        if door == Door::Mcp {
            let from = From::Preset(Door::Mcp.name());
            match self.get(&signals) {
                Some(Self::Value(_, said)) if said.is_default() && is_noted => {
                    self.put(&["loops", "signals", "enabled"], json!(true), from.clone());
                }
                Some(Self::Value(Value::Bool(true), said)) => {
                    let said = said.clone();
                    self.put(&["loops", "signals", "enabled"], json!(true), said);
                }
                _ => {}
            }
            if self.table_mut(&signals).is_some() {
                self.put(&["loops", "signals", "refuse"], json!(false), from);
            }
        }
        for (place, defaults) in schemas::section_defaults() {
            let place: Vec<_> = place.split('.').collect();
            let Some(table) = self.table_mut(&place) else { continue };
            for (name, value) in defaults.as_object().into_iter().flatten() {
                let default = || Self::Value(value.clone(), From::Default);
                table.entry(name.clone()).or_insert_with(default);
            }
        }
    }

    /// Removes the defaults that a setting overrules: those of effects, and `jitter` where `jitter_percent` is set.
    fn drop_overruled(&mut self) {
        let is_said =
            |node: Option<&Self>| matches!(node, Some(Self::Value(_, from)) if !from.is_default());
        if is_said(self.get(&["retry", "jitter_percent"]))
            && !is_said(self.get(&["retry", "jitter"]))
            && let Some(retry) = self.table_mut(&["retry"])
        {
            retry.remove("jitter");
        }
        for name in ["consecutive", "failure_rate", "cooldown_ms"] {
            if !is_said(self.get(&["breaker", name])) {
                continue;
            }
            for effect in EFFECTS {
                let Some(table) = self.table_mut(&["breaker", effect]) else { continue };
                if matches!(table.get(name), Some(Self::Value(_, from)) if from.is_default()) {
                    table.remove(name);
                }
            }
        }
    }
}

/// The keys without a value, in the order of their names; of tables without any, only the table.
fn unset(root: &Node) -> Vec<String> {
    let mut unset: Vec<String> = Vec::new();
    for key in schemas::keys(&schemas::config()) {
        let is_named = key.path.iter().any(|part| part == "*");
        let path: Vec<_> = key.path.iter().map(String::as_str).collect();
        let name = key.name();
        let is_within = unset
            .iter()
            .any(|table| name.strip_prefix(&**table).is_some_and(|n| n.starts_with('.')));
        let skip = is_named || is_within || path[0] == "defaults";
        if !skip
            && root.get(&path).is_none()
            && !matches!(root.get(&path[..path.len() - 1]), Some(Node::Value(..)))
        {
            unset.push(name);
        }
    }
    unset
}
