//! One value of a JSON or TOML text.
use super::number::Number;
use crate::fault::Faults;
use serde_json::value::RawValue;
use std::borrow::Cow;
use tr_core::{Json, internal::members};

/// A value in one of the languages that are read.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    Json(&'a RawValue),
    #[cfg(feature = "toml")]
    Toml(&'a toml::Spanned<toml::de::DeValue<'a>>),
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
    #[cfg(feature = "toml")]
    Date,
}

impl Kind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
            #[cfg(feature = "toml")]
            Self::Date => "a date or time",
        }
    }
}

/// Names and values of an object, in the order of the text.
type Members<'a> = Vec<(Cow<'a, str>, Source<'a>)>;

impl<'a> Source<'a> {
    pub fn kind(self) -> Kind {
        match self {
            Self::Json(raw) => match raw.get().as_bytes().first() {
                Some(b'{') => Kind::Object,
                Some(b'[') => Kind::Array,
                Some(b'"') => Kind::String,
                Some(b't' | b'f') => Kind::Bool,
                Some(b'n') => Kind::Null,
                _ => Kind::Number,
            },
            #[cfg(feature = "toml")]
            Self::Toml(value) => toml_value::kind(value),
        }
    }

    /// What an object is called in this language.
    pub(crate) const fn object_name(self) -> &'static str {
        match self {
            Self::Json(_) => Kind::Object.name(),
            #[cfg(feature = "toml")]
            Self::Toml(_) => "a table",
        }
    }

    /// The members of an object.
    ///
    /// # Errors
    /// If this is none, or if a name holds half a surrogate pair.
    #[expect(clippy::result_unit_err, reason = "no part of the public API")]
    pub fn members(self) -> Result<Members<'a>, ()> {
        match self {
            Self::Json(raw) => {
                let members = members(raw.get()).map_err(|_| ())?;
                Ok(members.into_iter().map(|(name, raw)| (name, Self::Json(raw))).collect())
            }
            #[cfg(feature = "toml")]
            Self::Toml(value) => toml_value::members(value).ok_or(()),
        }
    }

    /// The member with this name of an object.
    pub fn member(self, name: &str) -> Option<Self> {
        let mut members = self.members().ok()?.into_iter();
        members.find_map(|(member, source)| (member == name).then_some(source))
    }

    /// What a JSON pointer leads to, or the last value on its way.
    pub(crate) fn find(mut self, pointer: &str) -> Self {
        for part in pointer.split('/').skip(1) {
            let name = part.replace("~1", "/").replace("~0", "~");
            let inner = match self.kind() {
                Kind::Object => self.member(&name),
                _ => self.elements().and_then(|all| all.get(name.parse::<usize>().ok()?).copied()),
            };
            let Some(inner) = inner else { break };
            self = inner;
        }
        self
    }

    /// The elements of an array.
    pub fn elements(self) -> Option<Vec<Self>> {
        match self {
            Self::Json(raw) => {
                let elements: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
                Some(elements.into_iter().map(Self::Json).collect())
            }
            #[cfg(feature = "toml")]
            Self::Toml(value) => toml_value::elements(value),
        }
    }

    /// The text of a string, unless half a surrogate pair is in it.
    pub fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Json(raw) => match self.kind() {
                Kind::String => serde_json::from_str::<String>(raw.get()).ok().map(Cow::Owned),
                _ => None,
            },
            #[cfg(feature = "toml")]
            Self::Toml(value) => value.get_ref().as_str().map(Cow::Borrowed),
        }
    }

    pub(crate) fn bool(self) -> Option<bool> {
        match self {
            Self::Json(raw) => serde_json::from_str(raw.get()).ok(),
            #[cfg(feature = "toml")]
            Self::Toml(value) => value.get_ref().as_bool(),
        }
    }

    pub fn number(self) -> Option<Number> {
        match self {
            Self::Json(raw) => Number::parse(raw.get()),
            #[cfg(feature = "toml")]
            Self::Toml(value) => toml_value::number(value),
        }
    }

    /// The text of a value that stands in a JSON text.
    pub fn raw(self) -> Option<&'a RawValue> {
        match self {
            Self::Json(raw) => Some(raw),
            #[cfg(feature = "toml")]
            Self::Toml(_) => None,
        }
    }

    /// The value as JSON text; from a JSON text byte for byte.
    pub fn json(self) -> Json {
        match self {
            Self::Json(raw) => raw.to_owned().into(),
            #[cfg(feature = "toml")]
            Self::Toml(value) => toml_value::json(value).into(),
        }
    }

    pub fn offset(self, faults: &Faults) -> usize {
        match self {
            Self::Json(raw) => faults.offset_of(raw.get()),
            #[cfg(feature = "toml")]
            Self::Toml(value) => value.span().start,
        }
    }
}

