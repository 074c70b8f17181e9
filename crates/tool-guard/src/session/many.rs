//! Detects a JSON text with more messages than any provider accepts, before it is parsed.
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::{cell::Cell, fmt};

/// The limit of Anthropic's requests; no provider is known to have a higher one.
const MOST: usize = 100_000;

/// Whether a text has more messages than [`MOST`]. Reads only up to the first one too many.
pub(super) fn has_too_many(text: &str) -> bool {
    let is_found = Cell::new(false);
    let mut from = serde_json::Deserializer::from_str(text);
    // The reader of the text reports invalid JSON later.
    let _ = from.deserialize_any(Text(&is_found));
    is_found.get()
}

/// An array of messages, or a request with messages.
struct Text<'f>(&'f Cell<bool>);

impl<'de> Visitor<'de> for Text<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut messages: A) -> Result<(), A::Error> {
        let mut count = 0;
        while messages.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
            if count > MOST {
                self.0.set(true);
                return Err(A::Error::custom("too many messages"));
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut request: A) -> Result<(), A::Error> {
        while let Some(name) = request.next_key::<String>()? {
            match &*name {
                "messages" | "contents" | "input" | "output" => {
                    request.next_value_seed(List(self.0))?;
                }
                _ => drop(request.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// A request's messages; also accepts a single string.
struct List<'f>(&'f Cell<bool>);

impl<'de> DeserializeSeed<'de> for List<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, messages: A) -> Result<(), A::Error> {
        Text(self.0).visit_seq(messages)
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, has_too_many};

    #[test]
    fn messages_are_counted_up_to_one_too_many() {
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
