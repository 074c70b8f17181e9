//! The shapes that only a catalogue uses.
use std::{borrow::Cow, marker::PhantomData};
use tr_core::{Verdict, canonical::Pointer};
use tr_wire::read::{Faults, Kind, List, Node, Shape, Text, shape, with_schema, words};

with_schema! {
    use tr_wire::read::schemars::{Schema, SchemaGenerator};
}

/// The location of a value, for faults that are found only after the whole text was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceLocation {
    pub(crate) pointer: String,
    /// `None` in what was made without a text.
    pub(crate) offset: Option<usize>,
}

/// A value with its location.
#[derive(Clone, Debug)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) location: SourceLocation,
}

pub(crate) struct Located<S>(PhantomData<S>);

impl<S: Shape> Shape for Located<S> {
    type Value = At<S::Value>;

    fn expected() -> Cow<'static, str> {
        S::expected()
    }

    fn read(node: &Node<'_>, faults: &mut Faults) -> Option<Self::Value> {
        let location = SourceLocation {
            pointer: node.at.to_string(),
            offset: Some(node.source.offset(faults)),
        };
        S::read(node, faults).map(|value| At { value, location })
    }

    with_schema! {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        S::schema(generator)
    }
    }
}

/// An optional value; reading continues after its faults.
pub(crate) struct Lenient<S>(PhantomData<S>);

impl<S: Shape> Shape for Lenient<S> {
    type Value = Option<S::Value>;

    fn expected() -> Cow<'static, str> {
        S::expected()
    }

    fn read(node: &Node<'_>, faults: &mut Faults) -> Option<Self::Value> {
        Some(S::read(node, faults))
    }

    fn absent() -> Option<Self::Value> {
        Some(None)
    }

    with_schema! {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        S::schema(generator)
    }
    }
}

shape! {
    /// A number from 0 to 1, as a share of something.
    pub(crate) Share => f64, "a number above 0, at most 1",
    |source| source.number().and_then(|n| n.between(0.0, 1.0)).filter(|share| *share > 0.0),
    { "type": "number", "exclusiveMinimum": 0, "maximum": 1 }
}

shape! {
    /// The address of an HTTP endpoint.
    pub(crate) Address => Box<str>, "an address that begins with https:// or http://",
    |source| {
        let url = source.text().filter(|url| {
            let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
            rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
        });
        url.map(Box::from)
    },
    { "type": "string", "pattern": "^https?://[^/]" }
}

shape! {
    /// A program and its arguments.
    pub(crate) Program => Vec<Box<str>>, "an array with a program and its arguments",
    |node, faults| {
        let words = List::<Text>::read(node, faults)?;
        match words.first().is_none_or(|program| program.is_empty()) {
            true => node.refuse_found(Self::expected(), "none", faults),
            false => Some(words),
        }
    },
    {
        "type": "array",
        "items": { "type": "string" },
        "prefixItems": [{ "type": "string", "minLength": 1 }],
        "minItems": 1
    }
}

shape! {
    /// Two shares of a delay's ceiling, the lower first.
    pub(crate) Jitter => (f64, f64), "two numbers from 0 to 2, the lower first",
    |source| {
        let elements = (source.kind() == Kind::Array).then(|| source.elements()).flatten();
        let shares = elements.into_iter().flatten().map(|share| share.number()?.between(0.0, 2.0));
        match shares.collect::<Option<Vec<_>>>().as_deref() {
            Some(&[low, high]) if low <= high => Some((low, high)),
            _ => None,
        }
    },
    {
        "type": "array",
        "items": { "type": "number", "minimum": 0, "maximum": 2 },
        "minItems": 2,
        "maxItems": 2
    }
}

shape! {
    /// A JSON pointer to something inside of params.
    pub(crate) Inside => Pointer,
    "a JSON pointer into the params, such as \"/meta/sentAt\"",
    |source| {
        let pointer = source.text().and_then(|text| text.parse().ok());
        pointer.filter(|pointer: &Pointer| !pointer.is_root())
    },
    { "type": "string", "pattern": "^(/([^~/]|~[01])*)+$" }
}

/// How errors with a code end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Permanent,
    Transient,
    /// Transient, and the tool did not run.
    NotRun,
}

impl From<End> for Verdict {
    fn from(end: End) -> Self {
        match end {
            End::Permanent => Self::Permanent,
            End::Transient | End::NotRun => Self::TRANSIENT,
        }
    }
}

/// The longest time that a timeout may have, in milliseconds: 24 h.
pub(crate) const DAY: u64 = 24 * 60 * 60 * 1_000;
/// The longest that a breaker may count with: 365 days.
pub(crate) const COUNTED: u64 = 365 * DAY;
/// The longest that a record may be kept: 366 days.
pub(crate) const RECORDED: u64 = 366 * DAY;

words! {
    End { Permanent = "permanent", Transient = "transient", NotRun = "not_run" }
}
