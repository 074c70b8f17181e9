//! Schemas that a few bytes of params could make any amount of work with.
use fastrand::Rng;
use serde_json::{Map, Value, json};
use std::fs;
use tr_core::{Json, Params, manifest::InputSchema};
use tr_testkit::alloc;

/// The time on a processor, in ms, that one schema, or its params, may take.
const MOST_MS: u64 = 50;
const MOST_BYTES: u64 = 64 * 1024 * 1024;

fn compile(schema: &Value) -> InputSchema {
    InputSchema::compile(&Json::from_text(schema.to_string()).unwrap()).unwrap()
}

/// What is wrong with the params, in no more time and memory than they may take.
fn faults(schema: &InputSchema, params: &Value) -> Vec<String> {
    let params = Params::from_text(params.to_string()).unwrap();
    let found = bounded(|| schema.check(&params));
    found.err().map_or_else(Vec::new, |error| error.faults().map(str::to_owned).collect())
}

/// The result of `work`. The time is that on a processor: another program may take the rest.
fn bounded<T>(work: impl FnOnce() -> T) -> T {
    let on_processor = || {
        let all = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        all.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or_default() / 1_000_000
    };
    let before = on_processor();
    let (result, bytes) = alloc::peak(work);
    let took = on_processor() - before;
    assert!(took <= MOST_MS && bytes <= MOST_BYTES, "{took} ms, {bytes} bytes");
    result
}

/// A definition for each of `0..n`, and the params' own schema is the first.
fn defined(n: usize, part: impl Fn(usize) -> Value) -> Value {
    let all: Map<String, Value> = (0..n).map(|at| (format!("D{at}"), part(at))).collect();
    json!({"$ref": "#/$defs/D0", "$defs": all})
}

fn to(at: usize) -> Value {
    json!({"$ref": format!("#/$defs/D{at}")})
}

fn nested(levels: usize, leaf: Value) -> Value {
    (0..levels).fold(leaf, |inner, _| json!({"a": inner}))
}

/// An expression or filter as generators of schemas write it: a union that is its own part.
#[test]
fn a_union_that_is_its_own_part_is_told_once_whatever_the_depth() {
    for more in
        [json!({}), json!({"additionalProperties": false}), json!({"unevaluatedProperties": false})]
    {
        let form = |op: &str| {
            let mut form = json!({"type": "object", "required": ["op", "arg"], "properties": {
                "op": {"const": op}, "arg": {"$ref": "#/$defs/E"}}});
            form.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            form
        };
        let leaf = json!({"type": "object", "required": ["op", "value"], "properties": {
            "op": {"const": "lit"}, "value": {"type": "number"}}});
        let schema = compile(&json!({
            "type": "object", "properties": {"filter": {"$ref": "#/$defs/E"}},
            "$defs": {"E": {"anyOf": [form("not"), form("neg"), leaf]}}
        }));
        for (leaf, wanted) in
            [(json!("x"), &["Matches none of the 3 forms at /filter"][..]), (json!(1), &[])]
        {
            let leaf = json!({"op": "lit", "value": leaf});
            let filter = (0..100).fold(leaf, |arg, _| json!({"op": "not", "arg": arg}));
            assert_eq!(faults(&schema, &json!({"filter": filter})), wanted);
        }
    }
}

