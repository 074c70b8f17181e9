//! Parts of schemas.
use serde_json::{Map, Value, json};

/// A member of an object.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) name: &'static str,
    pub(super) is_required: bool,
    pub(super) schema: Value,
}

/// A member that is always there.
pub(super) fn always(name: &'static str, description: &str, schema: Value) -> Member {
    let mut schema = schema;
    schema["description"] = description.into();
    Member { name, is_required: true, schema }
}

/// A member that may be left out.
pub(super) fn maybe(name: &'static str, description: &str, schema: Value) -> Member {
    Member { is_required: false, ..always(name, description, schema) }
}

pub(super) fn object(title: &str, members: &[Vec<Member>]) -> Value {
    let required: Vec<_> =
        members.iter().flatten().filter(|it| it.is_required).map(|it| it.name).collect();
    let properties: Map<_, _> =
        members.iter().flatten().map(|it| (it.name.into(), it.schema.clone())).collect();
    json!({ "title": title, "type": "object", "required": required, "properties": properties })
}

pub(super) fn text() -> Value {
    json!({ "type": "string" })
}

pub(super) fn number() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

pub(super) fn flag() -> Value {
    json!({ "type": "boolean" })
}

pub(super) fn list(items: &Value) -> Value {
    json!({ "type": "array", "items": items })
}

pub(super) fn def(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// A member with one value of some: more may come where it is said so.
pub(super) fn one_of(values: &[&str]) -> Value {
    json!({ "enum": values })
}

/// A word of a list that grows with the program.
pub(super) fn word() -> Value {
    json!({ "type": "string", "pattern": "^[a-z0-9_]+$" })
}
