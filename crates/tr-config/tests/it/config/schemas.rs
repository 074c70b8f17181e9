//! The schema of configurations and their reader take the same, and the schema helps a form.
use serde_json::{Value, json};
use tr_config::{Config, Preset, schemas};

fn schema() -> Value {
    let all = schemas::all();
    let found = all.into_iter().find(|(name, _)| *name == "stack-config");
    found.unwrap().1
}

#[test]
fn each_section_with_each_value_is_judged_alike() {
    let schema = schema();
    jsonschema::meta::validate(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let keys = schema["properties"].as_object().unwrap().keys().map(String::as_str);
    let keys: Vec<&str> = keys.chain(["stranger"]).collect();
    let whole: Value = serde_json::from_str(schemas::CONFIG).unwrap();
    let values = [
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!("shadow"),
        json!("read_only"),
        json!([]),
        json!({}),
        json!({"mode": "shadow"}),
        json!({"mode": "on"}),
        json!({"percent": 100, "others": "off"}),
        json!({"percent": 100.1}),
        json!({"mutating": "off", "tools": {"a": {"percent": 0}}}),
        json!({"mutating": {"percent": "0"}}),
        json!({"capacity": 1}),
        json!({"attempts": 3}),
        json!({"stranger": 1}),
    ];
    let (mut taken, mut refused) = (0, 0);
    for key in &keys {
        for value in values.iter().chain(whole.get(*key)) {
            let config = json!({ *key: value });
            let by_reader = Config::from_json(&config.to_string()).is_ok();
            assert_eq!(validator.is_valid(&config), by_reader, "{config}");
            *if by_reader { &mut taken } else { &mut refused } += 1;
        }
    }
    assert!(taken > 30 && refused > 100, "{taken} {refused}");
    assert!(validator.is_valid(&whole));
}

#[test]
fn every_member_has_a_title_and_what_the_example_says_as_its_example() {
    let schema = schema();
    assert_eq!(schema["examples"][0], serde_json::from_str::<Value>(schemas::CONFIG).unwrap());
    let of = |value: &Value| (value["title"].clone(), value["examples"].clone());
    let cooldown = &schema["$defs"]["BreakerConfig"]["properties"]["cooldown_ms"];
    assert_eq!(of(cooldown), (json!("Cooldown (ms)"), json!([30_000])));
    let percent = &schema["$defs"]["StageForm"]["properties"]["percent"];
    assert_eq!(of(percent), (json!("Percent"), json!([20])));
    let effect = &schema["$defs"]["Tool"]["properties"]["effect"];
    assert_eq!(of(effect), (json!("Effect"), json!(["read_only"])));
    let defs = schema["$defs"].as_object().unwrap();
    for form in [
        "RolloutForm",
        "StageForm",
        "RetrySettings",
        "BudgetConfig",
        "RetryOptIn",
        "BreakerConfig",
        "SlowCalls",
        "IdempotencyConfig",
        "StoreFailures",
        "LoopConfig",
        "LoopSignals",
        "RecordsConfig",
        "SessionsConfig",
        "IdentityConfig",
    ] {
        for (name, member) in defs[form]["properties"].as_object().unwrap() {
            // Another unit.
            let about = member["description"].as_str().unwrap();
            if about.starts_with("The same") {
                continue;
            }
            assert!(member["title"].is_string() && member["examples"].is_array(), "{form} {name}");
        }
    }
}

#[test]
fn every_default_is_in_the_schema_and_is_a_configuration_itself() {
    let schema = schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for preset in Preset::ALL {
        let defaults = schemas::defaults(preset);
        assert!(validator.is_valid(&defaults), "{preset:?}");
        Config::from_json(&defaults.to_string()).unwrap();
    }
    let default = |form: &str, name: &str| &schema["$defs"][form]["properties"][name]["default"];
    assert_eq!(schema["properties"]["attempt_timeout_ms"]["default"], 10_000);
    assert_eq!(*default("BreakerConfig", "cooldown_ms"), 30_000);
    assert_eq!(*default("StoreFailures", "mutating"), "refuse");
    assert_eq!(*default("LoopSignals", "rounds"), 3);
    assert_eq!(
        *default("BreakerConfig", "read_only"),
        json!({"consecutive": 8, "cooldown_ms": 20_000})
    );
    assert_eq!(*default("BreakerRules", "consecutive"), Value::Null, "effects differ");
}

#[test]
fn the_keys_are_those_that_the_reader_takes() {
    let keys = schemas::keys(&schema());
    let names: Vec<_> = keys.iter().map(schemas::Key::name).collect();
    for name in [
        "preset",
        "retry.budget.per_success",
        "breaker.read_only.cooldown_ms",
        "loops.signals",
        "loops.signals.rounds",
        "rollout.mutating",
        "rollout.mutating.percent",
        "rollout.tools.*.percent",
        "identity.*.call",
        "tools.*.classification",
        "defaults.retry.attempts",
    ] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
    let of = |name: &str| keys.iter().find(|key| key.name() == name).unwrap();
    let kind = |name: &str| (of(name).is_table, of(name).is_value);
    assert_eq!(kind("retry"), (true, false));
    assert_eq!(kind("retry.attempts"), (false, true));
    assert_eq!(kind("rollout.mutating"), (true, true));
    assert_eq!(kind("tools"), (true, false));
    assert_eq!(kind("tools.*.classification"), (true, true));
}
