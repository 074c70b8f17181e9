//! A JSON text down to its messages.
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, SeqAccess, Visitor},
};
use serde_json::{Value, value::RawValue};
use std::{borrow::Cow, collections::BTreeMap, fmt};

/// An object's members, unread.
pub(super) type Members<'t> = BTreeMap<Cow<'t, str>, &'t RawValue>;

/// A JSON text, and the messages in it.
#[derive(Debug)]
pub(super) struct Outline<'t> {
    members: Members<'t>,
    messages: Vec<&'t RawValue>,
}

/// The limit of Anthropic's requests; no provider is known to have a higher one.
const MOST: usize = 100_000;

/// A text has more messages than [`MOST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMany;

impl<'t> Outline<'t> {
    /// `None` if it is no valid JSON of messages. Reads only up to the first message too many.
    pub(super) fn of(text: &'t str) -> Result<Option<Self>, TooMany> {
        if let Some(messages) = list(text)? {
            return Ok(Some(Self { members: Members::new(), messages }));
        }
        let members: Members<'t> = serde_json::from_str(text).unwrap_or_default();
        let named = |name: &str| members.get(name).map(|raw| raw.get());
        let counted = |name: &str| named(name).map_or(Ok(None), list);
        for name in ["contents", "input", "output", "history"] {
            counted(name)?;
        }
        let of_agent = |name: &str| serde_json::from_str(named(name)?).ok();
        let of_agent = || ["conversation", "history"].into_iter().find_map(of_agent);
        let messages = counted("messages")?.or_else(of_agent);
        let is_object = !members.is_empty();
        Ok(is_object.then(|| Self { members, messages: messages.unwrap_or_default() }))
    }

    /// A member: of a string its text.
    pub(super) fn text(&self, name: &str) -> Option<&'t str> {
        self.members.get(name).map(|raw| raw.get().trim_matches('"'))
    }

    /// The messages, each read when it is asked for.
    pub(super) fn messages(&self) -> impl Iterator<Item = Value> {
        self.messages.iter().map(|message| serde_json::from_str(message.get()).unwrap_or_default())
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
