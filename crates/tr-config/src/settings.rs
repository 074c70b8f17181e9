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
//! use tr_config::{
//!     Language,
//!     settings::{Origin, settings},
//! };
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
    Language,
    catalog::CatalogError,
    schemas::{self, Key},
    stack::{
        Config, PREFIX,
        read::values,
        variable::{Variable, put},
    },
};
use serde_json::Value;
use std::collections::HashMap;
use tr_wire::read::{Faults, Source, configuration};

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
    Config::from_text(file, language, pairs())?;
    let keys = schemas::keys(&schemas::config());
    let mut faults = Faults::of_configuration(file);
    let found = configuration(file, language, &mut faults, |node, faults| {
        let mut root = values(node, faults)?;
        let mut places = Vec::new();
        for Variable { name, value } in pairs().filter_map(Variable::read) {
            let place = put(&mut root, &name[PREFIX.len()..], value);
            places.extend(place.map(|place| (place, name)));
        }
        let mut found = Vec::new();
        let mut see = |path: &Vec<String>, value: &Value, source: Option<Source<'_>>| {
            let variable = places.iter().find(|(place, _)| path.starts_with(place));
            let origin = match variable {
                Some((_, name)) => Origin::Variable(name.clone()),
                None => {
                    let offset = source.map_or(0, |source| source.offset(faults));
                    Origin::Line(file[..offset.min(file.len())].matches('\n').count() + 1)
                }
            };
            found.push(Setting { path: path.clone(), value: value.clone(), origin });
        };
        walk(&Value::Object(root), Some(node.source), &mut Vec::new(), &keys, &mut see);
        Some(found)
    });
    let mut found = found.unwrap_or_default();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Visits all values that are not tables of keys, with what the file has there.
fn walk(
    value: &Value,
    source: Option<Source<'_>>,
    path: &mut Vec<String>,
    keys: &[Key],
    see: &mut impl FnMut(&Vec<String>, &Value, Option<Source<'_>>),
) {
    let table = value.as_object().filter(|_| path.is_empty() || is_table(path, keys));
    let Some(table) = table.filter(|table| path.is_empty() || !table.is_empty()) else {
        see(path, value, source);
        return;
    };
    let members = source.and_then(|source| source.members().ok());
    let members: HashMap<_, _> = members.into_iter().flatten().collect();
    for (name, value) in table {
        path.push(name.clone());
        walk(value, members.get(&**name).copied(), path, keys, see);
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
