//! What a form on a screen wants to know of a schema: a title for each member, and examples.
use serde_json::{Value, json};

/// Adds them to a whole schema; the examples are the parts of `example`.
pub(super) fn add(schema: &mut Value, example: &Value) {
    let mut defs = match schema.get_mut("$defs") {
        Some(defs) => defs.take(),
        None => Value::Null,
    };
    members(schema, example, &mut defs);
    if !defs.is_null() {
        schema["$defs"] = defs;
    }
    schema["examples"] = json!([example]);
}

/// Titles and examples for the members of an object.
fn members(schema: &mut Value, example: &Value, defs: &mut Value) {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str).and_then(definition) {
        let mut definition = defs[&name].take();
        members(&mut definition, example, defs);
        defs[&name] = definition;
        return;
    }
    for choice in schema.get_mut("anyOf").and_then(Value::as_array_mut).into_iter().flatten() {
        members(choice, example, defs);
    }
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (name, member) in properties.into_iter().flatten() {
        let example = example.get(name);
        // `true` and `false` are schemas too, and cannot be added to.
        if let Some(member) = member.as_object_mut() {
            member.insert("title".into(), title(name).into());
            member.extend(example.map(|example| ("examples".to_owned(), json!([example]))));
        }
        let Some(example) = example else { continue };
        members(member, example, defs);
        let named = member.get_mut("additionalProperties").filter(|named| named.is_object());
        let named = named.zip(example.as_object().and_then(|members| members.values().next()));
        if let Some((named, example)) = named {
            members(named, example, defs);
        }
    }
}

fn definition(reference: &str) -> Option<String> {
    reference.strip_prefix("#/$defs/").map(str::to_owned)
}

/// `cooldown_ms` as `Cooldown (ms)`.
fn title(name: &str) -> String {
    let name = name.trim_start_matches('$');
    let (words, unit) = match name.strip_suffix("_ms") {
        Some(words) => (words, " (ms)"),
        None => (name, ""),
    };
    let words = words.replace('_', " ");
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(unit.chars()).collect()
}
