//! Why a value fails a schema, in words for a model and in bounded work.
//!
//! The validator's own list of errors grows with each level of a union, since it has the errors of
//! all forms. So this follows the schema where it says one thing only (`properties`, `items`,
//! `allOf`, `$ref`), asks the validator for the errors of one place at a time, and says of a union
//! or condition only that it does not hold.
use super::bounds::Place;
use crate::{
    canonical::escape,
    internal::{floor_char_boundary, type_name},
};
use jsonschema::{
    Draft, ValidationError, Validator,
    error::{TypeKind, ValidationErrorKind},
};
use serde_json::{Map, Value};
use std::{collections::HashMap, ptr};

/// Faults past this many are left out: a model fixes a few at a time.
const SHOWN: usize = 20;
/// Names in the value, which are shown, may be of any length.
const MOST_TEXT: usize = 1_024;
/// Parts of the schema that are compared with a place in the value. What is past it is not looked at.
const MOST_STEPS: u32 = 50_000;
/// Unions and conditions that are compiled on their own.
const MOST_COMPILED: usize = 32;

/// What is wrong with a value that its schema refuses: missing params first, a model can fix those
/// at once.
pub(super) fn explain(schema: &Value, draft: Draft, value: &Value) -> Vec<String> {
    let nested = |part: &Value| part.as_object().is_some_and(|map| map.values().any(has_id));
    let mut walk = Walk {
        root: schema,
        draft,
        documents: nested(schema),
        steps: MOST_STEPS,
        found: Vec::new(),
        places: HashMap::new(),
        wholes: HashMap::new(),
    };
    walk.visit(schema, "", value, "");
    walk.found.sort_by_key(|(missing, _)| !missing);
    walk.found.truncate(SHOWN);
    if walk.found.is_empty() {
        return vec!["The value does not match its schema".to_owned()];
    }
    let cut = |(_, mut text): (bool, String)| {
        if text.len() > MOST_TEXT {
            text.truncate(floor_char_boundary(&text, MOST_TEXT));
            text.push('…');
        }
        text
    };
    walk.found.into_iter().map(cut).collect()
}

/// Whether a part is a document of its own, so that pointers in it start there.
fn has_id(part: &Value) -> bool {
    match part {
        Value::Object(map) => {
            map.get("$id").or_else(|| map.get("id")).is_some_and(Value::is_string)
                || map.values().any(has_id)
        }
        Value::Array(all) => all.iter().any(has_id),
        _ => false,
    }
}

struct Walk<'s> {
    root: &'s Value,
    draft: Draft,
    documents: bool,
    steps: u32,
    /// Each fault, and whether a param is missing.
    found: Vec<(bool, String)>,
    /// By the part's address: what it says of one place only.
    places: HashMap<*const Value, Option<Validator>>,
    /// By the part's address: all that it says.
    wholes: HashMap<*const Value, Option<Validator>>,
}

impl<'s> Walk<'s> {
    /// Compares a part of the schema, at `pointer`, with the value at `path`.
    fn visit(&mut self, part: &'s Value, pointer: &str, value: &Value, path: &str) {
        if self.steps == 0 || self.found.len() >= SHOWN {
            return;
        }
        self.steps -= 1;
        let map = match part {
            Value::Object(map) => map,
            Value::Bool(false) => return self.tell("No value is allowed".to_owned(), path),
            _ => return,
        };
        let before = self.found.len();
        let followed = self.reference(map, value, path);
        if !map.contains_key("$ref") || !self.reference_is_all() {
            self.place(part, map, value, path);
            self.below(map, pointer, value, path);
        }
        if self.found.len() == before
            && let Some(text) = self.closed(map, followed)
            && self.whole(part, pointer).is_some_and(|whole| !whole.is_valid(value))
        {
            self.tell(text, path);
        }
    }

    /// Up to draft 7, what is beside a reference does not count.
    fn reference_is_all(&self) -> bool {
        matches!(self.draft, Draft::Draft4 | Draft::Draft6 | Draft::Draft7)
    }

    /// Follows a reference to a place in the same document; false if there is one elsewhere.
    fn reference(&mut self, map: &Map<String, Value>, value: &Value, path: &str) -> bool {
        let Some(reference) = map.get("$ref").and_then(Value::as_str) else { return true };
        let pointer = reference.strip_prefix('#').filter(|_| !self.documents);
        let pointer = pointer.filter(|pointer| !pointer.contains('%'));
        let Some((pointer, target)) =
            pointer.and_then(|pointer| Some((pointer, self.root.pointer(pointer)?)))
        else {
            return false;
        };
        self.visit(target, pointer, value, path);
        true
    }

    /// Tells the errors of this place alone.
    fn place(&mut self, part: &'s Value, map: &Map<String, Value>, value: &Value, path: &str) {
        let draft = self.draft;
        let place = self.places.entry(ptr::from_ref(part)).or_insert_with(|| {
            let own = own(map);
            if own.is_empty() {
                return None;
            }
            jsonschema::options().with_draft(draft).build(&Value::Object(own)).ok()
        });
        let Some(place) = place else { return };
        for fault in place.iter_errors(value).take(SHOWN) {
            let missing = matches!(fault.kind(), ValidationErrorKind::Required { .. });
            self.found.push((missing, describe(&fault, path)));
        }
    }

