//! A configuration in variables of the environment.
use super::{Config, ConfigForm, finish};
use crate::{
    catalog::CatalogError,
    wire::{
        Fault,
        fault::Faults,
        read::{Strictness, text},
    },
};
use serde_json::{Map, Value};

/// What the name of a variable with a setting begins with.
pub const PREFIX: &str = "TOOL_RELIABILITY__";

impl Config {
    /// Reads the variables that begin with [`PREFIX`]; the others are not looked at.
    ///
    /// What follows the prefix is the setting's place, its parts joined by two underscores, in any
    /// case: `TOOL_RELIABILITY__BREAKER__COOLDOWN_MS=5000`. Values are JSON where they can be
    /// (`5000`, `true`, `[0.5, 1]`), else text (`shadow`).
    ///
    /// # Errors
    /// Names every mistake with its variable.
    pub fn from_vars<N, V>(vars: impl IntoIterator<Item = (N, V)>) -> Result<Self, CatalogError>
    where
        N: AsRef<str>,
        V: AsRef<str>,
    {
        let mut root = Map::new();
        let mut twice = Vec::new();
        for (name, value) in vars {
            let Some(place) = name.as_ref().strip_prefix(PREFIX) else { continue };
            let value = value.as_ref();
            let value =
                serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
            if !put(&mut root, &place.to_ascii_lowercase(), value) {
                twice.push(name.as_ref().to_owned());
            }
        }
        let json = Value::Object(root).to_string();
        let mut faults = Faults::of_configuration(&json);
        let form = text::<ConfigForm>(&json, Strictness::Canonical, &mut faults);
        let config = finish(form, &mut faults);
        match config.filter(|_| twice.is_empty()) {
            Some(config) => Ok(config),
            None => Err(CatalogError::of("the environment", named(faults, twice), "")),
        }
    }
}

/// Puts a value at its place; `false` if another variable is in the way.
fn put(map: &mut Map<String, Value>, place: &str, value: Value) -> bool {
    let Some((first, rest)) = place.split_once("__") else {
        return map.insert(place.to_owned(), value).is_none();
    };
    let inner = map.entry(first).or_insert_with(|| Value::Object(Map::new()));
    inner.as_object_mut().is_some_and(|inner| put(inner, rest, value))
}

/// The same faults with the names of variables in place of pointers.
fn named(faults: Faults, twice: Vec<String>) -> Faults {
    let (found, _) = faults.into_sorted();
    let mut faults = Faults::of_configuration("");
    for name in twice {
        faults.push(Fault::new(name, "each setting once", "a setting that another variable has"));
    }
    for fault in found {
        let place = fault.pointer().trim_start_matches('/').replace('/', "__");
        let name = format!("{PREFIX}{}", place.to_ascii_uppercase());
        let mut renamed = Fault::new(name, fault.expected().to_owned(), fault.found());
        if let Some(hint) = fault.suggestion() {
            renamed = renamed.hint(hint);
        }
        faults.push(renamed);
    }
    faults
}
