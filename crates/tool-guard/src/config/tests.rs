//! What `show` prints has the same effect as what it was made of.
use super::{
    effective::{Door, Effective},
    toml_text,
};
use serde_json::Value;
use tool_reliability::{Environment, ToolStack, config::Config};
use tr_config::{Language, schemas, settings::settings};

const NOTHING: [(&str, &str); 0] = [];

fn shown(json: &str, vars: &[(&str, &str)], door: Door) -> String {
    let settings = settings(json, Language::Json, vars.iter().copied()).unwrap();
    let effective = Effective::new(settings, Vec::new(), door);
    toml_text::write(&effective, "stack.json", door, Environment::default())
}

/// The settings of each layer. If a mode is for all sessions, there are no others.
fn stack(config: &Config) -> String {
    let stack = format!("{:?}", ToolStack::builder().config(config).build().unwrap());
    stack.replace("share: Share(1.0), others: Off", "share: Share(1.0), others: Enforce")
}

/// Lines without their comments.
fn values(toml: &str) -> Vec<&str> {
    let lines = toml.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split(" # ").next().unwrap_or(line)).collect()
}

#[test]
fn a_stack_of_what_is_shown_is_the_same_and_shows_the_same() {
    for preset in ["tool_reliability", "error_handling", "utee"] {
        for more in [
            "",
            r#", "breaker": {"cooldown_ms": 7000, "mutating": {"consecutive": 2}}"#,
            r#", "breaker": {"consecutive": "none", "slow_calls": {"longer_than_ms": 5, "rate": 0.5}}"#,
            r#", "retry": {"attempts": 9, "jitter_percent": 5, "mutating": {"attempts": 1}}"#,
            r#", "retry": {"budget": {"capacity": 3}}, "loops": {"signals": true, "log_path": "/tmp/x y"}"#,
            r#", "loops": {"signals": {"rounds": 4}}, "attempt_timeout_ms": "none", "deadline_ms": 90000"#,
            r#", "sessions": {"mode": "rollback"}, "rollout": {"mutating": "shadow", "tools": {"a b": "off"}}"#,
            r#", "tools": {"a.b": {"effect": "read_only", "classification": {"503": "permanent"},
                "input_schema": {"required":["p"]}, "default_value": [1,{"x":"y"}]}},
                "defaults": {"timeout_ms": 9}, "undeclared_effect": "idempotent""#,
        ] {
            let json = format!(r#"{{"preset": "{preset}"{more}}}"#);
            let text = shown(&json, &[], Door::Program);
            let config = Config::from_json(&json).unwrap();
            let again = Config::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(stack(&again), stack(&config), "{json}\n{text}");
            let tools = |config: &tr_config::ToolCatalog| {
                format!("{:?} {:?}", config.iter().collect::<Vec<_>>(), config.undeclared_effect())
            };
            assert_eq!(tools(&again.catalog), tools(&config.catalog), "{text}");
            for door in [Door::Program, Door::Mcp, Door::Turn] {
                let text = shown(&json, &[], door);
                let said = settings(&text, Language::Toml, NOTHING).unwrap();
                let again = Effective::new(said, Vec::new(), door);
                let again = toml_text::write(&again, "again", door, Environment::default());
                assert_eq!(values(&again), values(&text), "{door:?}");
            }
        }
    }
}

#[test]
fn the_example_s_keys_are_all_shown_with_their_lines() {
    let text = shown(schemas::CONFIG, &[], Door::Mcp);
    for (place, value) in [
        ("[retry.budget]", "per_success = 0.1 # stack.json:"),
        ("[identity.acme]", "strong = true # stack.json:"),
    ] {
        let section = text.split(place).nth(1).unwrap_or_else(|| panic!("{place}: {text}"));
        assert!(section.split("\n[").next().unwrap().contains(value), "{place}");
    }
    assert!(text.contains("deadline_ms = 60000 # stack.json:16"), "{text}");
    Config::from_toml(&text).unwrap();
}

#[test]
fn no_secret_is_shown() {
    let json = r#"{"records": {"where": "redis://:hunter2@h:1"}, "tools": {"t": {"default_value":
        {"auth": "Bearer sk-ant-REDACTED"},
        "dependency": "https://h/x?token=hunter2"}}}"#;
    let text = shown(json, &[], Door::Mcp);
    assert!(!text.contains("hunter2") && !text.contains("sk-ant"), "{text}");
    assert!(text.contains("# where = \"redis://<hidden>@h:1\" # stack.json:1; hidden: set it as TOOL_RELIABILITY__RECORDS__WHERE"), "{text}");
    let vars = [("TOOL_RELIABILITY__RECORDS__WHERE", "rediss://u:hunter2@b/w@h:1/2?x=hunter2")];
    let text = shown("{}", &vars, Door::Mcp);
    assert!(!text.contains("hunter2"), "{text}");
    assert!(
        text.contains(
            "# where = \"rediss://<hidden>@h:1/2\" # variable TOOL_RELIABILITY__RECORDS__WHERE"
        ),
        "{text}"
    );
}

#[test]
fn the_schema_that_is_printed_is_the_published_one() {
    let published = include_str!("../../../../schemas/stack-config.schema.json");
    let published: Value = serde_json::from_str(published).unwrap();
    assert!(schemas::config() == published, "run cargo xtask schemas");
}
