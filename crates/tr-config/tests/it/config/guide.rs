//! docs/configuration.md lists every key with its values, its default and its meaning.
//!
//! With `TR_BLESS=1` the test writes the tables instead of comparing them.
use serde_json::Value;
use std::{collections::BTreeSet, env, fmt::Write as _, fs, path::PathBuf};
use tr_config::schemas::{self, Key};

/// What `EFFECT` stands for in the guide's keys.
const EFFECTS: [&str; 3] = ["idempotent", "mutating", "read_only"];

/// Tables that have the keys of an effect's table.
const ELSEWHERE: [&str; 2] = ["rollout.tools.*.", "tools.*.retry."];

fn page() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md")
}

/// The schemas of which a value must have one.
fn shapes<'s>(root: &'s Value, schema: &'s Value) -> Vec<&'s Value> {
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
        return shapes(root, &root["$defs"][name]);
    }
    match schema["anyOf"].as_array() {
        Some(choices) => choices.iter().flat_map(|choice| shapes(root, choice)).collect(),
        None => vec![schema],
    }
}

/// The schema of a key.
fn member<'s>(root: &'s Value, path: &[String]) -> Option<&'s Value> {
    let mut at = root;
    for part in path {
        at = shapes(root, at).into_iter().find_map(|shape| match &**part {
            "*" => Some(&shape["additionalProperties"]),
            name => shape["properties"].get(name),
        })?;
    }
    Some(at)
}

/// What a value can be, in words.
fn values(root: &Value, schema: &Value) -> String {
    let one = |shape: &Value| -> Option<String> {
        if let Some(words) = shape["enum"].as_array() {
            let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
            return Some(words.join(", "));
        }
        if !shape["const"].is_null() {
            return Some(format!("`{}`", shape["const"]));
        }
        if shape["properties"].is_object() {
            return Some("a table".into());
        }
        let bound = |name: &str| shape.get(name).map(ToString::to_string);
        let range = match (bound("minimum"), bound("exclusiveMinimum"), bound("maximum")) {
            // The largest whole number that JSON carries everywhere.
            (Some(low), _, Some(high)) if high == "9007199254740991" => format!("{low} or more"),
            (Some(low), _, Some(high)) => format!("{low}–{high}"),
            (_, Some(low), Some(high)) => format!("above {low}, at most {high}"),
            _ => "a number".into(),
        };
        Some(match shape["type"].as_str() {
            Some("boolean") => "`true`, `false`".into(),
            Some("integer" | "number") => range,
            Some("string") => "text".into(),
            Some("array") => match shape["items"]["type"].as_str() {
                Some("number") => "two numbers from 0 to 2".into(),
                _ => "a list".into(),
            },
            Some("object") if shape["additionalProperties"].is_object() => {
                format!("names with {}", values(root, &shape["additionalProperties"]))
            }
            Some("object") => "a JSON Schema".into(),
            _ => return None,
        })
    };
    let all: Vec<_> = shapes(root, schema).into_iter().filter_map(one).collect();
    if all.is_empty() { "any value".into() } else { all.join(", or ") }
}

/// The table of one section; `""` is the top. Keys that differ only in the effect share a row.
fn table(root: &Value, keys: &[Key], section: &str) -> String {
    let mut rows: Vec<([String; 3], Vec<Option<String>>)> = Vec::new();
    for key in keys {
        let within = match section {
            "" => key.path.len() == 1 && key.is_value && !key.is_table,
            section => key.path.len() > 1 && key.path[0] == section,
        };
        let name = key.name();
        if !within || !key.is_value || ELSEWHERE.iter().any(|table| name.starts_with(table)) {
            continue;
        }
        let schema = member(root, &key.path).expect("the key is in the schema");
        let mut default = default_of(root, &key.path);
        let mut name = if section.is_empty() { name } else { key.path[1..].join(".") };
        if let Some((effect, rest)) = name.split_once('.')
            && EFFECTS.contains(&effect)
        {
            default = default.map(|default| format!("{default} for `{effect}`"));
            name = format!("EFFECT.{rest}");
        }
        let about = key.about.replace('|', "\\|").replace(", in milliseconds", "");
        let row = [name, values(root, schema), about];
        match rows.iter_mut().find(|(known, _)| *known == row) {
            Some((_, defaults)) => defaults.push(default),
            None => rows.push((row, vec![default])),
        }
    }
    let mut table = String::from("| key | values | default | meaning |\n|---|---|---|---|\n");
    for ([name, values, about], defaults) in rows {
        let is_whole = !name.starts_with("EFFECT") || defaults.len() == EFFECTS.len();
        assert!(is_whole, "{section}.{name} is not the same for all effects");
        let mut default = defaults.into_iter().flatten().collect::<Vec<_>>().join(", ");
        if default.is_empty() {
            default = "–".into();
        }
        writeln!(table, "| `{name}` | {values} | {default} | {about} |").unwrap();
    }
    table
}

/// The default of a key; of one of an effect, its table may have it.
fn default_of(root: &Value, path: &[String]) -> Option<String> {
    let (last, table) = path.split_last()?;
    let own = member(root, path)?.get("default");
    let default = own.or_else(|| member(root, table)?["default"].get(last))?;
    Some(format!("`{default}`"))
}

#[test]
fn the_guide_has_every_key() {
    let root = schemas::config();
    let keys = schemas::keys(&root);
    let tops: BTreeSet<_> =
        keys.iter().filter(|key| key.path.len() > 1).map(|key| &*key.path[0]).collect();
    let mut guide = fs::read_to_string(page()).unwrap();
    // What holds for all tools has the keys of one.
    for section in tops.into_iter().filter(|top| *top != "defaults").chain([""]) {
        let (begin, end) = (format!("<!-- keys: {section} -->\n"), "<!-- end -->");
        let at = guide.find(&begin).unwrap_or_else(|| {
            panic!("docs/configuration.md has no tables for {section:?}: write {begin}{end}")
        });
        let from = at + begin.len();
        let to = from + guide[from..].find(end).expect("the table ends");
        let wanted = table(&root, &keys, section);
        if env::var_os("TR_BLESS").is_some() {
            guide.replace_range(from..to, &wanted);
        }
        let to = from + guide[from..].find(end).expect("the table ends");
        assert_eq!(
            &guide[from..to],
            wanted,
            "docs/configuration.md, {section:?}: run this test with TR_BLESS=1"
        );
    }
    if env::var_os("TR_BLESS").is_some() {
        fs::write(page(), guide).unwrap();
    }
}
