//! What a configuration says, key by key, and where it says so.
//!
//! # When to use
//!
//! To show operators the origin of each setting, as `tool-guard config show` does. To set up a
//! stack, read a [`Config`].
//!
//! # Example
//!
//! ```
//! use tr_config::settings::{Language, Origin, settings};
//!
//! let file = "{\n\"breaker\": {\"window\": 30}}";
//! let vars = [("TOOL_RELIABILITY__RETRY__ATTEMPTS", "2")];
//! let said = settings(file, Language::Json, vars)?;
//! assert_eq!(said[0].path, ["breaker", "window"]);
//! assert_eq!(said[0].origin, Origin::Line(2));
//! assert_eq!(said[1].origin, Origin::Variable("TOOL_RELIABILITY__RETRY__ATTEMPTS".into()));
//! # Ok::<_, tr_config::CatalogError>(())
//! ```
use crate::{
    catalog::CatalogError,
    schemas::{self, Key},
    stack::{
        Config, PREFIX,
        variable::{Variable, put},
    },
};
use serde_json::{Map, Value};
use std::{borrow::Cow, collections::HashMap};
use tr_wire::read::{Faults, Kind, Node, Shape, Strictness, schemars, text};

/// The language of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Language {
    /// JSON.
    Json,
    /// TOML.
    #[cfg(feature = "toml")]
    Toml,
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Setting {
    /// The key's place.
    pub path: Vec<String>,
    /// Its value.
    pub value: Value,
    /// Where it is said.
    pub origin: Origin,
}

/// Where a setting is said.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// In this line of the file, from 1.
    Line(usize),
    /// In this variable.
    Variable(String),
}

/// Every setting of a configuration, in the order of their names. Variables win over the file.
///
/// # Errors
/// If the configuration has mistakes: names every one, as [`Config`] does.
pub fn settings<N: AsRef<str>, V: AsRef<str>>(
    file: &str,
    language: Language,
    vars: impl IntoIterator<Item = (N, V)>,
) -> Result<Vec<Setting>, CatalogError> {
    let vars: Vec<(String, String)> = vars
        .into_iter()
        .map(|(name, value)| (name.as_ref().into(), value.as_ref().into()))
        .collect();
    let pairs = || vars.iter().map(|(name, value)| (&**name, &**value));
    let mut faults = Faults::of_configuration(file);
    let tree = match language {
        Language::Json => {
            Config::from_json_with(file, pairs())?;
            text::<Tree>(file, Strictness::Canonical, &mut faults)
        }
        #[cfg(feature = "toml")]
        Language::Toml => {
            Config::from_toml_with(file, pairs())?;
            tr_wire::read::toml_text::<Tree>(file, &mut faults)
        }
    };
    let (mut root, mut lines) = (Map::new(), HashMap::new());
    if let Some((Value::Object(members), offsets)) = tree {
        root = members;
        lines = offsets;
    }
    let mut places = Vec::new();
    for Variable { name, value } in pairs().filter_map(Variable::read) {
        let place = put(&mut root, &name[PREFIX.len()..], value);
        places.extend(place.map(|place| (place, name)));
    }
    let keys = schemas::keys(&schemas::config());
    let mut found = Vec::new();
    walk(&Value::Object(root), &mut Vec::new(), &keys, &mut |path, value| {
        let variable = places.iter().find(|(place, _)| path.starts_with(place));
        let origin = match variable {
            Some((_, name)) => Origin::Variable(name.clone()),
            None => {
                let offset = lines.get(path).copied().unwrap_or_default();
                Origin::Line(file[..offset.min(file.len())].matches('\n').count() + 1)
            }
        };
        found.push(Setting { path: path.clone(), value: value.clone(), origin });
    });
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// The values of a text, and where each of them begins.
struct Tree;

impl Shape for Tree {
    type Value = (Value, HashMap<Vec<String>, usize>);

    fn expected() -> Cow<'static, str> {
        "a value".into()
    }

    fn read(node: &Node<'_>, faults: &mut Faults) -> Option<Self::Value> {
        let mut offsets = HashMap::new();
        let value = value_of(node, &mut Vec::new(), &mut offsets, faults);
        Some((value, offsets))
    }

    fn schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!(true)
    }
}

fn value_of(
    node: &Node<'_>,
    path: &mut Vec<String>,
    offsets: &mut HashMap<Vec<String>, usize>,
    faults: &Faults,
) -> Value {
    offsets.insert(path.clone(), node.source.offset(faults));
    match node.source.members() {
        Ok(members) if node.source.kind() == Kind::Object => {
            let mut map = Map::new();
            for (name, source) in members {
                path.push(name.to_string());
                map.insert(
                    name.into(),
                    value_of(&Node::new(node.at, source), path, offsets, faults),
                );
                path.pop();
            }
            Value::Object(map)
        }
        _ => serde_json::from_str(node.source.json().get()).unwrap_or_default(),
    }
}

/// Visits all values that are not tables of keys.
fn walk(
    value: &Value,
    path: &mut Vec<String>,
    keys: &[Key],
    see: &mut impl FnMut(&Vec<String>, &Value),
) {
    let table = value.as_object().filter(|_| path.is_empty() || is_table(path, keys));
    let Some(table) = table.filter(|table| path.is_empty() || !table.is_empty()) else {
        see(path, value);
        return;
    };
    for (name, value) in table {
        path.push(name.clone());
        walk(value, path, keys, see);
        path.pop();
    }
}

/// Whether what is there is described key by key.
fn is_table(path: &[String], keys: &[Key]) -> bool {
    keys.iter().any(|key| match key.path.len() == path.len() {
        true => key.is_table && is_at(path, key),
        // A name that the operator chose.
        false => key.path.len() > path.len() && is_at(path, key),
    })
}

/// Whether this is the key's place, or leads to it.
fn is_at(path: &[String], key: &Key) -> bool {
    path.iter().zip(&key.path).all(|(name, part)| part == "*" || part == name)
}
