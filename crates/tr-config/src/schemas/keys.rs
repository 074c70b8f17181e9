//! Every key that a configuration can have, from its schema.
use serde_json::Value;

/// A key of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Key {
    /// Its place, with `*` for names that the operator chooses: `["tools", "*", "timeout_ms"]`.
    pub path: Vec<String>,
    /// What it means.
    pub about: String,
    /// Its values have keys of their own.
    pub is_table: bool,
    /// It can have a value that is no table.
    pub is_value: bool,
}

impl Key {
    /// The place as the guide writes it: `tools.*.timeout_ms`.
    #[must_use]
    pub fn name(&self) -> String {
        self.path.join(".")
    }
}

/// Every key of this schema, tables before their keys.
#[must_use]
pub fn keys(schema: &Value) -> Vec<Key> {
    let mut found = Vec::new();
    walk(schema, schema, &mut Vec::new(), &mut found);
    found
}

/// What the operator chooses the name of.
const ANY: &str = "*";

fn walk(root: &Value, schema: &Value, path: &mut Vec<String>, found: &mut Vec<Key>) {
    for object in shapes(root, schema) {
        for (name, member) in object["properties"].as_object().into_iter().flatten() {
            if name == "$schema" {
                continue;
            }
            path.push(name.clone());
            found.push(key(root, member, path));
            // A part of a catalog's tool is not described twice.
            walk(root, member, path, found);
            path.pop();
        }
        let named = &object["additionalProperties"];
        if named.is_object() {
            path.push(ANY.into());
            walk(root, named, path, found);
            path.pop();
        }
    }
}

fn key(root: &Value, member: &Value, path: &[String]) -> Key {
    let about = member["description"].as_str().unwrap_or_default().to_owned();
    let shapes = shapes(root, member);
    // What is named freely may be a table or a value.
    let is_named = |shape: &&Value| shape["additionalProperties"].is_object();
    let is_table = shapes.iter().any(|shape| shape["properties"].is_object() || is_named(shape));
    let is_value = shapes.iter().any(|shape| {
        let values = is_named(shape) && shapes_of_values(root, shape);
        values || !(shape["properties"].is_object() || is_named(shape))
    });
    Key { path: path.to_vec(), about, is_table, is_value }
}

/// Whether what is named in this table is no table itself.
fn shapes_of_values(root: &Value, table: &Value) -> bool {
    shapes(root, &table["additionalProperties"])
        .iter()
        .any(|shape| !shape["properties"].is_object())
}

/// The schemas of which a value must have one.
pub(super) fn shapes<'s>(root: &'s Value, schema: &'s Value) -> Vec<&'s Value> {
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
        return shapes(root, &root["$defs"][name]);
    }
    match schema["anyOf"].as_array() {
        Some(choices) => choices.iter().flat_map(|choice| shapes(root, choice)).collect(),
        None => vec![schema],
    }
}
