//! Reads a configuration from a text, and settings in variables of the environment over it.
use super::{
    Config,
    check::relations,
    variable::{PREFIX, Variable, put},
};
use crate::catalog::CatalogError;
use serde_json::{Map, Value};
use std::collections::HashSet;
use tr_wire::{
    EnvelopeFault,
    read::{Faults, Language, Node, Shape as _, configuration},
};

const WHAT: &str = "the configuration";

impl Config {
    /// Reads a configuration in JSON.
    ///
    /// # Errors
    /// Names every mistake with its line.
    pub fn from_json(json: &str) -> Result<Self, CatalogError> {
        Self::from_text(json, Language::Json, NOTHING)
    }

    /// Reads a configuration in TOML.
    ///
    /// # Errors
    /// Names every mistake with its line.
    #[cfg(feature = "toml")]
    pub fn from_toml(toml: &str) -> Result<Self, CatalogError> {
        Self::from_text(toml, Language::Toml, NOTHING)
    }

    /// Reads a configuration in this language, with variables over it.
    ///
    /// # Errors
    /// Names every mistake with its line or its variable.
    pub fn from_text<N: AsRef<str>, V: AsRef<str>>(
        text: &str,
        language: Language,
        vars: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, CatalogError> {
        let mut faults = Faults::of_configuration(text);
        let config = configuration(text, language, &mut faults, checked);
        let config = config.filter(|_| faults.is_empty());
        let variables: Vec<_> = vars.into_iter().filter_map(Variable::read).collect();
        let mut root = Map::new();
        match config {
            Some(config) if variables.is_empty() => return Ok(config),
            Some(_) => {
                root = configuration(text, language, &mut faults, values).unwrap_or_default();
            }
            // If the file is bad, what is wrong with the variables is still said.
            None => {}
        }
        let mut places = HashSet::new();
        for Variable { name, value } in variables {
            let is_new = places.insert(name.to_ascii_lowercase());
            if !is_new || put(&mut root, &name[PREFIX.len()..], value).is_none() {
                faults.add(name, "each setting once", "a second variable for the same setting");
            }
        }
        let json = Value::Object(root).to_string();
        let mut found = Faults::of_configuration(&json);
        let config = configuration(&json, Language::Json, &mut found, checked);
        named(found, &mut faults);
        match config {
            Some(config) if faults.is_empty() => Ok(config),
            _ => Err(CatalogError::of(WHAT, faults, text)),
        }
    }
}

/// No variables.
const NOTHING: [(&str, &str); 0] = [];

/// A configuration whose settings do not contradict each other.
fn checked(node: &Node<'_>, faults: &mut Faults) -> Option<Config> {
    let config = Config::read(node, faults)?;
    relations(&config, faults);
    Some(config)
}

/// The values of a table.
pub(crate) fn values(node: &Node<'_>, _: &mut Faults) -> Option<Map<String, Value>> {
    serde_json::from_str(node.source.json().get()).ok()
}

/// Adds faults under the names of variables in place of pointers.
fn named(found: Faults, faults: &mut Faults) {
    for fault in found.into_sorted().0 {
        let place = fault.pointer().trim_start_matches('/').replace('/', "__");
        let name = format!("{PREFIX}{}", place.to_ascii_uppercase());
        let mut renamed = EnvelopeFault::new(name, fault.expected().to_owned(), fault.found());
        if let Some(hint) = fault.suggestion() {
            renamed = renamed.hint(hint);
        }
        faults.push(renamed);
    }
}
