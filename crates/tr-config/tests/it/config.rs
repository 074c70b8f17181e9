//! Configurations: what they say, and what is said of their mistakes.
#[cfg(feature = "schema")]
mod guide;
#[cfg(feature = "schema")]
mod schemas;

use std::time::Duration;
use tr_config::{Config, Language, Mode, Rollout, Share, Stage};
use tr_core::{Effect, Params, ToolCall};

/// Every key there is, but for those of tools.
const WHOLE: &str = include_str!("../../src/schemas/stack-config.example.json");

fn part(mode: Mode, percent: f64, others: Mode) -> Stage {
    Stage::part(mode, Share::percent(percent).unwrap(), others)
}

#[test]
fn every_key_is_read() {
    let config = Config::from_json(WHOLE).unwrap();
    let rollout = Rollout::new(part(Mode::Enforce, 10.0, Mode::Shadow))
        .effect(Effect::ReadOnly, Mode::Enforce)
        .effect(Effect::Idempotent, Mode::Enforce)
        .effect(Effect::Mutating, part(Mode::Enforce, 20.0, Mode::Shadow))
        .tool("legacy_search", Mode::Off);
    assert_eq!(config.rollout, Some(rollout));
    assert_eq!(config.normalise, Some(true));
    assert_eq!(config.attempt_timeout, Some(Some(Duration::from_secs(10))));
    let retry = config.retry;
    assert_eq!((retry.attempts, retry.cap), (Some(4), Some(Some(Duration::from_secs(4)))));
    let opt_in = &config.retry_opt_in;
    assert_eq!(
        (opt_in.agents.as_deref(), opt_in.calls),
        (Some(&["planner".into()][..]), Some(true))
    );
    let breaker = &config.breaker;
    assert_eq!((breaker.mode, breaker.forced_open), (Some(tr_breaker::Mode::Enforce), Some(false)));
    let limits = (Some(Some(5)), Some(Some(0.5)));
    assert_eq!((breaker.consecutive_failures, breaker.failure_rate), limits);
    let reading = breaker.read_only.as_ref().unwrap();
    assert_eq!((reading.consecutive, reading.cooldown), (Some(8), Some(Duration::from_secs(20))));
    let mutating = breaker.mutating.as_ref().unwrap();
    assert_eq!((mutating.consecutive, mutating.failure_rate), (None, Some(0.3)));
    let keys = &config.idempotency;
    assert_eq!(keys.derived_keys, Some(tr_idempotency::DerivedKeys::Step));
    assert_eq!(
        (keys.conflicts, keys.capacity),
        (Some(tr_idempotency::ConflictPolicy::Reject), Some(25_000))
    );
    assert_eq!(
        (config.loops.enabled, config.loops.memory),
        (Some(true), Some(Duration::from_secs(60)))
    );
    assert_eq!(config.loops.log_path.as_deref(), Some("~/.openclaw/tool-guard.log"));
    let call = ToolCall::new("flight_search", Params::empty_object());
    let call = config.catalog.manifested(call);
    assert_eq!(call.manifest().unwrap().timeout, Some(Duration::from_secs(3)));
}

#[test]
fn nothing_said_is_nothing_changed() {
    let config = Config::from_json("{}").unwrap();
    assert!(config.rollout.is_none() && config.catalog.is_empty());
    assert_eq!((config.breaker, config.loops, config.retry), Default::default());
}

