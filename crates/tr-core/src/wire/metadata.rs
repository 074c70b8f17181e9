//! What is said beside a tool's content.
use super::read::{Source, Words as _};
use crate::{Json, Ran, ToolOutcome};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The metadata of an outcome: the tool's own, and ours where the tool has no member of that name.
///
/// What a failure says of `ran` and `recorded`, and the notes, stand in its error.
pub(crate) fn of(outcome: &ToolOutcome, failed: bool) -> Option<Json> {
    let parts = outcome.parts();
    let mut ours = Map::new();
    if !failed && !outcome.recorded() {
        ours.insert("ran".into(), Ran::Yes.word().into());
        ours.insert("recorded".into(), false.into());
    }
    if !failed && !parts.notes.is_empty() {
        ours.insert("notes".into(), parts.notes.iter().map(|note| Value::from(&**note)).collect());
    }
    if ours.is_empty() && parts.metadata.as_ref().is_none_or(is_object) {
        return parts.metadata.clone();
    }
    Some(join(parts.metadata.as_ref(), &ours))
}

fn is_object(json: &Json) -> bool {
    json.get().starts_with('{')
}

/// The members of `own`, and those of `ours` that it does not have.
fn join(own: Option<&Json>, ours: &Map<String, Value>) -> Json {
    let ours = ours.iter().map(|(name, value)| (Cow::Borrowed(&**name), value.clone().into()));
    let own = match own.map(|own| Source::Json(own.as_raw())) {
        None => Vec::new(),
        Some(source) => match source.members() {
            Ok(members) => members.into_iter().map(|(name, value)| (name, value.json())).collect(),
            // The wire has an object there; whatever else a tool gave is kept inside one.
            Err(()) => vec![(Cow::Borrowed("value"), source.json())],
        },
    };
    let mut joined: Vec<(Cow<'_, str>, Json)> = own;
    for (name, value) in ours {
        if joined.iter().all(|(own, _)| *own != name) {
            joined.push((name, value));
        }
    }
    Json::from_value(&Joined(&joined)).expect("names are strings")
}

struct Joined<'a>(&'a [(Cow<'a, str>, Json)]);

impl serde::Serialize for Joined<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
