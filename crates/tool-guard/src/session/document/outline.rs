//! A JSON text down to its messages, and the members of JSON objects by name.
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::BTreeMap, fmt};

/// An object's members.
#[derive(Debug, Default)]
pub(super) struct Object<'t>(BTreeMap<Cow<'t, str>, &'t RawValue>);

/// A message, a part of one, or a line: they only differ in their position.
pub(super) type Message<'t> = Object<'t>;
pub(super) type Part<'t> = Object<'t>;
pub(super) type Record<'t> = Object<'t>;

/// A JSON text, and the messages in it.
#[derive(Debug)]
pub(super) struct Outline<'t> {
    members: Object<'t>,
    messages: Vec<&'t RawValue>,
}

/// The limit of Anthropic's requests; no provider is known to have a higher one.
const MOST: usize = 100_000;

/// A text has more messages than [`MOST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMany;

impl<'t> Outline<'t> {
    /// `None` if it is invalid JSON, or has no list of messages. Reads only up to the first message
    /// too many.
    pub(super) fn of(text: &'t str) -> Result<Option<Self>, TooMany> {
        if let Some(messages) = list(text)? {
            return Ok(Some(Self { members: Object::default(), messages }));
        }
        let members = Object::of(text);
        let named = |name: &str| members.0.get(name).map(|raw| raw.get());
        let counted = |name: &str| named(name).map_or(Ok(None), list);
        for name in ["contents", "input", "output"] {
            counted(name)?;
        }
        let of_agent = |name: &str| serde_json::from_str(named(name)?).ok();
        let of_agent = || ["conversation", "history"].into_iter().find_map(of_agent);
        let messages = counted("messages")?.or_else(of_agent);
        Ok(messages.map(|messages| Self { members, messages }))
    }

    pub(super) fn has(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.members.has(name))
    }

    pub(super) fn messages(&self) -> impl Iterator<Item = Object<'t>> {
        self.messages.iter().map(|message| Object::of(message.get()))
    }
}

/// The elements of an array; `None` if the text is no valid one.
fn list(text: &str) -> Result<Option<Vec<&RawValue>>, TooMany> {
    if !text.trim_start().starts_with('[') {
        return Ok(None);
    }
    match serde_json::from_str(text) {
        Ok(List(elements)) => Ok(Some(elements)),
        Err(error) if error.is_data() => Err(TooMany),
        Err(_) => Ok(None),
    }
}

/// At most [`MOST`] elements; more are an error.
#[derive(Default)]
struct List<'t>(Vec<&'t RawValue>);

impl<'t> Deserialize<'t> for List<'t> {
    fn deserialize<D: Deserializer<'t>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(Self::default())
    }
}

impl<'t> Visitor<'t> for List<'t> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("messages")
    }

    fn visit_seq<A: SeqAccess<'t>>(mut self, mut messages: A) -> Result<Self, A::Error> {
        while let Some(message) = messages.next_element()? {
            if self.0.len() == MOST {
                return Err(A::Error::custom("too many messages"));
            }
            self.0.push(message);
        }
        Ok(self)
    }
}

impl<'t> Object<'t> {
    /// Anything but an object counts as an object without members.
    pub(super) fn of(text: &'t str) -> Self {
        let is_object = text.trim_start().starts_with('{');
        let members = is_object.then(|| serde_json::from_str(text).ok()).flatten();
        Self(members.unwrap_or_default())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|name| &**name)
    }

    pub(super) fn member(&self, name: &str) -> Option<Self> {
        self.0.get(name).map(|raw| Self::of(raw.get()))
    }

    /// A member's string; empty if it is no string.
    pub(super) fn text(&self, name: &str) -> String {
        let raw = self.0.get(name).filter(|raw| raw.get().starts_with('"'));
        raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }

    pub(super) fn is_number(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|raw| raw.get().starts_with(|c: char| c.is_ascii_digit()))
    }

    /// The elements of a member's array.
    pub(super) fn list(&self, name: &str) -> Vec<Self> {
        let raw = self.0.get(name).filter(|raw| raw.get().starts_with('['));
        let elements: Vec<&'t RawValue> =
            raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        elements.into_iter().map(|element| Self::of(element.get())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, Outline};

    #[test]
    fn messages_are_counted_up_to_one_too_many() {
        let has_too_many = |text: &str| Outline::of(text).is_err();
        let list = |count: usize| format!("[{}]", vec!["{}"; count].join(","));
        let (some, more) = (list(MOST), list(MOST + 1));
        assert!(!has_too_many(&some) && has_too_many(&more));
        let asked = |list: &str| format!(r#"{{"model":"m","messages":{list}}}"#);
        assert!(!has_too_many(&asked(&some)) && has_too_many(&asked(&more)));
        assert!(has_too_many(&more[..more.len() - 1]), "it is read no further");
        assert!(!has_too_many(&format!(r#"{{"rows":{more}}}"#)));
        assert!(!has_too_many(r#"{"input":"words"}"#) && !has_too_many("3") && !has_too_many("["));
    }
}