#[cfg(feature = "toml")]
mod toml_value {
    //! TOML values as [`Source`] sees them.
    use super::{Kind, Members, Number, Source};
    use serde_json::Value;
    use std::borrow::Cow;
    use toml::{Spanned, de::DeValue};

    type Toml<'a> = Spanned<DeValue<'a>>;

    pub(super) fn kind(value: &Toml<'_>) -> Kind {
        match value.get_ref() {
            DeValue::String(_) => Kind::String,
            DeValue::Integer(_) | DeValue::Float(_) => Kind::Number,
            DeValue::Boolean(_) => Kind::Bool,
            DeValue::Datetime(_) => Kind::Date,
            DeValue::Array(_) => Kind::Array,
            DeValue::Table(_) => Kind::Object,
        }
    }

    pub(super) fn members<'a>(value: &'a Toml<'a>) -> Option<Members<'a>> {
        let DeValue::Table(table) = value.get_ref() else { return None };
        let member = |(name, value): (&'a Spanned<Cow<'a, str>>, &'a Toml<'a>)| {
            (Cow::Borrowed(&**name.get_ref()), Source::Toml(value))
        };
        // The table is sorted by name; what comes first in the text is the first.
        let mut members: Vec<_> = table.iter().collect();
        members.sort_unstable_by_key(|(name, _)| name.span().start);
        Some(members.into_iter().map(member).collect())
    }

    pub(super) fn elements<'a>(value: &'a Toml<'a>) -> Option<Vec<Source<'a>>> {
        let DeValue::Array(array) = value.get_ref() else { return None };
        Some(array.iter().map(Source::Toml).collect())
    }

    pub(super) fn number(value: &Toml<'_>) -> Option<Number> {
        match value.get_ref() {
            DeValue::Integer(whole) => {
                i128::from_str_radix(whole.as_str(), whole.radix()).ok().map(Number::Whole)
            }
            DeValue::Float(real) => real.as_str().parse().ok().map(Number::real),
            _ => None,
        }
    }

    pub(super) fn json(value: &Toml<'_>) -> Value {
        match value.get_ref() {
            DeValue::String(text) => Value::from(&**text),
            DeValue::Boolean(bool) => Value::from(*bool),
            DeValue::Datetime(date) => Value::from(date.to_string()),
            DeValue::Array(array) => array.iter().map(json).collect(),
            DeValue::Table(table) => table
                .iter()
                .map(|(name, value)| (name.get_ref().to_string(), json(value)))
                .collect(),
            DeValue::Integer(_) | DeValue::Float(_) => match number(value) {
                Some(Number::Whole(whole)) => match (u64::try_from(whole), i64::try_from(whole)) {
                    (Ok(whole), _) => Value::from(whole),
                    (_, Ok(whole)) => Value::from(whole),
                    _ => Value::from(whole as f64),
                },
                Some(Number::Real(real)) => Value::from(real),
                None => Value::Null,
            },
        }
    }
}
