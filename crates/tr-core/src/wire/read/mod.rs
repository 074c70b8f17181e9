//! Reading a text by the shape that it should have, with every fault collected.
//!
//! One description of an object, made with [`object!`], is its type, its reader, its writer and
//! its JSON Schema, so that these cannot disagree.
mod macros;
mod node;
mod number;
mod object;
mod shape;
mod survey;
#[cfg(feature = "catalog")]
mod toml;

pub(crate) use self::{
    macros::{object, words},
    node::{At, Kind, Node, Source},
    number::Number,
    object::Object,
    shape::*,
    survey::Strictness,
};
use super::{EnvelopeFault, InvalidEnvelope, fault::Faults};
use serde_json::value::RawValue;

/// Reads a whole text as `S`.
pub(crate) fn document<S: Shape>(
    form: &'static str,
    json: &[u8],
    strictness: Strictness,
) -> Result<S::Value, InvalidEnvelope> {
    let text = str::from_utf8(json).map_err(|error| {
        let at = error.valid_up_to();
        let mut faults = Faults::of("");
        let found = format!("other bytes at byte {at}");
        faults.push(EnvelopeFault::new("", "JSON in UTF-8", found).at(at));
        InvalidEnvelope::new(form, faults)
    })?;
    let mut faults = Faults::of(text);
    match self::text::<S>(text, strictness, &mut faults) {
        Some(value) if faults.is_empty() => Ok(value),
        _ => Err(InvalidEnvelope::new(form, faults)),
    }
}

/// Reads a whole JSON text as `S`.
pub(crate) fn text<S: Shape>(
    text: &str,
    strictness: Strictness,
    faults: &mut Faults,
) -> Option<S::Value> {
    let raw = survey::survey(text, strictness, faults)?;
    S::read(&Node::new(&At::Root, Source::Json(raw)), faults)
}

/// Reads one value that stands at `at` in some text.
pub(crate) fn value<S: Shape>(
    form: &'static str,
    raw: &RawValue,
    at: &At<'_>,
) -> Result<S::Value, InvalidEnvelope> {
    let mut faults = Faults::of(raw.get());
    match S::read(&Node::new(at, Source::Json(raw)), &mut faults) {
        Some(value) if faults.is_empty() => Ok(value),
        _ => Err(InvalidEnvelope::new(form, faults)),
    }
}
