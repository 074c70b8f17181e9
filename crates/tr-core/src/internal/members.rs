//! The members of a JSON object as they are written; of several with one name, all.
use serde::{
    Deserialize,
    de::{Deserializer as _, MapAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};

/// The members of the object that `json` is.
///
/// # Errors
/// If it is none, or if a name holds half a surrogate pair.
pub fn members(json: &str) -> serde_json::Result<Vec<(Cow<'_, str>, &RawValue)>> {
    serde_json::Deserializer::from_str(json).deserialize_map(Members)
}

struct Members;

#[derive(Deserialize)]
struct Name<'n>(#[serde(borrow)] Cow<'n, str>);

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((Name(name), value)) = map.next_entry()? {
            members.push((name, value));
        }
        Ok(members)
    }
}
