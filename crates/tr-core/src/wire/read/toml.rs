//! TOML values as [`Source`](super::Source) sees them.
use super::{
    Source,
    node::{Kind, Members},
    number::Number,
};
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
    Some(table.iter().map(member).collect())
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
        DeValue::Table(table) => {
            table.iter().map(|(name, value)| (name.get_ref().to_string(), json(value))).collect()
        }
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
