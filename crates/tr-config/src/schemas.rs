//! JSON Schemas of the catalogue and the configuration, made from the same descriptions as their readers.
//!
//! A schema takes what its reader takes, but for what JSON Schema cannot say: that names in an object
//! must differ, and that values must have a canonical form.
mod defaults;
mod hints;
mod keys;

pub use self::{
    defaults::{defaults, section_defaults},
    keys::{Key, keys},
};

use crate::{catalog, stack};
use serde_json::{Value, json};
use tr_wire::read::{schema_of as of, schemars::JsonSchema, sorted};

/// Each schema and the name of its file in `schemas/`.
#[must_use]
pub fn all() -> Vec<(&'static str, Value)> {
    vec![
        for_tools(of::<catalog::Catalog>("tool-catalog", "Tool catalogue")),
        for_tool(of::<catalog::Tool>("tool-manifest", "Tool manifest")),
        for_tools(hinted::<stack::ConfigForm>("stack-config", "Stack configuration", CONFIG)),
    ]
}

/// Where no tools are listed, defaults would hold for none.
fn for_tools((name, mut schema): (&'static str, Value)) -> (&'static str, Value) {
    schema["dependentRequired"] = json!({ "defaults": ["tools"] });
    one_endpoint(&mut schema["$defs"]["Tool"]);
    (name, sorted(schema))
}

fn for_tool((name, mut schema): (&'static str, Value)) -> (&'static str, Value) {
    one_endpoint(&mut schema);
    (name, sorted(schema))
}

/// A tool has an address or a command, and what is said of its requests needs the address.
fn one_endpoint(tool: &mut Value) {
    tool["dependentRequired"] = json!({ "headers": ["url"], "method": ["url"] });
    tool["not"] = json!({ "required": ["command", "url"] });
}

/// The schema of configurations.
#[must_use]
pub fn config() -> Value {
    for_tools(hinted::<stack::ConfigForm>("stack-config", "Stack configuration", CONFIG)).1
}

/// A configuration from which the examples in its schema are taken.
pub const CONFIG: &str = include_str!("schemas/stack-config.example.json");

/// With a title for each member, and examples from a whole one.
fn hinted<T: JsonSchema>(name: &'static str, title: &str, example: &str) -> (&'static str, Value) {
    let (name, mut schema) = of::<T>(name, title);
    let example = serde_json::from_str(example).expect("the example is JSON");
    hints::add(&mut schema, &example);
    hints::add_defaults(&mut schema);
    (name, sorted(schema))
}
