//! The schemas and the readers take the same, and refuse the same.
use crate::{
    generated::{calls, requests, responses, results},
    samples::{BARE_CALL, CALL, FAILED_RESPONSE, REQUEST, RESPONSE, RESULT},
};
use jsonschema::Validator;
use proptest::{prelude::*, sample::Index};
use serde_json::{Value, json};
use std::sync::LazyLock;
use tr_core::Params;
use tr_wire::{
    bs_tim_5::{ToolCallEnvelope, ToolResultEnvelope},
    schemas,
    utee::{Options, ToolRequest, ToolResponse},
};

fn schema(name: &str) -> Validator {
    let all = schemas::all();
    let (_, schema) = all.iter().find(|(own, _)| *own == name).unwrap();
    jsonschema::meta::validate(schema).unwrap();
    jsonschema::validator_for(schema).unwrap()
}

static CALLS: LazyLock<Validator> = LazyLock::new(|| schema("bs-tim-5-tool-call"));
static RESULTS: LazyLock<Validator> = LazyLock::new(|| schema("bs-tim-5-tool-result"));
static REQUESTS: LazyLock<Validator> = LazyLock::new(|| schema("utee-tool-request"));
static RESPONSES: LazyLock<Validator> = LazyLock::new(|| schema("utee-tool-response"));
static OPTIONS: LazyLock<Validator> = LazyLock::new(|| schema("utee-options"));

/// A form's reader: whether it takes a text.
type Reader = fn(&str) -> bool;

const READ_CALL: Reader = |text| ToolCallEnvelope::read(text).is_ok();
const READ_RESULT: Reader = |text| ToolResultEnvelope::read(text).is_ok();
const READ_REQUEST: Reader = |text| ToolRequest::read(text).is_ok();
const READ_RESPONSE: Reader = |text| ToolResponse::read(text).is_ok();

#[track_caller]
fn agree(schema: &Validator, reader: Reader, value: &Value) -> bool {
    let text = value.to_string();
    let (by_schema, by_reader) = (schema.is_valid(value), reader(&text));
    assert_eq!(by_schema, by_reader, "schema and reader differ on {text}");
    by_reader
}

#[test]
fn examples_are_taken_by_both() {
    let parse = |text: &str| serde_json::from_str(text).unwrap();
    assert!(agree(&CALLS, READ_CALL, &parse(CALL)));
    assert!(agree(&CALLS, READ_CALL, &parse(BARE_CALL)));
    assert!(agree(&RESULTS, READ_RESULT, &parse(RESULT)));
    assert!(agree(&REQUESTS, READ_REQUEST, &parse(REQUEST)));
    assert!(agree(&RESPONSES, READ_RESPONSE, &parse(RESPONSE)));
    assert!(agree(&RESPONSES, READ_RESPONSE, &parse(FAILED_RESPONSE)));
}

/// What takes the place of a value: most of it is wrong nearly everywhere.
fn strangers() -> Vec<Value> {
    let numbers = [json!(-1), json!(0), json!(0.5), json!(5e3), json!(1001), json!(1u64 << 53)];
    let others = [
        json!(null),
        json!(true),
        json!(""),
        json!("enabled"),
        json!("1.0"),
        json!("OPEN"),
        json!([]),
        json!(["a", 1]),
        json!({}),
        json!({"a": "b"}),
        json!({"a": 1}),
    ];
    numbers.into_iter().chain(others).collect()
}

/// Every place of a value, as pointers, the members of objects before the objects themselves.
fn places(value: &Value, at: &str, all: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                places(
                    member,
                    &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")),
                    all,
                );
            }
        }
        Value::Array(elements) => {
            for (i, element) in elements.iter().enumerate() {
                places(element, &format!("{at}/{i}"), all);
            }
        }
        _ => {}
    }
    all.push(at.to_owned());
}

#[test]
fn each_value_replaced_and_each_member_removed_is_judged_alike() {
    let mut refused = 0;
    for (schema, reader, texts) in [
        (&*CALLS, READ_CALL, vec![CALL, BARE_CALL]),
        (&*RESULTS, READ_RESULT, vec![RESULT]),
        (&*REQUESTS, READ_REQUEST, vec![REQUEST]),
        (&*RESPONSES, READ_RESPONSE, vec![RESPONSE, FAILED_RESPONSE]),
    ] {
        for text in texts {
            let whole: Value = serde_json::from_str(text).unwrap();
            let mut all = Vec::new();
            places(&whole, "", &mut all);
            for place in all {
                for stranger in strangers() {
                    let mut value = whole.clone();
                    *value.pointer_mut(&place).unwrap() = stranger;
                    refused += usize::from(!agree(schema, reader, &value));
                }
                let mut value = whole.clone();
                if let Some((parent, name)) = place.rsplit_once('/')
                    && let Some(Value::Object(members)) = value.pointer_mut(parent)
                {
                    members.remove(name);
                    refused += usize::from(!agree(schema, reader, &value));
                }
            }
        }
    }
    assert!(refused > 1000, "only {refused} were wrong");
}

#[test]
fn options_beside_params_are_judged_alike() {
    for (options, good) in [
        (json!({}), true),
        (json!({"idempotencyKey": "k", "timeout": 5000, "retryPolicy": {"maxAttempts": 2}}), true),
        (json!({"timeout": 0}), false),
        (json!({"retryPolicy": {"maxAttempts": 0}}), false),
        (json!(null), false),
    ] {
        assert_eq!(OPTIONS.is_valid(&options), good, "{options}");
        let params = Params::from_value(&json!({"_utee": options})).unwrap();
        assert_eq!(Options::take(&params).is_ok(), good, "{options}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_is_generated_is_taken_by_both(
        call in calls(), result in results(), request in requests(), response in responses(),
    ) {
        prop_assert!(agree(&CALLS, READ_CALL, &call));
        prop_assert!(agree(&RESULTS, READ_RESULT, &result));
        prop_assert!(agree(&REQUESTS, READ_REQUEST, &request));
        prop_assert!(agree(&RESPONSES, READ_RESPONSE, &response));
    }

    #[test]
    fn whatever_is_spoilt_is_judged_alike(
        call in calls(), result in results(), request in requests(), response in responses(),
        place in any::<Index>(), stranger in any::<Index>(),
    ) {
        for (schema, reader, mut value) in [
            (&*CALLS, READ_CALL, call),
            (&*RESULTS, READ_RESULT, result),
            (&*REQUESTS, READ_REQUEST, request),
            (&*RESPONSES, READ_RESPONSE, response),
        ] {
            let mut all = Vec::new();
            places(&value, "", &mut all);
            *value.pointer_mut(&all[place.index(all.len())]).unwrap() =
                strangers()[stranger.index(strangers().len())].clone();
            agree(schema, reader, &value);
        }
    }
}
