//! JSON Schemas of what is read and written here, made from the same descriptions as the readers.
//!
//! A schema takes what its reader takes, but for two things that JSON Schema cannot say: that
//! names in an object must differ, and that params must have a canonical form.
mod hints;

use crate::{
    catalog, config,
    wire::{bs_tim_5, utee},
};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value};

/// Each schema and the name of its file in `schemas/`.
#[must_use]
pub fn all() -> Vec<(&'static str, Value)> {
    vec![
        of::<bs_tim_5::ToolCallEnvelope>("bs-tim-5-tool-call", "BS-TIM-5 v1.1 tool call"),
        of::<bs_tim_5::ToolResultEnvelope>("bs-tim-5-tool-result", "BS-TIM-5 v1.1 tool result"),
        of::<utee::ToolRequest>("utee-tool-request", "UTEE tool request"),
        of::<utee::ToolResponse>("utee-tool-response", "UTEE tool response"),
        of::<utee::RetryPolicy>("utee-retry-policy", "UTEE retry policy"),
        of::<utee::Options>("utee-options", "UTEE options beside a tool's params"),
        for_tools(of::<catalog::Catalog>("tool-catalog", "Tool catalogue")),
        of::<catalog::Tool>("tool-manifest", "Tool manifest"),
        for_tools(hinted::<config::ConfigForm>("stack-config", "Stack configuration", CONFIG)),
    ]
}

/// Where no tools are listed, defaults would hold for none.
fn for_tools((name, mut schema): (&'static str, Value)) -> (&'static str, Value) {
    schema["dependentRequired"] = serde_json::json!({ "defaults": ["tools"] });
    (name, sorted(schema))
}

/// A configuration from which the examples in its schema are taken.
pub const CONFIG: &str = include_str!("schemas/stack-config.example.json");

/// With a title for each member, and examples from a whole one.
fn hinted<T: JsonSchema>(name: &'static str, title: &str, example: &str) -> (&'static str, Value) {
    let (name, mut schema) = of::<T>(name, title);
    let example = serde_json::from_str(example).expect("the example is JSON");
    hints::add(&mut schema, &example);
    (name, sorted(schema))
}

fn of<T: JsonSchema>(name: &'static str, title: &str) -> (&'static str, Value) {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<T>();
    schema.insert("title".into(), title.into());
    (name, sorted(schema.to_value()))
}

/// With members in the order of their names, whatever map serde_json was built with.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> =
                members.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            members.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Object(Map::from_iter(members))
        }
        Value::Array(elements) => elements.into_iter().map(sorted).collect(),
        other => other,
    }
}
