//! Reading a text by the shape that it should have, with every fault collected.
//!
//! For tr-config and tr-turn, which read their files so. It is no part of the public API: it changes in any version.
//!
//! One description of an object, made with [`object!`], is its type, its reader, its writer and
//! its JSON Schema, so that these cannot disagree.
#![allow(clippy::must_use_candidate, reason = "what is public is so for the other crates here")]
mod macros;
mod node;
mod number;
mod object;
#[cfg(feature = "schema")]
mod schema;
mod shape;
mod shape_macro;
mod source;
mod survey;
mod words;

#[cfg(feature = "schema")]
pub use self::schema::{ObjectSchema, schema_of, sorted};
pub use self::{
    macros::{object, with_schema},
    node::{At, Node},
    number::Number,
    object::{Map, Members, Object, members},
    shape::*,
    shape_macro::shape,
    source::{Kind, Source},
    survey::Strictness,
    words::{Word, Words, words},
};
pub use crate::fault::Faults;
#[cfg(feature = "schema")]
pub use schemars;
pub use serde;
pub use serde_json::json;

use crate::{EnvelopeFault, InvalidEnvelope};
use serde_json::value::RawValue;

/// Reads a whole text as `S`.
pub fn document<S: Shape>(
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
pub fn text<S: Shape>(text: &str, strictness: Strictness, faults: &mut Faults) -> Option<S::Value> {
    let raw = survey::survey(text, strictness, faults)?;
    S::read(&Node::new(&At::Root, Source::Json(raw)), faults)
}

/// The language of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Language {
    /// JSON.
    Json,
    /// TOML.
    #[cfg(feature = "toml")]
    Toml,
}

/// Reads a whole configuration. A fault that only knows its pointer gets the offset of what is there.
pub fn configuration<T>(
    text: &str,
    language: Language,
    faults: &mut Faults,
    read: impl FnOnce(&Node<'_>, &mut Faults) -> Option<T>,
) -> Option<T> {
    let read = |source: Source<'_>, faults: &mut Faults| {
        let value = read(&Node::new(&At::Root, source), faults);
        let offset = |fault: &EnvelopeFault| {
            fault.offset().unwrap_or_else(|| source.find(fault.pointer()).offset(faults))
        };
        faults.locate(faults.iter().map(offset).collect());
        value
    };
    match language {
        Language::Json => {
            read(Source::Json(survey::survey(text, Strictness::Canonical, faults)?), faults)
        }
        #[cfg(feature = "toml")]
        Language::Toml => {
            let (table, errors) = toml::de::DeTable::parse_recoverable(text);
            for error in &errors {
                let offset = error.span().map_or(text.len(), |span| span.start);
                faults.push(EnvelopeFault::new("", "TOML", error.message()).at(offset));
            }
            // What was recovered from half a text would only give faults that are none.
            if !errors.is_empty() {
                return None;
            }
            let span = table.span();
            let root = toml::Spanned::new(span, toml::de::DeValue::Table(table.into_inner()));
            read(Source::Toml(&root), faults)
        }
    }
}

/// Reads one value that stands at `at` in some text.
pub fn value<S: Shape>(
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
