//! Envelopes of all kinds that their schemas allow: each is written again as it was read.
use crate::{
    round_trip::{call, request, response, result},
    samples::assert_same,
};
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Map, Value};
use tr_wire::schemas;

fn text() -> impl Strategy<Value = Value> {
    "\\PC{0,8}".prop_map(Value::from)
}

fn name() -> impl Strategy<Value = Value> {
    "[a-zA-Z0-9:./ü-]{1,12}".prop_map(Value::from)
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e300..1e300).prop_map(Value::from),
        text(),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            object(inner).prop_map(Value::from)
        ]
    })
}

fn object(values: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    vec(("\\PC{0,6}", values), 0..4).prop_map(Map::from_iter)
}

/// What a schema allows, with members that it does not know.
fn allowed(schema: &Value, root: &Value) -> BoxedStrategy<Value> {
    if let Some(definition) = schema["$ref"].as_str() {
        return allowed(root.pointer(&definition[1..]).unwrap(), root);
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        return allowed(&choices[0], root);
    }
    if let Some(value) = schema.get("const") {
        return Just(value.clone()).boxed();
    }
    if let Some(words) = schema["enum"].as_array() {
        // What is absent is no `null`, and what is written is `enforced`.
        let words = words.iter().filter(|word| !word.is_null() && **word != "enabled");
        return select(words.cloned().collect::<Vec<_>>()).boxed();
    }
    let whole = || {
        let bound = |name| schema[name].as_u64().unwrap();
        (bound("minimum")..=bound("maximum")).prop_map(Value::from).boxed()
    };
    match schema["type"].as_str().or(schema["type"][0].as_str()) {
        Some("string") if schema["minLength"] == 1 => name().boxed(),
        Some("string") => text().boxed(),
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        Some("integer") => whole(),
        Some("number") => {
            let bound = |name| schema[name].as_f64().unwrap().min(1e9);
            let part = (bound("minimum")..bound("maximum")).prop_map(Value::from);
            prop_oneof![whole(), part].boxed()
        }
        Some("array") => vec(allowed(&schema["items"], root), 0..4).prop_map(Value::from).boxed(),
        Some("object") => match schema["properties"].as_object() {
            Some(members) => form(members, &schema["required"], root),
            None if schema["additionalProperties"].is_object() => {
                object(text()).prop_map(Value::from).boxed()
            }
            None => object(any_json()).prop_map(Value::from).boxed(),
        },
        _ => any_json().boxed(),
    }
}

fn form(members: &Map<String, Value>, required: &Value, root: &Value) -> BoxedStrategy<Value> {
    let is_required =
        |name: &str| required.as_array().is_some_and(|all| all.contains(&name.into()));
    let member = |(name, schema): (&String, &Value)| {
        let value = allowed(schema, root);
        let value = if is_required(name) {
            value.prop_map(Some).boxed()
        } else {
            option::of(value).boxed()
        };
        (Just(name.clone()), value)
    };
    let strangers = vec(("x-\\PC{0,6}", any_json()), 0..3);
    (members.iter().map(member).collect::<Vec<_>>(), strangers)
        .prop_map(|(members, strangers)| {
            let known = members.into_iter().filter_map(|(name, value)| Some((name, value?)));
            Value::Object(known.chain(strangers).collect())
        })
        .boxed()
}

fn any_of(form: &str) -> BoxedStrategy<Value> {
    let all = schemas::all();
    let (_, schema) = all.iter().find(|(name, _)| *name == form).unwrap();
    allowed(schema, schema)
}

pub(crate) fn calls() -> BoxedStrategy<Value> {
    any_of("bs-tim-5-tool-call")
}

pub(crate) fn results() -> BoxedStrategy<Value> {
    any_of("bs-tim-5-tool-result")
}

pub(crate) fn requests() -> BoxedStrategy<Value> {
    any_of("utee-tool-request")
}

pub(crate) fn responses() -> BoxedStrategy<Value> {
    any_of("utee-tool-response")
}

proptest! {
    #[test]
    fn ut_01_any_call_envelope_survives(value in calls()) {
        let text = value.to_string();
        assert_same(&call(&text), &text);
    }

    #[test]
    fn ut_01_any_result_envelope_survives(value in results()) {
        let text = value.to_string();
        assert_same(&result(&text), &text);
    }

    #[test]
    fn ut_01_any_request_survives(value in requests()) {
        let text = value.to_string();
        assert_same(&request(&text), &text);
    }

    #[test]
    fn ut_01_any_response_survives(value in responses()) {
        let text = value.to_string();
        assert_same(&response(&text), &text);
    }
}
