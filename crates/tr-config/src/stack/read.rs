//! Reads a configuration from a text, and settings in variables of the environment over it.
use super::{
    Config,
    form::CheckedConfig,
    variable::{PREFIX, Variable, put},
};
use crate::catalog::CatalogError;
use serde_json::{Map, Value};
use std::collections::HashSet;
use tr_wire::EnvelopeFault;
#[cfg(feature = "toml")]
use tr_wire::read::toml_text;
use tr_wire::read::{Faults, Strictness, text};

const WHAT: &str = "the configuration";

impl Config {
    /// Reads a configuration in JSON.
    ///
    /// # Errors
    /// Names every mistake with its line.
    pub fn from_json(json: &str) -> Result<Self, CatalogError> {
        Self::from_json_with(json, NOTHING)
    }

    /// Reads a configuration in JSON with variables over it.
    ///
    /// # Errors
    /// Names every mistake with its line or its variable.
    pub fn from_json_with<N, V>(
        json: &str,
        vars: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, CatalogError>
    where
        N: AsRef<str>,
        V: AsRef<str>,
    {
        let mut faults = Faults::of_configuration(json);
        let config = text::<CheckedConfig>(json, Strictness::Canonical, &mut faults);
        over(File { config, faults, text: json }, || serde_json::from_str(json).ok(), vars)
    }

    /// Reads a configuration in TOML.
    ///
    /// # Errors
    /// Names every mistake with its line.
    #[cfg(feature = "toml")]
    pub fn from_toml(toml: &str) -> Result<Self, CatalogError> {
        Self::from_toml_with(toml, NOTHING)
    }

    /// Reads a configuration in TOML with variables over it.
    ///
    /// # Errors
    /// Names every mistake with its line or its variable.
    #[cfg(feature = "toml")]
    pub fn from_toml_with<N, V>(
        toml: &str,
        vars: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, CatalogError>
    where
        N: AsRef<str>,
        V: AsRef<str>,
    {
        let mut faults = Faults::of_configuration(toml);
        let config = toml_text::<CheckedConfig>(toml, &mut faults);
        over(File { config, faults, text: toml }, || toml::from_str(toml).ok(), vars)
    }
}

/// No variables.
const NOTHING: [(&str, &str); 0] = [];

/// A file that was read: its configuration, what is wrong with it, and its text.
struct File<'t> {
    config: Option<Config>,
    faults: Faults,
    text: &'t str,
}

/// The configuration of a file with variables over it; `members` are the file's, if it is good.
fn over<N: AsRef<str>, V: AsRef<str>>(
    file: File<'_>,
    members: impl FnOnce() -> Option<Map<String, Value>>,
    vars: impl IntoIterator<Item = (N, V)>,
) -> Result<Config, CatalogError> {
    let File { config, mut faults, text: file } = file;
    let config = config.filter(|_| faults.is_empty());
    let variables: Vec<_> = vars.into_iter().filter_map(Variable::read).collect();
    if let (Some(config), true) = (&config, variables.is_empty()) {
        return Ok(config.clone());
    }
    // If the file is bad, what is wrong with the variables is still said.
    let mut root = config.and_then(|_| members()).unwrap_or_default();
    let mut places = HashSet::new();
    for Variable { name, value } in variables {
        let is_new = places.insert(name.to_ascii_lowercase());
        if !is_new || put(&mut root, &name[PREFIX.len()..], value).is_none() {
            faults.push(EnvelopeFault::new(
                name,
                "each setting once",
                "a second variable for the same setting",
            ));
        }
    }
    let json = Value::Object(root).to_string();
    let mut found = Faults::of_configuration(&json);
    let config = text::<CheckedConfig>(&json, Strictness::Canonical, &mut found);
    named(found, &mut faults);
    match config {
        Some(config) if faults.is_empty() => Ok(config),
        _ => Err(CatalogError::of(WHAT, faults, file)),
    }
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
