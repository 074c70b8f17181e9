//! The catalog's schema and its reader take the same, and refuse the same.
use super::json;
use jsonschema::Validator;
use serde_json::{Value, json as value};
use tr_config::schemas;

fn schema(name: &str) -> Validator {
    let all = schemas::all();
    let (_, schema) = all.iter().find(|(own, _)| *own == name).unwrap();
    jsonschema::meta::validate(schema).unwrap();
    jsonschema::validator_for(schema).unwrap()
}

#[test]
fn each_key_with_each_value_is_judged_alike() {
    let (catalogs, tools) = (schema("tool-catalog"), schema("tool-manifest"));
    let all = schemas::all();
    let (_, tool) = all.iter().find(|(name, _)| *name == "tool-manifest").unwrap();
    let mut keys: Vec<String> = tool["properties"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys.len(), 34);
    keys.push("stranger".into());
    let values = [
        value!(null),
        value!(true),
        value!(0),
        value!(1),
        value!(1.5),
        value!(-1),
        value!(""),
        value!("x"),
        value!("low"),
        value!("read_only"),
        value!("https://a.example/pay"),
        value!("http:///pay"),
        value!([]),
        value!(["caching"]),
        value!([1]),
        value!({}),
        value!({"attempts": 3, "base_ms": 0, "multiplier": 1, "jitter": [0, 1]}),
        value!({"attempts": 1001}),
        value!({"jitter_percent": 20, "only_codes": ["a"]}),
        value!({"jitter": [0, 3]}),
        value!({"consecutive": 1, "failure_rate": 1, "cooldown_ms": 1}),
        value!({"failure_rate": 0}),
        value!({"max_identical": 2, "poll": true, "loop_key": ["a"]}),
        value!({"max_failures_per_turn": 2, "repeats": 100_000}),
        value!({"max_failures_per_turn": 0}),
        value!({"done_ms": 1, "failed_ms": 1, "inflight_ms": 1}),
        value!({"volatile": ["/a~1b"], "any_whitespace": [], "keep_volatile": false}),
        value!({"volatile": ["a"]}),
        value!({"show": ["/order_id"]}),
        value!({"show": ["order_id"]}),
        value!({"tool": "l", "found": "", "match": {"a": "/b"}, "not_before": "/at"}),
        value!({"tool": "l", "found": "/l", "match": {"a": "b"}, "not_before": "/at"}),
        value!({"503": "permanent"}),
        value!({"503": "fatal"}),
    ];
    let (mut taken, mut refused) = (0, 0);
    for key in &keys {
        for content in &values {
            let tool = Value::Object([(key.clone(), content.clone())].into_iter().collect());
            let catalog = value!({"tools": {"t": tool.clone(), "caching": {}}});
            let by_reader = json(&catalog.to_string()).is_ok();
            assert_eq!(tools.is_valid(&tool), by_reader, "{tool}");
            assert_eq!(catalogs.is_valid(&catalog), by_reader, "{catalog}");
            *if by_reader { &mut taken } else { &mut refused } += 1;
        }
    }
    assert!(taken > 60 && refused > 400, "{taken} taken, {refused} refused");
}

#[test]
fn where_calls_go_is_judged_alike() {
    let tools = schema("tool-manifest");
    let url = value!("http://127.0.0.1/pay");
    for (tool, good) in [
        (value!({"url": url, "method": "PUT", "headers": {"a": "b"}}), true),
        (value!({"url": url, "method": "GET"}), false),
        (value!({"method": "PUT"}), false),
        (value!({"headers": {}}), false),
        (value!({"command": ["cat"], "method": "PUT"}), false),
        (value!({"command": ["cat"], "url": url}), false),
        (value!({"url": "ftp://a.example"}), false),
    ] {
        assert_eq!(tools.is_valid(&tool), good, "{tool}");
        let catalog = value!({"tools": {"t": tool}});
        assert_eq!(json(&catalog.to_string()).is_ok(), good, "{catalog}");
    }
}

#[test]
fn the_top_is_judged_alike() {
    let catalogs = schema("tool-catalog");
    for (catalog, good) in [
        (value!({}), true),
        (
            value!({"$schema": "x", "undeclared_effect": "mutating", "defaults": {}, "tools": {}}),
            true,
        ),
        (value!({"undeclared_effect": "none"}), false),
        (value!({"tools": []}), false),
        (value!({"stranger": 1}), false),
        (value!([]), false),
    ] {
        assert_eq!(catalogs.is_valid(&catalog), good, "{catalog}");
        assert_eq!(json(&catalog.to_string()).is_ok(), good, "{catalog}");
    }
}
