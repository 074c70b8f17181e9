//! Finds values without parsing them, so that they are passed on byte for byte.
use serde_json::value::RawValue;
use std::fmt;
use tr_core::canonical::Pointer;
use tr_wire::read::{Kind, Source};

/// The value at `pointer`.
pub(crate) fn at<'t>(value: &'t RawValue, pointer: &Pointer) -> Option<&'t RawValue> {
    let found = pointer.tokens().try_fold(Source::Json(value), |value, token| match value.kind() {
        Kind::Object => value.member(token),
        Kind::Array => {
            let index = token.parse().ok().filter(|n: &usize| n.to_string() == token)?;
            value.elements()?.get(index).copied()
        }
        _ => None,
    });
    found?.raw()
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
        let value = serde_json::from_str(text).unwrap();
        let at = |pointer: &str| at(value, &pointer.parse().unwrap()).map(RawValue::get);
        assert_eq!(at("/a~1b/0/id"), Some("123456789012345678901234567890"));
        assert_eq!(at("/a~1b/1"), Some("1.50"));
        for nowhere in ["/a", "/a~1b/2", "/a~1b/01", "/a~1b/1/x", "/a~1b/-"] {
            assert_eq!(at(nowhere), None, "{nowhere}");
        }
        assert_eq!(at(""), Some(text));
        assert_eq!(below("/calls/3", "a/b"), "/calls/3/a~1b");
    }
}
