//! One value of a JSON or TOML text, and where it stands.
use super::number::Number;
use crate::{
    Json,
    wire::fault::{EnvelopeFault, Faults},
};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};

/// A place in a text, as a chain that lives on the reader's stack: it costs nothing unless there
/// is a fault.
#[derive(Clone, Copy)]
pub(crate) enum At<'a> {
    Root,
    Member(&'a At<'a>, &'a str),
    Element(&'a At<'a>, usize),
}

/// Shows the JSON pointer.
impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Member(parent, name) => {
                write!(f, "{parent}/{}", name.replace('~', "~0").replace('/', "~1"))
            }
            Self::Element(parent, index) => write!(f, "{parent}/{index}"),
        }
    }
}

/// A value in one of the languages that are read.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    Json(&'a RawValue),
    #[cfg(feature = "catalog")]
    Toml(&'a toml::Spanned<toml::de::DeValue<'a>>),
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
    #[cfg(feature = "catalog")]
    Date,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
            #[cfg(feature = "catalog")]
            Self::Date => "a date or time",
        }
    }
}

/// Names and values of an object, in the order of the text.
pub(crate) type Members<'a> = Vec<(Cow<'a, str>, Source<'a>)>;

impl<'a> Source<'a> {
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Json(raw) => match raw.get().as_bytes().first() {
                Some(b'{') => Kind::Object,
                Some(b'[') => Kind::Array,
                Some(b'"') => Kind::String,
                Some(b't' | b'f') => Kind::Bool,
                Some(b'n') => Kind::Null,
                _ => Kind::Number,
            },
            #[cfg(feature = "catalog")]
            Self::Toml(value) => super::toml::kind(value),
        }
    }

    /// What an object is called in this language.
    pub(crate) const fn object_name(self) -> &'static str {
        match self {
            Self::Json(_) => Kind::Object.name(),
            #[cfg(feature = "catalog")]
            Self::Toml(_) => "a table",
        }
    }

    /// The members of an object.
    ///
    /// # Errors
    /// If this is none, or if a name holds half a surrogate pair.
    pub(crate) fn members(self) -> Result<Members<'a>, ()> {
        match self {
            Self::Json(raw) => {
                let mut json = serde_json::Deserializer::from_str(raw.get());
                json.deserialize_map(JsonMembers).map_err(|_| ())
            }
            #[cfg(feature = "catalog")]
            Self::Toml(value) => super::toml::members(value).ok_or(()),
        }
    }

    /// The elements of an array.
    pub(crate) fn elements(self) -> Option<Vec<Self>> {
        match self {
            Self::Json(raw) => {
                let elements: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
                Some(elements.into_iter().map(Self::Json).collect())
            }
            #[cfg(feature = "catalog")]
            Self::Toml(value) => super::toml::elements(value),
        }
    }

    /// The text of a string, unless half a surrogate pair is in it.
    pub(crate) fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Json(raw) => match self.kind() {
                Kind::String => serde_json::from_str::<String>(raw.get()).ok().map(Cow::Owned),
                _ => None,
            },
            #[cfg(feature = "catalog")]
            Self::Toml(value) => value.get_ref().as_str().map(Cow::Borrowed),
        }
    }

    pub(crate) fn bool(self) -> Option<bool> {
        match self {
            Self::Json(raw) => serde_json::from_str(raw.get()).ok(),
            #[cfg(feature = "catalog")]
            Self::Toml(value) => value.get_ref().as_bool(),
        }
    }

    pub(crate) fn number(self) -> Option<Number> {
        match self {
            Self::Json(raw) => match self.kind() {
                Kind::Number => Number::parse(raw.get()),
                _ => None,
            },
            #[cfg(feature = "catalog")]
            Self::Toml(value) => super::toml::number(value),
        }
    }

    /// The text of a value that stands in a JSON text.
    pub(crate) fn raw(self) -> Option<&'a RawValue> {
        match self {
            Self::Json(raw) => Some(raw),
            #[cfg(feature = "catalog")]
            Self::Toml(_) => None,
        }
    }

    /// The value as JSON text; from a JSON text byte for byte.
    pub(crate) fn json(self) -> Json {
        match self {
            Self::Json(raw) => raw.to_owned().into(),
            #[cfg(feature = "catalog")]
            Self::Toml(value) => super::toml::json(value).into(),
        }
    }

    pub(crate) fn offset(self, faults: &Faults) -> usize {
        match self {
            Self::Json(raw) => faults.offset_of(raw.get()),
            #[cfg(feature = "catalog")]
            Self::Toml(value) => value.span().start,
        }
    }
}

struct JsonMembers;

impl<'de> Visitor<'de> for JsonMembers {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some((name, raw)) = map.next_entry::<String, &RawValue>()? {
            members.push((Cow::Owned(name), Source::Json(raw)));
        }
        Ok(members)
    }
}

/// A value and its place.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    pub(crate) at: &'a At<'a>,
    pub(crate) source: Source<'a>,
}

impl<'a> Node<'a> {
    pub(crate) const fn new(at: &'a At<'a>, source: Source<'a>) -> Self {
        Self { at, source }
    }

    /// Reports this value as not what was expected.
    pub(crate) fn refuse<T>(
        &self,
        expected: impl Into<Cow<'static, str>>,
        faults: &mut Faults,
    ) -> Option<T> {
        let found = self.describe(faults.reveal);
        self.refuse_found(expected, found, faults)
    }

    /// The same, where a short word may be shown, because only a few words are allowed there.
    pub(crate) fn refuse_word<T>(
        &self,
        expected: impl Into<Cow<'static, str>>,
        faults: &mut Faults,
    ) -> Option<T> {
        let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ' ');
        let short = self.source.text().is_some_and(|t| t.len() <= 20 && t.chars().all(word));
        let found = self.describe(faults.reveal || short);
        self.refuse_found(expected, found, faults)
    }

    pub(crate) fn refuse_found<T>(
        &self,
        expected: impl Into<Cow<'static, str>>,
        found: impl Into<Box<str>>,
        faults: &mut Faults,
    ) -> Option<T> {
        faults.push(self.fault(expected, found, faults));
        None
    }

    pub(crate) fn fault(
        &self,
        expected: impl Into<Cow<'static, str>>,
        found: impl Into<Box<str>>,
        faults: &Faults,
    ) -> EnvelopeFault {
        EnvelopeFault::new(self.at.to_string(), expected, found).at(self.source.offset(faults))
    }

    fn describe(&self, reveal: bool) -> String {
        match (self.source.kind(), self.source.text(), self.source.number()) {
            (Kind::String, Some(text), _) if text.is_empty() => "an empty string".into(),
            (Kind::String, Some(text), _) if reveal && text.len() <= 80 => format!("{text:?}"),
            (Kind::String, None, _) => "a string with a lone surrogate".into(),
            (Kind::Number, _, Some(number)) => number.to_string(),
            (Kind::Object, ..) => self.source.object_name().into(),
            (kind, ..) => kind.name().into(),
        }
    }
}
