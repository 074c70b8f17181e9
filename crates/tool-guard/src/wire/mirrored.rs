//! The arguments that a tool's schema has repeated in headers `mcp-param-…`: `x-mcp-header` of MCP 2026-07-28.
use memchr::memmem;
use serde_json::{Value, value::RawValue};
use std::{borrow::Cow, collections::HashMap};

/// The member of a property's schema that names the header.
const ANNOTATION: &str = "x-mcp-header";
/// How many tools, and how many arguments of each, are remembered; more than servers list.
pub(crate) const MAX_TOOLS: usize = 10_000;
const MAX_ARGUMENTS: usize = 64;
/// How deep properties of properties are read.
const MAX_DEPTH: usize = 16;

/// The arguments that are repeated, by tool.
#[derive(Debug, Default)]
pub(crate) struct Mirrored(HashMap<Box<str>, Vec<Argument>>);

/// An argument that is repeated.
#[derive(Debug, PartialEq, Eq)]
struct Argument {
    path: Vec<Box<str>>,
    /// What comes after `mcp-param-`, in lower case.
    name: Box<str>,
}

impl Mirrored {
    /// Reads what the server's list says of a tool.
    pub(crate) fn learn(&mut self, name: &str, schema: Option<&RawValue>) {
        // Few servers have such tools.
        let says =
            |raw: &&RawValue| memmem::find(raw.get().as_bytes(), ANNOTATION.as_bytes()).is_some();
        let schema = schema.filter(says).and_then(|raw| serde_json::from_str(raw.get()).ok());
        let arguments = schema.and_then(|schema| arguments(&schema)).unwrap_or_default();
        if arguments.is_empty() {
            self.0.remove(name);
        } else if self.0.len() < MAX_TOOLS || self.0.contains_key(name) {
            self.0.insert(name.into(), arguments);
        }
    }

    /// The names of the headers for a call of this tool, without `mcp-param-`, and the argument that each
    /// repeats; `None` where it is absent or null, and there is no such header.
    pub(crate) fn of<'m>(
        &'m self,
        tool: &str,
        arguments: &'m Value,
    ) -> impl Iterator<Item = (&'m str, Option<&'m Value>)> {
        let known = self.0.get(tool).into_iter().flatten();
        known.map(move |argument| {
            let value = argument.path.iter().try_fold(arguments, |value, part| value.get(&**part));
            let is_plain = |value: &&Value| {
                matches!(value, Value::String(_) | Value::Bool(_) | Value::Number(_))
            };
            (&*argument.name, value.filter(is_plain))
        })
    }
}

/// An argument as the text of its header.
pub(crate) fn text(argument: &Value) -> Cow<'_, str> {
    match argument {
        Value::String(text) => text.into(),
        other => other.to_string().into(),
    }
}

/// The arguments that a schema names; `None` if it breaks a rule of the protocol, since clients then leave out
/// the tool.
fn arguments(schema: &Value) -> Option<Vec<Argument>> {
    let mut found = Vec::new();
    collect(schema, &mut Vec::new(), &mut found)?;
    Some(found)
}

fn collect<'s>(
    schema: &'s Value,
    path: &mut Vec<&'s str>,
    found: &mut Vec<Argument>,
) -> Option<()> {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (property, schema) in properties.into_iter().flatten() {
        path.push(property);
        if let Some(name) = schema.get(ANNOTATION) {
            let name = name.as_str()?.to_ascii_lowercase();
            let is_known = found.iter().any(|it| *it.name == *name);
            let kind = schema.get("type").and_then(Value::as_str)?;
            let is_plain = matches!(kind, "string" | "integer" | "boolean" | "number");
            if !is_token(&name) || is_known || !is_plain || found.len() == MAX_ARGUMENTS {
                return None;
            }
            let path = path.iter().map(|part| Box::from(*part)).collect();
            found.push(Argument { path, name: name.into() });
        }
        if path.len() < MAX_DEPTH {
            collect(schema, path, found)?;
        }
        path.pop();
    }
    Some(())
}

/// Whether it is a token of HTTP (RFC 9110, section 5.6.2).
fn is_token(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, value::to_raw_value};

    fn learnt(properties: &Value) -> Mirrored {
        let mut mirrored = Mirrored::default();
        mirrored.learn("pay", Some(&to_raw_value(&json!({ "properties": properties })).unwrap()));
        mirrored.learn("other", None);
        mirrored
    }

    fn headers(mirrored: &Mirrored, arguments: &Value) -> Vec<(String, Option<String>)> {
        let text = |value: Option<&Value>| value.map(|value| text(value).into_owned());
        mirrored.of("pay", arguments).map(|(name, it)| (name.to_owned(), text(it))).collect()
    }

    #[test]
    fn arguments_are_repeated_as_text() {
        let mirrored = learnt(&json!({
            "region": { "type": "string", "x-mcp-header": "Region" },
            "urgent": { "type": "boolean", "x-mcp-header": "Urgent" },
            "where": { "properties": { "row": { "type": "integer", "x-mcp-header": "Row" } } },
            "note": { "type": "string" },
        }));
        let some = |name: &str, text: &str| (name.to_owned(), Some(text.to_owned()));
        let none = |name: &str| (name.to_owned(), None);
        let all = headers(
            &mirrored,
            &json!({ "region": " eu ", "urgent": false, "where": { "row": 42 } }),
        );
        assert_eq!(all, [some("region", " eu "), some("urgent", "false"), some("row", "42")]);
        let few = headers(&mirrored, &json!({ "region": "", "urgent": null, "note": "n" }));
        assert_eq!(few, [some("region", ""), none("urgent"), none("row")]);
        assert_eq!(headers(&mirrored, &json!(null)), [none("region"), none("urgent"), none("row")]);
        assert_eq!(mirrored.of("other", &json!({})).count(), 0);
    }

    #[test]
    fn a_schema_that_breaks_the_rules_names_none() {
        let plain = json!({ "type": "string", "x-mcp-header": "A" });
        for other in [
            json!({ "type": "string", "x-mcp-header": "" }),
            json!({ "type": "string", "x-mcp-header": "a b" }),
            json!({ "type": "string", "x-mcp-header": "é" }),
            json!({ "type": "string", "x-mcp-header": "a" }),
            json!({ "type": "string", "x-mcp-header": 7 }),
            json!({ "type": "object", "x-mcp-header": "B" }),
            json!({ "x-mcp-header": "B" }),
        ] {
            let mirrored = learnt(&json!({ "a": plain, "b": other }));
            assert_eq!(headers(&mirrored, &json!({ "a": "x", "b": "y" })), [], "{other}");
        }
    }

    #[test]
    fn a_later_list_is_believed() {
        let mut mirrored = learnt(&json!({ "a": { "type": "string", "x-mcp-header": "A" } }));
        mirrored.learn("pay", Some(&to_raw_value(&json!({})).unwrap()));
        assert_eq!(headers(&mirrored, &json!({ "a": "x" })), []);
    }
}
