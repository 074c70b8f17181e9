//! JSON pointers (RFC 6901), parsed once.
use super::error::escape;
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
