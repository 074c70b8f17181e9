//! What a value may look like: one type per shape, from which reader, writer and schema are made.
use super::{
    At, Kind, Node, Source,
    number::{MAX_SAFE, Number},
    shape,
};
use crate::fault::Faults;
use serde::Serialize;
use std::{borrow::Cow, time::Duration};
use tr_core::Json;

#[cfg(feature = "schema")]
use schemars::{Schema, SchemaGenerator};

/// The shape of a value.
pub trait Shape {
    /// What is read from it.
    type Value;

    /// `null` is a value of this shape, and not the absence of one.
    const TAKES_NULL: bool = false;

    /// A member of this shape may be absent: what it is read into then stays as it is.
    const OPTIONAL: bool = false;

    /// The shape in words, as a fault says it.
    fn expected() -> Cow<'static, str>;

    /// Reads a value, or reports all that is wrong with it.
    fn read(node: &Node<'_>, faults: &mut Faults) -> Option<Self::Value>;

    /// What it means that there is no value; `None` if there must be one.
    fn absent() -> Option<Self::Value> {
        None
    }

    /// Fills what `own` does not say from `other`.
    fn or(own: Self::Value, other: Self::Value) -> Self::Value {
        let _ = other;
        own
    }

    #[cfg(feature = "schema")]
    fn schema(generator: &mut SchemaGenerator) -> Schema;
}

/// A shape that is written too.
pub trait Write: Shape {
    /// The value as serde takes it.
    fn write(value: &Self::Value) -> impl Serialize;

    /// Whether nothing is to be written.
    fn is_absent(_: &Self::Value) -> bool {
        false
    }
}

/// Makes a shape's values be written as they are.
macro_rules! written {
    ($($name:ident $(<$(const $limit:ident: $of:ty),+>)?),*) => {$(
        impl $(<$(const $limit: $of),+>)? Write for $name $(<$($limit),+>)? {
            fn write(value: &Self::Value) -> impl Serialize {
                value
            }
        }
    )*};
}

shape! {
    pub Text => Box<str>, "a string",
    |source| source.text().map(Into::into),
    { "type": "string" }
}

shape! {
    /// A text with something in it.
    pub Name => Box<str>, "a non-empty string",
    |source| source.text().filter(|text| !text.is_empty()).map(Into::into),
    { "type": "string", "minLength": 1 }
}

shape! {
    pub Flag => bool, "true or false",
    |source| source.bool(),
    { "type": "boolean" }
}

shape! {
    /// Milliseconds within bounds.
    pub Time<const MIN: u64, const MAX: u64> => u64,
    format!("a whole number of milliseconds from {MIN} to {MAX}"),
    |source| source.number().and_then(|number| number.whole(MIN, MAX)),
    { "type": "integer", "minimum": MIN, "maximum": MAX }
}

shape! {
    /// The same, as a duration.
    pub Span<const MIN: u64, const MAX: u64> as Time<MIN, MAX> => Duration,
    |node, faults| Time::<MIN, MAX>::read(node, faults).map(Duration::from_millis)
}

/// Milliseconds, `MIN` or more.
pub type Millis<const MIN: u64> = Time<MIN, MAX_SAFE>;

shape! {
    /// A whole number within bounds.
    pub Integer<const MIN: u32, const MAX: u32> => u32, format!("a whole number from {MIN} to {MAX}"),
    |source| {
        let whole = source.number().and_then(|number| number.whole(MIN.into(), MAX.into()));
        whole.map(|number| number as u32)
    },
    { "type": "integer", "minimum": MIN, "maximum": MAX }
}

shape! {
    /// A number of things in memory that there must be, `MAX` at most.
    pub Size<const MAX: u32> as Count<MAX> => usize,
    |node, faults| Count::<MAX>::read(node, faults).map(|count| count as usize)
}

/// The same, as a duration.
pub type AnySpan<const MIN: u64> = Span<MIN, MAX_SAFE>;

/// A number of things that there must be, `MAX` at most.
pub type Count<const MAX: u32> = Integer<1, MAX>;

/// A number of things that there may be none of.
pub type Tally = Integer<0, { u32::MAX }>;

shape! {
    pub Index => u64, format!("a whole number from 0 to {MAX_SAFE}"),
    |source| source.number().and_then(|number| number.whole(0, MAX_SAFE)),
    { "type": "integer", "minimum": 0, "maximum": MAX_SAFE }
}

shape! {
    /// Measured milliseconds: fractions are allowed.
    pub Measured => f64, format!("a number of milliseconds from 0 to {MAX_SAFE}"),
    |source| source.number().and_then(|number| number.between(0.0, MAX_SAFE as f64)),
    { "type": "number", "minimum": 0, "maximum": MAX_SAFE }
}

shape! {
    /// By what each delay grows.
    pub Factor => f64, "a number from 1 to 100",
    |source| source.number().and_then(|number| number.between(1.0, 100.0)),
    { "type": "number", "minimum": 1, "maximum": 100 }
}

shape! {
    pub Percent => f64, "a number from 0 to 100",
    |source| source.number().and_then(|number| number.between(0.0, 100.0)),
    { "type": "number", "minimum": 0, "maximum": 100 }
}

impl Percent {
    /// The shares of a whole that lie so many percent below it and above it.
    pub const fn to_either_side(percent: f64) -> (f64, f64) {
        (1.0 - percent / 100.0, 1.0 + percent / 100.0)
    }
}

shape! {
    /// A JSON object that is not looked into.
    pub Record => Json, "an object",
    |source| (source.kind() == Kind::Object).then(|| source.json()),
    { "type": "object" }
}

written!(Text, Name, Flag, Index, Record);
written!(Time<const MIN: u64, const MAX: u64>, Integer<const MIN: u32, const MAX: u32>);

macro_rules! written_numbers {
    ($($name:ident),*) => {$(
        impl Write for $name {
            /// JavaScript writes `5`, not `5.0`.
            fn write(value: &f64) -> impl Serialize {
                match Number::real(*value) {
                    Number::Whole(whole) => serde_json::Number::from_i128(whole),
                    Number::Real(real) => serde_json::Number::from_f64(real),
                }
            }
        }
    )*};
}

written_numbers!(Measured, Factor, Percent);

shape! {
    /// Any JSON, `null` included.
    pub Any => Json, "a value",
    |node, _faults| Some(node.source.json()), |_| true,

    const TAKES_NULL: bool = true;
}

written!(Any);

shape! {
    /// A value that need not be there.
    pub Maybe<S> as S => Option<S::Value>,
    |node, faults| S::read(node, faults).map(Some),

    const TAKES_NULL: bool = S::TAKES_NULL;

    fn absent() -> Option<Self::Value> {
        Some(None)
    }

    fn or(own: Self::Value, other: Self::Value) -> Self::Value {
        own.or(other)
    }
}

impl<S: Write> Write for Maybe<S> {
    fn write(value: &Self::Value) -> impl Serialize {
        value.as_ref().map(S::write)
    }