#[test]
fn faults_beside_and_below_what_is_not_looked_into_are_told() {
    let schema = compile(&json!({
        "properties": {
            "kind": {"oneOf": [{"const": "a"}, {"enum": ["a", "b"]}]},
            "rows": {"items": {"allOf": [{"$ref": "#/$defs/row"}]}, "maxItems": 2},
            "pair": {"prefixItems": [{"type": "string"}], "items": {"type": "integer"}},
            "more": {"additionalProperties": {"not": {"type": "null"}}},
            "none": false,
        },
        "$defs": {"row": {"required": ["id"], "properties": {"id": {"minimum": 1}}}}
    }));
    let params = json!({
        "kind": "a", "rows": [{}, {"id": 0}, {"id": 1}], "pair": [1, "x", 2],
        "more": {"x/y": null, "z": 1}, "none": 0,
    });
    let mut found = faults(&schema, &params);
    assert_eq!(found[0], "Missing required parameter: id in /rows/0");
    found.sort();
    assert_eq!(
        found,
        [
            "Expected integer but received string at /pair/1",
            "Expected string but received number at /pair/0",
            "Matches not exactly one of the 2 forms at /kind",
            "Missing required parameter: id in /rows/0",
            "No value is allowed at /none",
            "The value does not match what `not` asks at /more/x~1y",
            "the value has more than 2 items at /rows",
            "the value is less than the minimum of 1 at /rows/1/id",
        ]
    );
    // What is beside a reference does not count in older drafts.
    let old = compile(&json!({"$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"$ref": "#/definitions/n", "type": "string"}},
        "definitions": {"n": {"type": "number"}}}));
    assert_eq!(faults(&old, &json!({"a": true})), ["Expected number but received boolean at /a"]);
    assert_eq!(faults(&old, &json!({"a": 1})), [""; 0]);
    // A document with a name, and another in it: where pointers begin is left to the validator.
    let named = compile(&json!({"$id": "https://example.com/s", "properties": {
        "a": {"$ref": "#/$defs/u"},
        "b": {"$id": "other", "type": "null"},
    }, "$defs": {"u": {"anyOf": [{"type": "number"}, {"type": "null"}]}}}));
    let mut found = faults(&named, &json!({"a": "x", "b": "x"}));
    found.sort();
    let wanted = [
        "Expected null but received string at /b",
        "The value does not match what `$ref` asks at /a",
    ];
    assert_eq!(found, wanted);
    // References that are no pointers into the same document.
    let named = compile(&json!({"properties": {"a": {"$ref": "#num"}},
        "$defs": {"n": {"$anchor": "num", "type": "number"}}}));
    assert_eq!(
        faults(&named, &json!({"a": "x"})),
        ["The value does not match what `$ref` asks at /a"]
    );
}

#[test]
fn a_million_faults_are_twenty() {
    let schema = compile(&json!({"properties": {"a": {"items": {"type": "number"}}}}));
    let params = Params::from_text(json!({"a": vec!["x"; 1_000_000]}).to_string()).unwrap();
    assert_eq!(schema.check(&params).unwrap_err().faults().len(), 20);
    for known in [json!({}), json!({"a": {}})] {
        let closed = compile(&json!({"properties": known, "additionalProperties": false}));
        let found = faults(&closed, &json!({"é".repeat(100_000): 1}));
        assert!(
            found[0].starts_with("Unknown parameter: éé") && found[0].len() < 1_100,
            "{found:?}"
        );
    }
    let closed = compile(&json!({"additionalProperties": false}));
    assert_eq!(faults(&closed, &json!({"a": 1, "b": 2})), ["Unknown parameter: a, b"]);
}

#[test]
fn a_schema_whose_work_has_no_bound_is_known_before_it_is_compiled_and_not_applied() {
    let pair = |at: usize| json!([to(at), to(at)]);
    let below = |at: usize| {
        let one = json!({"properties": {"a": to(at)}, "required": ["a"]});
        json!({"anyOf": [one, one]})
    };
    let nested_marks = |n| {
        (0..n).fold(json!({}), |inner, _| json!({"allOf": [inner], "unevaluatedProperties": false}))
    };
    for schema in [
        // 2²⁰ visits of one value, of values below one another, and of both in turn.
        defined(
            21,
            |at| if at < 20 { json!({"anyOf": pair(at + 1)}) } else { json!({"type": "null"}) },
        ),
        defined(21, |at| if at < 20 { below(at + 1) } else { json!({"type": "null"}) }),
        defined(20, |at| below((at + 1) % 20)),
        defined(21, |at| if at < 20 { json!({"allOf": pair(at + 1)}) } else { below(0) }),
        // Each refers to all others for the same value.
        defined(
            9,
            |at| json!({"anyOf": (0..9).filter(|to| *to != at).map(to).collect::<Vec<_>>()}),
        ),
        // Each level is compiled, and looked through, three times.
        nested_marks(20),
        // What was evaluated is asked again at each level of the value.
        defined(1, |_| {
            json!({"allOf": [{"properties": {"a":
            {"$ref": "#/$defs/D0", "unevaluatedProperties": false}}}]})
        }),
        // One after another, each on the stack.
        defined(1_000, |at| if at < 999 { to(at + 1) } else { json!({"type": "null"}) }),
    ] {
        let schema = bounded(|| compile(&schema));
        assert!(schema.unapplied().is_some(), "{schema:?}");
        assert_eq!(faults(&schema, &nested(50, json!("x"))), [""; 0]);
    }
    // A stack has room for what is applied.
    let chain = defined(20, |at| {
        if at < 19 { to(at + 1) } else { json!({"properties": {"a": to(0)}, "type": "object"}) }
    });
    let deep = faults(&compile(&chain), &nested(120, json!("x")));
    assert!(deep[0].starts_with("Expected object but received string at /a/a/"), "{deep:?}");
    // What is no more than large is applied.
    let forms: Vec<Value> =
        (0..50).map(|at| json!({"properties": {"k": {"const": at}, "a": to(0)}})).collect();
    for schema in [
        defined(1, |_| json!({"anyOf": forms})),
        nested_marks(4),
        defined(30, |at| json!({"properties": {"a": to((at + 1) % 30), "b": to((at + 7) % 30)}})),
    ] {
        assert_eq!(compile(&schema).unapplied(), None, "{schema}");
    }
}

