//! Reads parts of a JSON text without parsing values, so that values are passed on byte for byte.
use serde::{
    Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};
use tr_core::canonical::Pointer;

/// The members of an object, in their order.
pub(crate) fn members(text: &str) -> Option<Vec<(Cow<'_, str>, &str)>> {
    struct Members;

    impl<'t> Visitor<'t> for Members {
        type Value = Vec<(Cow<'t, str>, &'t str)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::with_capacity(map.size_hint().unwrap_or(0));
            while let Some(name) = map.next_key::<String>()? {
                members.push((Cow::Owned(name), map.next_value::<&RawValue>()?.get()));
            }
            Ok(members)
        }
    }

    serde_json::Deserializer::from_str(text).deserialize_map(Members).ok()
}

/// The elements of an array.
pub(crate) fn elements(text: &str) -> Option<Vec<&str>> {
    let elements: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    Some(elements.into_iter().map(RawValue::get).collect())
}

/// The value at `pointer`.
pub(crate) fn at<'t>(text: &'t str, pointer: &Pointer) -> Option<&'t str> {
    pointer.tokens().try_fold(text, |text, token| match text.trim_start().as_bytes().first()? {
        b'{' => {
            let found = members(text)?.into_iter().find(|(name, _)| *name == token)?;
            Some(found.1)
        }
        b'[' => {
            let index = token.parse().ok().filter(|n: &usize| n.to_string() == token)?;
            elements(text)?.get(index).copied()
        }
        _ => None,
    })
}

/// The pointer of a member or an element of what is at `parent`.
pub(crate) fn below(parent: &str, token: impl fmt::Display) -> String {
    format!("{parent}/{}", token.to_string().replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_lead_inside_and_numbers_stay_as_they_are() {
        let text = r#"{"a/b": [{"id": 123456789012345678901234567890}, 1.50]}"#;
        let at = |pointer: &str| at(text, &pointer.parse().unwrap());
        assert_eq!(at("/a~1b/0/id"), Some("123456789012345678901234567890"));
        assert_eq!(at("/a~1b/1"), Some("1.50"));
        for nowhere in ["/a", "/a~1b/2", "/a~1b/01", "/a~1b/1/x", "/a~1b/-"] {
            assert_eq!(at(nowhere), None, "{nowhere}");
        }
        assert_eq!(at(""), Some(text));
        assert_eq!(below("/calls/3", "a/b"), "/calls/3/a~1b");
    }
}