    fn is_absent(value: &Self::Value) -> bool {
        value.is_none()
    }
}

shape! {
    /// An optional value; reading continues after its faults.
    pub Lenient<S> as S => Option<S::Value>,
    |node, faults| Some(S::read(node, faults)),

    const TAKES_NULL: bool = S::TAKES_NULL;

    fn absent() -> Option<Self::Value> {
        Some(None)
    }

    fn or(own: Self::Value, other: Self::Value) -> Self::Value {
        match (own, other) {
            (Some(own), Some(other)) => Some(S::or(own, other)),
            (own, other) => own.or(other),
        }
    }
}

shape! {
    /// What stays as it is by default where it is absent or cannot be read.
    pub OrDefault<S> as S => S::Value,
    |node, faults| S::read(node, faults),

    const TAKES_NULL: bool = S::TAKES_NULL;

    const OPTIONAL: bool = true;
}

/// A value that only the program reads.
pub type Ignored = Maybe<Any>;

shape! {
    /// A list of values of one shape.
    pub List<S> => Vec<S::Value>, "an array",
    |node, faults| {
        let Some(elements) = node.source.elements() else {
            return node.refuse(Self::expected(), faults);
        };
        let read = |(i, element)| S::read(&Node::new(&At::Element(node.at, i), element), faults);
        // All of them first: each may have a fault.
        let values: Vec<_> = elements.into_iter().enumerate().map(read).collect();
        values.into_iter().collect()
    },
    |generator| { "type": "array", "items": (S::schema(generator)) }
}

impl<S: Write> Write for List<S> {
    fn write(value: &Self::Value) -> impl Serialize {
        value.iter().map(S::write).collect::<Vec<_>>()
    }
}

impl Source<'_> {
    /// Whether this is a value of shape `S`; faults are of no interest.
    pub(crate) fn read<S: Shape>(self) -> Option<S::Value> {
        S::read(&Node::new(&At::Root, self), &mut Faults::of(""))
    }
}
