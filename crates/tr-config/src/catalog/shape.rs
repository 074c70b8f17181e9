//! The shapes that only a catalog uses.
use std::time::Duration;
use tr_core::canonical::Pointer;
use tr_wire::read::{Kind, List, Percent, Text, shape, words};

shape! {
    /// Several values, to which those of the defaults are added.
    pub(crate) Added<S>
    where { S::Value: IntoIterator + Extend<<S::Value as IntoIterator>::Item> }
    as S => S::Value,
    |node, faults| S::read(node, faults),

    fn or(mut own: Self::Value, other: Self::Value) -> Self::Value {
        own.extend(other);
        own
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
    /// The same, as the largest deviation to either side.
    pub(crate) JitterPercent as Percent => (f64, f64),
    |node, faults| Percent::read(node, faults).map(Percent::to_either_side)
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

shape! {
    /// A JSON pointer, which may be that of the whole.
    pub(crate) Anywhere => Pointer, "a JSON pointer, such as \"/payments\", or \"\" for the whole answer",
    |source| source.text().and_then(|text| text.parse().ok()),
    { "type": "string", "pattern": "^(/([^~/]|~[01])*)*$" }
}

shape! {
    /// A time with its unit.
    pub(crate) Period => Duration, "a time of at most 24 hours with its unit, such as \"60s\"",
    |source| source.text().and_then(|text| period(&text)),
    { "type": "string", "pattern": "^[0-9]+(ms|s|m|h)$" }
}

fn period(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let unit = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    let ms = number.parse::<u64>().ok()?.checked_mul(unit)?;
    (1..=DAY).contains(&ms).then(|| Duration::from_millis(ms))
}

/// How errors with a code end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Permanent,
    Transient,
    /// Transient, and the tool did not run.
    NotRun,
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
