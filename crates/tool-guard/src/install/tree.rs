//! A configuration as a tree of values with their places in the text, whatever its syntax.
use jsonc_parser::{CollectOptions, ParseOptions, ast, common::Ranged as _, parse_to_ast};
use std::{borrow::Cow, ops::Range};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The syntax of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// JSON, with comments and trailing commas, which most of the clients read.
    Json,
    /// JSON5.
    Json5,
    Toml,
}

/// A value and its bytes in the text.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) range: Range<usize>,
    pub(crate) value: Value,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// In the order of the text.
    Object(Vec<Member>),
    List(Vec<Node>),
    Text(String),
    Bool(bool),
    Other,
}

/// A member of an object; an object may have several of one name.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) key: Range<usize>,
    pub(crate) value: Node,
}

/// Why a text, or a part of it, is not understood: at a byte of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) at: usize,
    pub(crate) what: String,
}

impl Refusal {
    pub(crate) fn new(at: usize, what: impl Into<String>) -> Self {
        Self { at, what: what.into() }
    }
}

/// The line of a byte, from 1.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}

const BOM: char = '\u{feff}';

/// Reads a text; `None` if it has no value, only white space and comments.
pub(crate) fn read(text: &str, syntax: Syntax) -> Result<Option<Node>, Refusal> {
    match syntax {
        Syntax::Toml => {
            let table = DeTable::parse(text).map_err(|error| {
                let at = error.span().map_or(0, |span| span.start);
                Refusal::new(at, format!("is not valid TOML: {}", error.message()))
            })?;
            Ok(Some(Node { range: 0..text.len(), value: of_table(table.get_ref()) }))
        }
        Syntax::Json | Syntax::Json5 => {
            // The parser knows no byte order mark. Spaces in its place leave all others where they are.
            let text = match text.strip_prefix(BOM) {
                Some(rest) => format!("{:1$}{rest}", "", BOM.len_utf8()).into(),
                None => Cow::Borrowed(text),
            };
            let is_json5 = syntax == Syntax::Json5;
            let options = ParseOptions {
                allow_comments: true,
                allow_trailing_commas: true,
                allow_missing_commas: false,
                allow_loose_object_property_names: is_json5,
                allow_single_quoted_strings: is_json5,
                allow_hexadecimal_numbers: is_json5,
                allow_unary_plus_numbers: is_json5,
                allow_bare_decimal_point_numbers: is_json5,
                allow_non_finite_numbers: is_json5,
                allow_extended_string_escapes: is_json5,
            };
            let parsed = parse_to_ast(&text, &CollectOptions::default(), &options);
            let parsed = parsed.map_err(|error| {
                let what = format!("is not valid JSON: {}", error.kind());
                Refusal::new(error.range().start, what)
            })?;
            Ok(parsed.value.map(of_json))
        }
    }
}

fn of_json(value: ast::Value<'_>) -> Node {
    let range = value.range().start..value.range().end;
    let value = match value {
        ast::Value::StringLit(text) => Value::Text(text.value.into_owned()),
        ast::Value::BooleanLit(literal) => Value::Bool(literal.value),
        ast::Value::Object(object) => {
            let member = |it: ast::ObjectProp<'_>| {
                let key = it.name.range().start..it.name.range().end;
                Member { name: it.name.into_string(), key, value: of_json(it.value) }
            };
            Value::Object(object.properties.into_iter().map(member).collect())
        }
        ast::Value::Array(list) => Value::List(list.elements.into_iter().map(of_json).collect()),
        ast::Value::NumberLit(_) | ast::Value::NullKeyword(_) => Value::Other,
    };
    Node { range, value }
}

fn of_table(table: &DeTable<'_>) -> Value {
    let mut members: Vec<_> = table
        .iter()
        .map(|(key, value)| Member {
            name: key.get_ref().to_string(),
            key: key.span(),
            value: of_toml(value),
        })
        .collect();
    members.sort_by_key(|member| member.key.start);
    Value::Object(members)
}

fn of_toml(found: &Spanned<DeValue<'_>>) -> Node {
    let value = match found.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Table(table) => of_table(table),
        DeValue::Array(list) => Value::List(list.iter().map(of_toml).collect()),
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Datetime(_) => Value::Other,
    };
    Node { range: found.span(), value }
}

impl Node {
    pub(crate) fn members(&self) -> Option<&[Member]> {
        match &self.value {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn list(&self) -> Option<&[Self]> {
        match &self.value {
            Value::List(list) => Some(list),
            _ => None,
        }
    }
}

/// The member of this name; refuses an object that has it twice, of which readers take different ones.
pub(crate) fn member<'m>(members: &'m [Member], name: &str) -> Result<Option<&'m Member>, Refusal> {
    let mut named = members.iter().filter(|member| member.name == name);
    let first = named.next();
    match named.next() {
        Some(second) => Err(Refusal::new(
            second.key.start,
            format!("has the name {name:?} twice in one object: remove one of them"),
        )),
        None => Ok(first),
    }
}
