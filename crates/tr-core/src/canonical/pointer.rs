//! JSON pointers (RFC 6901), parsed once.
use super::error::escape;
use crate::internal::members;
use serde_json::value::RawValue;
use std::{fmt, str::FromStr};

/// A place in a JSON text, such as `/items/0/note`.
///
/// ```
/// use tr_core::canonical::Pointer;
///
/// let pointer: Pointer = "/a~1b/0".parse()?;
/// assert_eq!(pointer.tokens().collect::<Vec<_>>(), ["a/b", "0"]);
/// assert_eq!(pointer.to_string(), "/a~1b/0");
/// # Ok::<_, tr_core::canonical::PointerError>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pointer(Box<[Box<str>]>);

/// A text that is no JSON pointer: it neither is empty nor starts with `/`, or a `~` in it stands
/// without `0` or `1`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a JSON pointer: {0:?}")]
pub struct PointerError(Box<str>);

impl Pointer {
    /// Its reference tokens, unescaped; none for the whole text.
    #[must_use]
    pub fn tokens(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(|token| &**token)
    }

    /// The value there, byte for byte.
    #[must_use]
    pub fn find<'t>(&self, json: &'t RawValue) -> Option<&'t RawValue> {
        self.tokens().try_fold(json, |inside, token| match inside.get().as_bytes().first()? {
            b'{' => {
                let mut members = members(inside.get()).ok()?.into_iter();
                members.find_map(|(name, value)| (name == token).then_some(value))
            }
            b'[' => {
                let index = token.parse().ok().filter(|n: &usize| n.to_string() == token)?;
                let elements: Vec<&RawValue> = serde_json::from_str(inside.get()).ok()?;
                elements.get(index).copied()
            }
            _ => None,
        })
    }

    /// Whether it names the whole text.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromStr for Pointer {
    type Err = PointerError;

    fn from_str(text: &str) -> Result<Self, PointerError> {
        let refuse = || PointerError(text.into());
        if text.is_empty() {
            return Ok(Self(Box::new([])));
        }
        let tokens = text.strip_prefix('/').ok_or_else(refuse)?.split('/');
        tokens.map(|token| unescape(token).ok_or_else(refuse)).collect::<Result<_, _>>().map(Self)
    }
}

fn unescape(token: &str) -> Option<Box<str>> {
    let mut parts = token.split('~');
    let mut plain = parts.next()?.to_owned();
    for part in parts {
        let (code, rest) = part.split_at_checked(1)?;
        plain.push(match code {
            "0" => '~',
            "1" => '/',
            _ => return None,
        });
        plain.push_str(rest);
    }
    Some(plain.into())
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tokens().try_for_each(|token| write!(f, "/{}", escape(token)))
    }
}

impl fmt::Debug for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pointer({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::Pointer;

    #[test]
    fn values_are_found_inside_and_numbers_stay_as_they_are() {
        let text = r#"{"a/b": [{"id": 123456789012345678901234567890}, 1.50]}"#;
        let value = serde_json::from_str(text).unwrap();
        let at = |pointer: &str| Some(pointer.parse::<Pointer>().unwrap().find(value)?.get());
        assert_eq!(at("/a~1b/0/id"), Some("123456789012345678901234567890"));
        assert_eq!(at("/a~1b/1"), Some("1.50"));
        for nowhere in ["/a", "/a~1b/2", "/a~1b/01", "/a~1b/1/x", "/a~1b/-"] {
            assert_eq!(at(nowhere), None, "{nowhere}");
        }
        assert_eq!(at(""), Some(text));
    }
}