/// A part of a schema with `n` definitions.
fn part(rng: &mut Rng, n: usize, deep: u32) -> Value {
    if deep == 0 || rng.u8(..5) == 0 {
        return match rng.u8(..6) {
            0 => json!({"type": ["number", "object"]}),
            1 => json!({"type": "string"}),
            2 => json!({"$dynamicRef": "#node"}),
            _ => to(rng.usize(..n)),
        };
    }
    let mut all = Map::new();
    for _ in 0..rng.u8(1..3) {
        let next = |rng: &mut Rng| part(rng, n, deep - 1);
        let some = |rng: &mut Rng| (0..rng.u8(1..4)).map(|_| next(rng)).collect::<Vec<_>>();
        let (key, value) = match rng.u8(..14) {
            0 => ("anyOf", json!(some(rng))),
            1 => ("oneOf", json!(some(rng))),
            2 => ("allOf", json!(some(rng))),
            3 => ("not", next(rng)),
            4 => {
                all.insert("then".into(), next(rng));
                all.insert("else".into(), next(rng));
                ("if", next(rng))
            }
            5..=7 => ("properties", json!({"a": next(rng), "b": next(rng)})),
            8 => ("additionalProperties", next(rng)),
            9 => ("items", next(rng)),
            10 => ("unevaluatedProperties", if rng.bool() { json!(false) } else { next(rng) }),
            11 => ("unevaluatedItems", next(rng)),
            12 => ("patternProperties", json!({"^a": next(rng), "a$": next(rng)})),
            _ => ("dependentSchemas", json!({"a": next(rng)})),
        };
        all.insert(key.into(), value);
    }
    Value::Object(all)
}

#[test]
fn schemas_of_all_shapes_take_bounded_time_and_memory() {
    let (mut applied, mut refused) = (0, 0);
    for seed in 0..600 {
        let mut rng = Rng::with_seed(seed);
        let n = rng.usize(1..7);
        let mut parts: Vec<Value> = (0..n).map(|_| part(&mut rng, n, 3)).collect();
        if let Some(node) = parts[0].as_object_mut() {
            node.insert("$dynamicAnchor".into(), json!("node"));
        }
        let schema = defined(n, |at| parts[at].clone());
        let text = Json::from_text(schema.to_string()).unwrap();
        let Ok(compiled) = bounded(|| InputSchema::compile(&text)) else { continue };
        applied += u32::from(compiled.unapplied().is_none());
        refused += u32::from(compiled.unapplied().is_some());
        for levels in [1, 10, 100] {
            let mut value = if rng.bool() { json!("x") } else { json!(1) };
            for _ in 0..levels {
                value = match rng.u8(..6) {
                    0 => json!([value, 1]),
                    1 => json!({"a": value, "b": "x"}),
                    2 => json!({"b": value, "a": {"a": 1}}),
                    _ => json!({"a": value}),
                };
            }
            eprintln!("seed {seed}, {levels} levels: {schema}");
            faults(&compiled, &value);
        }
    }
    assert!(applied >= 100 && refused >= 100, "{applied} applied, {refused} refused");
}
