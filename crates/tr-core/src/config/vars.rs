//! Settings in variables of the environment, put over those of a file.
use super::{Config, ConfigForm, WHAT, finish};
use crate::{
    catalog::CatalogError,
    wire::{
        EnvelopeFault,
        fault::Faults,
        read::{Strictness, text},
    },
};
use serde_json::{Map, Value};
use std::collections::HashSet;

/// What the name of a variable with a setting begins with.
pub const PREFIX: &str = "TOOL_RELIABILITY__";

/// A variable with a setting.
struct Variable {
    name: String,
    value: Value,
}

/// A file that was read: its form, what is wrong with it, and its text.
pub(super) struct File<'t> {
    pub(super) form: Option<ConfigForm>,
    pub(super) faults: Faults,
    pub(super) text: &'t str,
}

/// The configuration of a file with variables over it; `members` are the file's, if it is good.
pub(super) fn over<N: AsRef<str>, V: AsRef<str>>(
    file: File<'_>,
    members: impl FnOnce() -> Option<Map<String, Value>>,
    vars: impl IntoIterator<Item = (N, V)>,
) -> Result<Config, CatalogError> {
    let File { form, mut faults, text: file } = file;
    let config = finish(form, &mut faults);
    let variables: Vec<_> = vars.into_iter().filter_map(Variable::read).collect();
    if let (Some(config), true) = (&config, variables.is_empty()) {
        return Ok(config.clone());
    }
    // If the file is bad, what is wrong with the variables is still said.
    let mut root = config.and_then(|_| members()).unwrap_or_default();
    let mut places = HashSet::new();
    for Variable { name, value } in variables {
        let is_new = places.insert(name.to_ascii_lowercase());
        if !is_new || !put(&mut root, &name[PREFIX.len()..], value) {
            faults.push(EnvelopeFault::new(
                name,
                "each setting once",
                "a second variable for the same setting",
            ));
        }
    }
    let json = Value::Object(root).to_string();
    let mut found = Faults::of_configuration(&json);
    let form = text::<ConfigForm>(&json, Strictness::Canonical, &mut found);
    let config = finish(form, &mut found);
    named(found, &mut faults);
    match config {
        Some(config) if faults.is_empty() => Ok(config),
        _ => Err(CatalogError::of(WHAT, faults, file)),
    }
}

impl Variable {
    fn read<N: AsRef<str>, V: AsRef<str>>((name, value): (N, V)) -> Option<Self> {
        let (name, value) = (name.as_ref(), value.as_ref());
        name.strip_prefix(PREFIX)?;
        let text = || Value::String(value.to_owned());
        let value = serde_json::from_str(value).unwrap_or_else(|_| text());
        Some(Self { name: name.to_owned(), value })
    }
}

/// Puts a value at its place; `false` if something that is no table is in the way.
fn put(map: &mut Map<String, Value>, place: &str, value: Value) -> bool {
    let (part, rest) = match place.split_once("__") {
        Some((part, rest)) => (part, Some(rest)),
        None => (place, None),
    };
    // Names of variables are in capitals, those of tools are not always in small letters.
    let known = map.keys().find(|key| key.eq_ignore_ascii_case(part)).cloned();
    let key = known.unwrap_or_else(|| part.to_ascii_lowercase());
    match rest {
        None => {
            map.insert(key, value);
            true
        }
        Some(rest) => {
            let inner = map.entry(key).or_insert_with(|| Value::Object(Map::new()));
            inner.as_object_mut().is_some_and(|inner| put(inner, rest, value))
        }
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