#[test]
fn a_stage_is_a_word_or_a_table() {
    let rollout = |text: &str| {
        let text = format!(r#"{{"rollout": {{"mode": "off", "mutating": {text}}}}}"#);
        Config::from_json(&text).unwrap().rollout.unwrap()
    };
    let with = |stage: Stage| Rollout::new(Mode::Off).effect(Effect::Mutating, stage);
    assert_eq!(rollout(r#""shadow""#), with(Mode::Shadow.into()));
    assert_eq!(rollout("{}"), with(Mode::Enforce.into()));
    assert_eq!(rollout(r#"{"percent": 10}"#), with(part(Mode::Enforce, 10.0, Mode::Off)));
}

#[test]
fn every_mistake_is_named_with_its_line() {
    let error = Config::from_json(
        r#"{
    "rolout": {},
    "rollout": {"mode": "on", "percent": 101, "mutating": 5, "tools": {"a": {"mod": "off"}}},
    "breaker": {"window": 0, "mode": "open", "mutating": {"cooldown": 5, "consecutive": 10001}},
    "retry": {"jitter": 1, "jitter_percent": 20},
    "idempotency": {"derived_keys": "always", "capacity": 0},
    "tools": {"a": {"depends_on": ["b"]}}
}"#,
    )
    .unwrap_err();
    let lines: Vec<_> = error.to_string().lines().map(str::to_owned).collect();
    assert_eq!(
        lines,
        [
            "the configuration has 13 mistakes",
            r#"line 2, column 15: /rolout: expected a known key, found the unknown key "rolout" (did you mean "rollout"?)"#,
            r#"line 3, column 25: /rollout/mode: expected "off", "observe", "shadow" or "enforce", found "on""#,
            "line 3, column 42: /rollout/percent: expected a number from 0 to 100, found 101",
            r#"line 3, column 59: /rollout/mutating: expected "off", "observe", "shadow" or "enforce", or an object with `mode`, `percent` and `others`, found 5"#,
            r#"line 3, column 85: /rollout/tools/a/mod: expected a known key, found the unknown key "mod" (did you mean "mode"?)"#,
            "line 4, column 27: /breaker/window: expected a whole number from 1 to 10000, found 0",
            r#"line 4, column 38: /breaker/mode: expected "enforce", "shadow" or "disabled", found "open""#,
            r#"line 4, column 71: /breaker/mutating/cooldown: expected a known key, found the unknown key "cooldown" (did you mean "cooldown_ms"?)"#,
            "line 4, column 89: /breaker/mutating/consecutive: expected a whole number from 1 to 10000, found 10001",
            "line 5, column 25: /retry/jitter: expected two numbers from 0 to 2, the lower first, found 1",
            r#"line 6, column 37: /idempotency/derived_keys: expected "off", "cut_off", "step" or "session", found "always""#,
            "line 6, column 59: /idempotency/capacity: expected a whole number from 1 to 16777216, found 0",
            r#"line 7, column 36: /tools/a/depends_on/0: expected the name of a tool of this catalog, found "b" (did you mean "a"?)"#,
        ]
    );
}

#[test]
fn settings_that_contradict_each_other_are_named_with_the_others() {
    let error = Config::from_json(
        r#"{
    "retry": {"base_ms": 5000, "anchor": "start"},
    "retry_opt_in": {"agents": []},
    "breaker": {"min_calls": 21, "forced_open": true, "mode": "disabled", "consecutive": "none",
        "failure_rate": "none", "cooldown_ms": 31536000001},
    "loops": {"max_identical": 3, "signals": {"rounds": 1}},
    "sessions": {"where": "postgres://u:secret@h"},
    "tools": {"pay": {"effect": "mutating", "keys": {"scope": "global"},
        "breaker": {"hint": "global", "state": "forced_open"}},
    "send": {"effect": "mutating", "retry_safe": false, "keys": {"server_key": "/id"}},
    "ship": {"effect": "mutating", "keys": {"server_key_ttl": "2h"}},
    "list": {"effect": "idempotent", "check": {"tool": "ship", "found": "", "match": {}}}}
}"#,
    );
    let said = error.unwrap_err().to_string();
    assert!(!said.contains("secret"), "{said}");
    let lines: Vec<_> = said.lines().skip(1).collect();
    let wanted = [
        r#"line 2, column 26: /retry/base_ms: expected at most 4000 milliseconds, as `cap_ms` is, found 5000"#,
        r#"line 2, column 42: /retry/anchor: expected "attempt_start" or "attempt_end", found "start""#,
        r#"line 3, column 32: /retry_opt_in/agents: expected an array with one name or more, found none: to retry nothing, write `attempts = 1`"#,
        r#"line 4, column 30: /breaker/min_calls: expected at most 20, as `window` is, found 21"#,
        r#"line 4, column 49: /breaker/forced_open: expected false, where the mode is `disabled`, found true"#,
        r#"line 4, column 90: /breaker/consecutive: expected `consecutive`, `failure_rate` or `slow_calls`, by which breakers open, found none of them"#,
        r#"line 5, column 48: /breaker/cooldown_ms: expected a whole number of milliseconds from 1 to 31536000000, found 31536000001"#,
        r#"line 6, column 57: /loops/signals/rounds: expected a whole number from 2 to 100000, found 1"#,
        r#"line 7, column 27: /sessions/where: expected a file or memory, found an address postgres://…"#,
        r#"line 8, column 63: /tools/pay/keys/scope: expected `session`, or a tool with effect = "read_only", found "pay", which is not declared so"#,
        r#"line 9, column 48: /tools/pay/breaker/state: expected a state of the tool's own breaker, found a breaker that `hint` shares with other tools"#,
        r#"line 10, column 80: /tools/send/keys/server_key: expected a tool that may be repeated, found `retry_safe = false`"#,
        r#"line 11, column 63: /tools/ship/keys/server_key_ttl: expected a tool with a `server_key`, found none"#,
        r#"line 12, column 47: /tools/list/check: expected a tool with effect = "mutating": others are repeated without a check, found another effect"#,
        r#"line 12, column 47: /tools/list/check/not_before: expected the place of an element's time, or a `match` with the `server_key`, found neither"#,
        r#"line 12, column 56: /tools/list/check/tool: expected a tool with effect = "read_only", found another effect"#,
        r#"line 12, column 86: /tools/list/check/match: expected at least one member, found none"#,
    ];
    assert_eq!(lines, wanted);
}

#[test]
fn a_section_that_occurs_twice_is_one_mistake() {
    let error = Config::from_json(r#"{"retry": {}, "retry": {}}"#).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the configuration has a mistake\nline 1, column 24: /retry: expected each name once, found a duplicate name"
    );
}

#[test]
fn a_variable_beats_the_file_and_leaves_the_rest() {
    let file = r#"{"breaker": {"cooldown_ms": 5, "window": 17}, "retry": {"attempts": 3, "base_ms": 9},
        "rollout": {"mode": "off", "tools": {"Search": "enforce"}},
        "tools": {"Search": {"effect": "read_only"}, "pay": {}}}"#;
    let vars = [
        ("TOOL_RELIABILITY__BREAKER__COOLDOWN_MS", "9000"),
        ("TOOL_RELIABILITY__BREAKER__READ_ONLY__CONSECUTIVE", "3"),
        ("TOOL_RELIABILITY__RETRY__ATTEMPTS", "2"),
        ("TOOL_RELIABILITY__ROLLOUT__MODE", "shadow"),
        ("TOOL_RELIABILITY__TOOLS__SEARCH__TIMEOUT_MS", "7"),
        ("TOOL_RELIABILITY_ENABLED", "not looked at here"),
        ("PATH", "/bin"),
    ];
    let config = Config::from_text(file, Language::Json, vars).unwrap();
    assert_eq!(
        (config.breaker.cooldown, config.breaker.window),
        (Some(Duration::from_secs(9)), Some(17))
    );
    assert_eq!(config.breaker.read_only.unwrap().consecutive, Some(3));
    let retry = config.retry;
    assert_eq!((retry.attempts, retry.base), (Some(2), Some(Duration::from_millis(9))));
    let rollout = Rollout::new(Mode::Shadow).tool("Search", Mode::Enforce);
    assert_eq!(config.rollout, Some(rollout));
    let search = config.catalog.find(None, "Search", None).unwrap();
    assert_eq!(search.effect, Some(Effect::ReadOnly));
    assert_eq!((search.timeout, config.catalog.len()), (Some(Duration::from_millis(7)), 2));
}

#[test]
fn every_mistake_in_a_variable_is_named_with_it_and_the_file_s_with_their_lines() {
    let vars = [
        ("TOOL_RELIABILITY__BREAKER__COOLDOWN", "9000"),
        ("TOOL_RELIABILITY__ROLLOUT__PERCENT", "ten"),
        ("TOOL_RELIABILITY__RETRY__ATTEMPTS", "3"),
        ("TOOL_RELIABILITY__RETRY__Attempts", "4"),
        ("TOOL_RELIABILITY__RETRY__ATTEMPTS__X", "4"),
    ];
    let of_vars = [
        r#"TOOL_RELIABILITY__BREAKER__COOLDOWN: expected a known key, found the unknown key "cooldown" (did you mean "cooldown_ms"?)"#,
        "TOOL_RELIABILITY__RETRY__ATTEMPTS__X: expected each setting once, found a second variable for the same setting",
        "TOOL_RELIABILITY__RETRY__Attempts: expected each setting once, found a second variable for the same setting",
        r#"TOOL_RELIABILITY__ROLLOUT__PERCENT: expected a number from 0 to 100, found "ten""#,
    ];
    for (file, of_file) in [
        ("{}", None),
        (
            r#"{"normalise": 5}"#,
            Some("line 1, column 15: /normalise: expected true or false, found 5"),
        ),
    ] {
        let error = Config::from_text(file, Language::Json, vars).unwrap_err().to_string();
        let mut lines: Vec<_> = error.lines().skip(1).collect();
        lines.sort_unstable();
        let wanted: Vec<_> = of_vars.into_iter().chain(of_file).collect();
        assert_eq!(lines, wanted);
    }
}

#[cfg(feature = "toml")]
#[test]
fn toml_says_the_same() {
    let toml = r#"
[rollout]
mode = "shadow"
tools = { pay = { mode = "enforce", percent = 12.5 } }

[breaker]
window = 0

[tools.search]
effect = "read_only"
"#;
    let error = Config::from_toml(toml).unwrap_err().to_string();
    assert_eq!(
        error,
        "the configuration has a mistake\nline 7, column 10: /breaker/window: expected a whole number from 1 to 10000, found 0"
    );
    let config = Config::from_toml(&toml.replace("= 0", "= 19")).unwrap();
    let pay = part(Mode::Enforce, 12.5, Mode::Off);
    assert_eq!(config.rollout, Some(Rollout::new(Mode::Shadow).tool("pay", pay)));
    assert_eq!((config.breaker.window, config.catalog.len()), (Some(19), 1));

    let vars = [("TOOL_RELIABILITY__BREAKER__WINDOW", "11")];
    let config = Config::from_text(&toml.replace("= 0", "= 19"), Language::Toml, vars).unwrap();
    assert_eq!((config.breaker.window, config.catalog.len()), (Some(11), 1));
}

#[test]
#[cfg(feature = "toml")]
fn mistakes_of_records_and_identity_are_named_with_the_others_and_their_lines() {
    let error = Config::from_toml(
        r#"
[retry]
attempts = 0
[records]
where = "reddis://h:1"
[identity.known]
call = "callId"
conversation = "traceparent"
[identity.shared]
call = "threadId"
[identity.none]
[identity.strong]
conversation = "acme/chat"
strong = true
[identity.fine]
call = "acme/call"
conversation = "threadId"
strong = true
"#,
    );
    let said = error.unwrap_err().to_string();
    for part in [
        "line 3, column 12: /retry/attempts",
        "line 5, column 9: /records/where: expected a file, redis://HOST:PORT or memory, found an address reddis://… (did you mean redis://?)",
        "line 7, column 8: /identity/known/call: ",
        "remove the rule",
        "line 8, column 16: /identity/known/conversation: ",
        "line 10, column 8: /identity/shared/call: ",
        "differs between calls",
        "line 11, column 1: /identity/none: expected `call`, `conversation` or both",
        "line 14, column 10: /identity/strong/strong: expected `call` beside it",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("/identity/fine"), "{said}");
}
