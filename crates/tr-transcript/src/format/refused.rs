//! Members that a provider refuses regardless of their context: tool names, ids, arguments,
//! contents.
use crate::{json, validate::Fault};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A member that the provider refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) fault: Fault,
    /// The member's name in the provider's error, relative to its block or message.
    pub(crate) member: Cow<'static, str>,
    pub(crate) why: Why,
}

/// Why it is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Missing,
    Empty,
    EmptyList,
    /// It is longer than `most` characters.
    Long {
        most: usize,
        len: usize,
    },
    /// It has other characters than letters, digits, `_` and `-`.
    Pattern,
    /// It has another type than the provider expects.
    Type {
        expected: &'static str,
        got: &'static str,
    },
    /// The provider does not accept it in this place or in this role.
    Place,
    /// In the provider's words.
    Said(Box<str>),
    /// An image that it accepts unless there are [more than a few](MANY_IMAGES).
    Wide,
    /// The id of an item, which begins as that of another kind.
    Prefix {
        id: Box<str>,
        expected: &'static str,
    },
    /// A list of so many elements, of which it accepts none.
    Full(usize),
    /// The provider has not stored the item of this id, and its content is not sent.
    Unstored(Box<str>),
}

/// Which of a provider's refusals concern a transcript.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Applies {
    /// Another provider than the form's own is asked, as far as is known: it has its own limits.
    pub(crate) is_other: bool,
    /// The provider stores no items.
    pub(crate) unstored: bool,
    /// There are more than [`MANY_IMAGES`].
    pub(crate) many_images: bool,
}

/// More images than this are many: Anthropic then accepts no [wide](Why::Wide) ones.
pub(crate) const MANY_IMAGES: usize = 20;

/// The members of the images and documents that are looked at.
pub(super) const IMAGE: &str = "image.source.base64";
pub(super) const PIXELS: &str = "image.source.base64.data";
pub(super) const DOCUMENT: &str = "document.source.base64";
pub(super) const URL: &str = "image_url";

/// The marks of what the provider is to keep in its cache.
pub(crate) const CACHE: &str = "cache_control";

impl Applies {
    pub(crate) fn to(self, refused: &Refused) -> bool {
        let concerns = match refused.why {
            Why::Wide => self.many_images,
            Why::Unstored(_) => self.unstored,
            _ => true,
        };
        concerns && !(self.is_other && refused.is_limit())
    }
}

/// The member of a thinking block by which Anthropic knows it as its own.
pub(super) const SIGNATURE: &str = "thinking.signature";

/// The pattern of ids and names.
pub(crate) const PATTERN: &str = "^[a-zA-Z0-9_-]+$";

/// A provider's limits for a string.
#[derive(Clone, Copy)]
pub(super) struct Text {
    pub(super) fault: Fault,
    pub(super) member: &'static str,
    pub(super) most: usize,
    pub(super) is_plain: bool,
}

impl Refused {
    pub(super) fn new(fault: Fault, member: impl Into<Cow<'static, str>>, why: Why) -> Self {
        Self { fault, member: member.into(), why }
    }

    /// A content, or a member of one.
    pub(super) fn content(member: impl Into<Cow<'static, str>>, why: Why) -> Self {
        Self::new(Fault::RefusedContent, member, why)
    }

    /// More than four marks for the cache.
    pub(crate) fn marks(marks: usize) -> Self {
        let why =
            format!("A maximum of 4 blocks with cache_control may be provided. Found {marks}.");
        Self::content(CACHE, Why::Said(why.into()))
    }

    /// An image of many that is too wide.
    pub(crate) fn wide() -> Self {
        Self::content(PIXELS, Why::Wide)
    }

    /// Whether other providers that use this form may accept it.
    pub(crate) fn is_limit(&self) -> bool {
        matches!(self.why, Why::Long { .. } | Why::Pattern)
            || matches!(self.fault, Fault::RefusedContent)
    }

    /// Whether it is an image or a document.
    pub(crate) fn is_media(&self) -> bool {
        matches!(&*self.member, IMAGE | PIXELS | DOCUMENT) || self.member.ends_with(URL)
    }

    /// Whether it is a thought without a signature.
    pub(crate) fn is_unsigned(&self) -> bool {
        self.member == *SIGNATURE
    }

    /// Whether it is what the model thought.
    pub(crate) fn is_thought(&self) -> bool {
        self.is_unsigned() || matches!(self.why, Why::Full(_))
    }

