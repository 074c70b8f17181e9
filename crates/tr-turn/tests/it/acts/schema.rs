//! The keys that a schema knows.
use serde_json::Value;
use std::{collections::BTreeSet, fs, path::Path};

/// Paths with dots to all that a value can be given for; `*` stands for a tool's name.
pub(crate) fn keys(schema: &str, prefix: &str) -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    let text = fs::read_to_string(root.join(format!("{schema}.schema.json"))).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    let mut all = BTreeSet::new();
    walk(&schema, &schema, prefix, &mut all);
    all
}

fn walk(schema: &Value, root: &Value, prefix: &str, all: &mut BTreeSet<String>) {
    let schema = match schema["$ref"].as_str() {
        Some(reference) => root.pointer(reference.trim_start_matches('#')).unwrap(),
        None => schema,
    };
    for choice in schema["anyOf"].as_array().into_iter().flatten() {
        walk(choice, root, prefix, all);
    }
    if schema["additionalProperties"]["$ref"].is_string()
        || schema["additionalProperties"]["anyOf"].is_array()
    {
        if schema["additionalProperties"]["anyOf"].is_array() {
            all.insert(format!("{prefix}*"));
        }
        walk(&schema["additionalProperties"], root, &format!("{prefix}*."), all);
    }
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let before = all.len();
        walk(member, root, &format!("{prefix}{name}."), all);
        // A section is what is in it; a stage may be a word, too.
        if name != "$schema" && (all.len() == before || !member["anyOf"].is_null()) {
            all.insert(format!("{prefix}{name}"));
        }
    }
}
