//! JSON Schemas, made from the same shapes as the readers.
use super::{Ignored, Shape};
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

/// The schema of an object, member by member.
#[derive(Debug)]
pub struct ObjectSchema {
    takes_nulls: bool,
    members: Map<String, Value>,
    required: Vec<&'static str>,
}

impl ObjectSchema {
    /// `describe` adds the members.
    pub fn of(
        docs: &str,
        is_closed: bool,
        takes_nulls: bool,
        describe: impl FnOnce(&mut Self),
    ) -> Schema {
        let (members, required) = (Map::new(), Vec::new());
        let mut object = Self { takes_nulls, members, required };
        describe(&mut object);
        let mut schema = Map::new();
        schema.insert("description".into(), text(docs).into());
        schema.insert("type".into(), "object".into());
        schema.insert("properties".into(), object.members.into());
        if !object.required.is_empty() {
            schema.insert("required".into(), object.required.into());
        }
        if is_closed {
            schema.insert("additionalProperties".into(), false.into());
        }
        schema.into()
    }

    pub fn constant(&mut self, name: &'static str, value: &str) {
        self.members.insert(name.into(), json!({ "const": value }));
        self.required.push(name);
    }

    pub fn ignored(&mut self, generator: &mut SchemaGenerator, name: &'static str) {
        self.field::<Ignored>(generator, name, "Not looked at.");
    }

    pub fn field<S: Shape>(
        &mut self,
        generator: &mut SchemaGenerator,
        name: &'static str,
        docs: &str,
    ) {
        let mut schema = S::schema(generator).to_value();
        match S::OPTIONAL || S::absent().is_some() {
            false => self.required.push(name),
            true if self.takes_nulls && !S::TAKES_NULL => schema = nullable(schema),
            true => {}
        }
        self.members.insert(name.into(), described(schema, text(docs)));
    }

    /// What holds where the member is absent.
    pub fn default(&mut self, name: &'static str, value: Value) {
        self.members[name]["default"] = value;
    }
}

fn nullable(mut schema: Value) -> Value {
    match schema.get_mut("type") {
        Some(kind) => *kind = json!([kind.clone(), "null"]),
        None => return json!({ "anyOf": [schema, { "type": "null" }] }),
    }
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.push(Value::Null);
    }
    schema
}

fn described(schema: Value, about: String) -> Value {
    let mut schema = match schema {
        Value::Object(schema) => schema,
        Value::Bool(true) => Map::new(),
        other => Map::from_iter([("allOf".to_owned(), json!([other]))]),
    };
    schema.insert("description".into(), about.into());
    schema.into()
}

/// Docs as one line of text.
fn text(docs: &str) -> String {
    docs.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The schema of a whole text of form `T`, with the name of its file.
pub fn schema_of<T: JsonSchema>(name: &'static str, title: &str) -> (&'static str, Value) {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<T>();
    schema.insert("title".into(), title.into());
    (name, sorted(schema.to_value()))
}

/// The same schema, with members in the order of their names, whatever map serde_json was built with.
pub fn sorted(value: Value) -> Value {
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
