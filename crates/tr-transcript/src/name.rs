//! An id of an entry or of a call, stored inline if it is short.
use arrayvec::ArrayString;
use std::{
    borrow::Borrow,
    hash::{Hash, Hasher},
    ops::Deref,
};

/// The length of a UUID.
const SHORT: usize = 36;

/// The id of an entry, a group or a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Short(ArrayString<SHORT>),
    Long(Box<str>),
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Short(text) => text,
            Self::Long(text) => text,
        }
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        ArrayString::from(text).map_or_else(|_| Self::Long(text.into()), Self::Short)
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        self
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}
