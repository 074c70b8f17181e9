//! JSON Schemas of the catalog and the configuration, made from the same descriptions as their readers.
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
use tr_wire::read::{schema_of as of, sorted};

/// Each schema and the name of its file in `schemas/`.
#[must_use]
pub fn all() -> Vec<(&'static str, Value)> {
    let (catalog, tools) = of::<catalog::Catalog>("tool-catalog", "Tool catalog");
    let (manifest, mut tool) = of::<catalog::Tool>("tool-manifest", "Tool manifest");
    one_endpoint(&mut tool);
    vec![(catalog, for_tools(tools)), (manifest, sorted(tool)), ("stack-config", config())]
}

/// Where no tools are listed, defaults would hold for none.
fn for_tools(mut schema: Value) -> Value {
    schema["dependentRequired"] = json!({ "defaults": ["tools"] });
    one_endpoint(&mut schema["$defs"]["Tool"]);
    sorted(schema)
}

/// A tool has an address or a command, and what is said of its requests needs the address.
fn one_endpoint(tool: &mut Value) {
    tool["dependentRequired"] = json!({ "headers": ["url"], "method": ["url"] });
    tool["not"] = json!({ "required": ["command", "url"] });
}

/// The schema of configurations, with a title for each member, and examples from a whole one.
#[must_use]
pub fn config() -> Value {
    let (_, mut schema) = of::<stack::Config>("stack-config", "Stack configuration");
    let example = serde_json::from_str(CONFIG).expect("the example is JSON");
    hints::add(&mut schema, &example);
    for_tools(schema)
}

/// A configuration from which the examples in its schema are taken.
pub const CONFIG: &str = include_str!("schemas/stack-config.example.json");