    /// A description for a person.
    pub(crate) fn told(&self) -> String {
        match &self.why {
            Why::Missing => "missing".into(),
            Why::Empty | Why::EmptyList => "empty".into(),
            Why::Long { most, len } => format!("{len} characters, at most {most} are taken"),
            Why::Pattern => "other characters than letters, digits, _ and -".into(),
            Why::Type { expected, got } => format!("{got} in the place of {expected}"),
            Why::Place => "not in this place".into(),
            Why::Said(why) => why.to_string(),
            Why::Wide => "At least one of the image dimensions exceed max allowed size for \
                          many-image requests: 2000 pixels"
                .into(),
            Why::Prefix { id, expected } => format!("{id} does not begin with {expected}"),
            Why::Full(len) => format!("{len} elements, none are taken"),
            Why::Unstored(id) => format!("{id} is not stored, and has no encrypted_content"),
        }
    }
}

impl Text {
    /// A name of at most so many characters.
    pub(super) const fn name(member: &'static str, most: usize, is_plain: bool) -> Self {
        Self { fault: Fault::RefusedName, member, most, is_plain }
    }

    /// An id of at most so many characters.
    pub(super) const fn id(member: &'static str, most: usize, is_plain: bool) -> Self {
        Self { fault: Fault::RefusedId, member, most, is_plain }
    }

    /// Why the provider refuses this member, if it does.
    pub(super) fn refused(self, member: Option<&RawValue>) -> Option<Refused> {
        let why = match member {
            None => Why::Missing,
            Some(raw) if !raw.get().starts_with('"') => {
                Why::Type { expected: "a string", got: type_of(raw) }
            }
            // A lone surrogate: how the provider reads it is not known.
            Some(raw) => self.why(&json::string(raw)?)?,
        };
        Some(Refused::new(self.fault, self.member, why))
    }

    /// The same for an id. Missing and empty ids are found where uses are paired.
    pub(super) fn refused_id(self, id: &str) -> Option<Refused> {
        // With the format of vLLM or Kimi, another provider than the form's own is asked.
        if id.is_empty() || id.starts_with("chatcmpl-tool-") || id.starts_with("functions.") {
            return None;
        }
        Some(Refused::new(self.fault, self.member, self.why(id)?))
    }

    fn why(self, text: &str) -> Option<Why> {
        // The number of characters is at most the number of bytes.
        let len = if text.len() > self.most { text.chars().count() } else { 0 };
        match text {
            "" => Some(Why::Empty),
            _ if len > self.most => Some(Why::Long { most: self.most, len }),
            text if self.is_plain && !is_plain(text) => Some(Why::Pattern),
            _ => None,
        }
    }
}

pub(crate) fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Why the provider refuses this member, which must be of the [type](type_of) `expected`.
pub(super) fn must_be(
    expected: &'static str,
    fault: Fault,
    member: &'static str,
    value: Option<&RawValue>,
) -> Option<Refused> {
    let why = match value.map(type_of) {
        None => Why::Missing,
        Some(got) if got == expected => return None,
        Some(got) => Why::Type { expected, got },
    };
    Some(Refused::new(fault, member, why))
}

/// The JSON type of a value.
pub(super) fn type_of(raw: &RawValue) -> &'static str {
    match raw.get().as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ if raw.get().contains(['.', 'e', 'E']) => "a decimal",
        _ => "an integer",
    }
}

/// `OpenAI`'s error text for a refused member in this place.
pub(super) fn openai(why: &Why, place: &str) -> String {
    match why {
        Why::Missing => format!("Missing required parameter: '{place}'."),
        Why::Empty => format!(
            "Invalid '{place}': empty string. Expected a string with minimum length 1, but got an \
             empty string instead."
        ),
        Why::EmptyList => format!(
            "Invalid '{place}': empty array. Expected an array with minimum length 1, but got an \
             empty array instead."
        ),
        Why::Long { most, len } => format!(
            "Invalid '{place}': string too long. Expected a string with maximum length {most}, but \
             got a string with length {len} instead."
        ),
        Why::Pattern => format!(
            "Invalid '{place}': string does not match pattern. Expected a string that matches the \
             pattern '{PATTERN}'."
        ),
        Why::Type { expected, got } => {
            format!("Invalid type for '{place}': expected {expected}, but got {got} instead.")
        }
        Why::Said(why) => format!("Invalid '{place}'. {why}"),
        Why::Prefix { id, expected } => {
            format!("Invalid '{place}': '{id}'. Expected an ID that begins with '{expected}'.")
        }
        Why::Full(len) => format!(
            "Invalid '{place}': array too long. Expected an array with maximum length 0, but got an \
             array with length {len} instead."
        ),
        Why::Unstored(id) => format!(
            "Item with id '{id}' not found. Items are not persisted when `store` is set to false. \
             Try again with `store` set to true, or remove this item from your input."
        ),
        Why::Place | Why::Wide => format!("Invalid value: '{place}'."),
    }
}
