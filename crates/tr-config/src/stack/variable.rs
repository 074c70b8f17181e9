//! Variables that are settings.
use serde_json::{Map, Value};

/// What the name of a variable with a setting begins with.
pub const PREFIX: &str = "TOOL_RELIABILITY__";

/// A variable with a setting.
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: Value,
}

impl Variable {
    pub(crate) fn read<N: AsRef<str>, V: AsRef<str>>((name, value): (N, V)) -> Option<Self> {
        let (name, value) = (name.as_ref(), value.as_ref());
        name.strip_prefix(PREFIX)?;
        let text = || Value::String(value.to_owned());
        let value = serde_json::from_str(value).unwrap_or_else(|_| text());
        Some(Self { name: name.to_owned(), value })
    }
}

/// Puts a value at its place, and returns the parts of the place as the file has them; `None` if something
/// that is no table is in the way.
pub(crate) fn put(map: &mut Map<String, Value>, place: &str, value: Value) -> Option<Vec<String>> {
    let (part, rest) = match place.split_once("__") {
        Some((part, rest)) => (part, Some(rest)),
        None => (place, None),
    };
    // Names of variables are in capitals, those of tools are not always in small letters.
    let known = map.keys().find(|key| key.eq_ignore_ascii_case(part)).cloned();
    let key = known.unwrap_or_else(|| part.to_ascii_lowercase());
    match rest {
        None => {
            map.insert(key.clone(), value);
            Some(vec![key])
        }
        Some(rest) => {
            let inner = map.entry(key.clone()).or_insert_with(|| Value::Object(Map::new()));
            let mut path = put(inner.as_object_mut()?, rest, value)?;
            path.insert(0, key);
            Some(path)
        }
    }
}