    /// Goes on to the properties and items.
    fn below(&mut self, map: &'s Map<String, Value>, pointer: &str, value: &Value, path: &str) {
        let get = |key: &str| map.get(key);
        for (n, part) in get("allOf").and_then(Value::as_array).into_iter().flatten().enumerate() {
            self.visit(part, &format!("{pointer}/allOf/{n}"), value, path);
        }
        let properties = get("properties").and_then(Value::as_object);
        for (name, part) in properties.into_iter().flatten() {
            if let Some(inner) = value.get(name) {
                let name = escape(name);
                let pointer = format!("{pointer}/properties/{name}");
                self.visit(part, &pointer, inner, &format!("{path}/{name}"));
            }
        }
        if let (Some(part @ Value::Object(_)), None, Value::Object(all)) =
            (get("additionalProperties"), get("patternProperties"), value)
        {
            let pointer = format!("{pointer}/additionalProperties");
            let known = |name| properties.is_some_and(|known| known.contains_key(name));
            for (name, inner) in all.iter().filter(|(name, _)| !known(*name)) {
                self.visit(part, &pointer, inner, &format!("{path}/{}", escape(name)));
            }
        }
        let Value::Array(all) = value else { return };
        let key = if get("items").is_some_and(Value::is_array) { "items" } else { "prefixItems" };
        let first = get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (n, (part, inner)) in first.iter().zip(all).enumerate() {
            self.visit(part, &format!("{pointer}/{key}/{n}"), inner, &format!("{path}/{n}"));
        }
        if let Some(part) = get("items").filter(|part| !part.is_array()) {
            let pointer = format!("{pointer}/items");
            for (n, inner) in all.iter().enumerate().skip(first.len()) {
                self.visit(part, &pointer, inner, &format!("{path}/{n}"));
            }
        }
    }

    /// What to say if the part fails as a whole, for keywords that are not looked into.
    fn closed(&self, map: &Map<String, Value>, followed: bool) -> Option<String> {
        let forms = |key| map.get(key).and_then(Value::as_array).map(Vec::len);
        if let Some(forms) = forms("anyOf").or_else(|| forms("oneOf")) {
            let one = if map.contains_key("oneOf") { "not exactly one" } else { "none" };
            return Some(format!("Matches {one} of the {forms} forms"));
        }
        let rest = [
            "not",
            "if",
            "dependentSchemas",
            "dependencies",
            "patternProperties",
            "propertyNames",
            "contains",
            "additionalItems",
            "unevaluatedProperties",
            "unevaluatedItems",
            "$dynamicRef",
            "$recursiveRef",
        ];
        let key = rest.into_iter().find(|key| map.contains_key(*key));
        let key = key.or_else(|| (!followed).then_some("$ref"))?;
        Some(format!("The value does not match what `{key}` asks"))
    }

    /// The part as a schema of its own, compiled once.
    fn whole(&mut self, part: &Value, pointer: &str) -> Option<&Validator> {
        const ROOT: &str = "urn:tool-schema";
        let room = self.wholes.len() < MOST_COMPILED;
        let (root, draft) = (self.root, self.draft);
        let compiled = self.wholes.entry(ptr::from_ref(part)).or_insert_with(|| {
            if !room {
                return None;
            }
            let registry = jsonschema::Registry::new().draft(draft);
            let registry = registry.add(ROOT, root).ok()?.prepare().ok()?;
            let to = serde_json::json!({"$ref": format!("{ROOT}#{pointer}")});
            let options = jsonschema::options().with_draft(draft).with_registry(&registry);
            options.build(&to).ok()
        });
        compiled.as_ref()
    }

    fn tell(&mut self, text: String, path: &str) {
        self.found.push((false, at(text, path)));
    }
}

/// What a part says of its own place: the keywords that lead elsewhere are left out, and the names
/// of properties stay, so that unknown ones are faults.
fn own(map: &Map<String, Value>) -> Map<String, Value> {
    let mut own = map.clone();
    // The errors of other places and parts are theirs.
    own.retain(|key, inner| {
        let leads = key.starts_with('$') || Place::of(key, inner).is_some();
        !leads && !["definitions", "id"].contains(&&**key)
    });
    if map.get("additionalProperties") == Some(&Value::Bool(false)) {
        own.insert("additionalProperties".to_owned(), Value::Bool(false));
        // Also where there are none: else the error names no property.
        for key in ["properties", "patternProperties"] {
            let names = map.get(key).and_then(Value::as_object).into_iter().flat_map(Map::keys);
            let open = names.map(|name| (name.clone(), Value::Bool(true)));
            own.insert(key.to_owned(), Value::Object(open.collect()));
        }
    }
    own
}

fn at(text: String, path: &str) -> String {
    match path {
        "" => text,
        path => format!("{text} at {path}"),
    }
}

/// One fault as a message for the model, without values of the params.
fn describe(fault: &ValidationError<'_>, path: &str) -> String {
    let path = &*format!("{path}{}", fault.instance_path());
    let text = match fault.kind() {
        ValidationErrorKind::Required { property: Value::String(name) } => {
            let missing = format!("Missing required parameter: {name}");
            return match path {
                "" => missing,
                path => format!("{missing} in {path}"),
            };
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            format!("Unknown parameter: {}", unexpected.join(", "))
        }
        ValidationErrorKind::Type { kind } => {
            format!("Expected {} but received {}", wanted(kind), type_name(fault.instance()))
        }
        ValidationErrorKind::Enum { options } => {
            format!(
                "Expected one of {options} but received another {}",
                type_name(fault.instance())
            )
        }
        ValidationErrorKind::Constant { expected_value } => {
            format!("Expected {expected_value} but received another value")
        }
        _ => fault.masked_with("the value").to_string(),
    };
    at(text, path)
}

fn wanted(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(kind) => kind.to_string(),
        TypeKind::Multiple(kinds) => {
            kinds.iter().map(|kind| kind.to_string()).collect::<Vec<_>>().join(" or ")
        }
    }
}
