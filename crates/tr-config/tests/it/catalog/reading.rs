//! What a catalog says.
use super::json;
use std::time::Duration;
use tr_config::ToolCatalog;
use tr_core::{
    BreakerHint, Capability, Effect, Params, Priority, RetryOverride, ToolCall, ToolId,
    ToolManifest, Verdict, call::CallContext, canonical::Digest,
};
use tr_wire::utee::ToolRequest;

/// Every key there is.
const WHOLE: &str = r#"{
    "$schema": "../schemas/tool-catalog.schema.json",
    "undeclared_effect": "idempotent",
    "defaults": {
        "namespace": "agents.tools", "timeout_ms": 10000, "retry": {"cap_ms": 9000, "attempts": 7},
        "classification": {"500": "permanent", "503": "transient"}, "sensitive": ["token"]
    },
    "tools": {
        "send": {
            "name": "message", "action": "send", "effect": "mutating",
            "capabilities": ["idempotency", "own_retries"],
            "input_schema": {"type": "object", "required": ["to"]},
            "retry": {
                "attempts": 3, "base_ms": 50, "multiplier": 1.5, "jitter": [0.5, 1],
                "max_elapsed_ms": 2000, "only_codes": ["rate_limit"]
            },
            "retry_safe": false, "cancellable": true,
            "breaker": {"consecutive": 8, "failure_rate": 0.3, "cooldown_ms": 15000, "hint": "tool"},
            "loops": {
                "max_identical": 3, "max_failures_per_turn": 7, "repeats": 30, "poll": true, "loop_key": ["to"]
            },
            "ttl": {"done_ms": 1000, "failed_ms": 200, "inflight_ms": 30},
            "classification": {"503": "permanent"},
            "keys": {"volatile": ["/meta/sentAt"], "any_whitespace": ["/text"], "keep_volatile": true},
            "dependency": "smtp", "depends_on": ["search"], "required": true,
            "default_value": {"sent": null}, "alternatives": ["agents.sms"], "priority": "high",
            "sensitive": ["to"]
        },
        "search": {"effect": "read_only", "capabilities": ["caching", "streaming"]},
        "agents.sms": {"namespace": "other", "timeout_ms": 5}
    }
}"#;

fn whole() -> ToolCatalog {
    json(&as_built(WHOLE)).unwrap()
}

/// Without its schema, where the build checks none.
fn as_built(text: &str) -> String {
    let is_schema =
        |line: &&str| line.trim_start().starts_with(['"', 'i']) && line.contains("input_schema");
    let kept = text.lines().filter(|line| cfg!(feature = "input-schema") || !is_schema(line));
    kept.collect::<Vec<_>>().join("\n")
}

#[cfg(not(feature = "input-schema"))]
#[test]
fn a_schema_that_nobody_checks_is_refused() {
    let error = json(WHOLE).unwrap_err().to_string();
    assert!(
        error.contains("/tools/send/input_schema") && error.contains("`input-schema`"),
        "{error}"
    );
}

#[test]
fn every_key_reaches_the_manifest() {
    let catalog = whole();
    let tool = catalog.find(Some("agents.tools"), "message", Some("send")).unwrap();
    assert_eq!(tool.tool, ToolId::from_parts(Some("agents.tools"), "message", Some("send")));
    assert_eq!(tool.effect, Some(Effect::Mutating));
    assert_eq!(tool.capabilities, [Capability::Idempotency, Capability::OwnRetries]);
    let schema = tool.input_schema.as_ref().map(tr_core::Json::get);
    let checked = cfg!(feature = "input-schema");
    assert_eq!(schema, checked.then_some(r#"{"type": "object", "required": ["to"]}"#));
    assert_eq!(tool.timeout, Some(Duration::from_secs(10)), "from the defaults");
    assert_eq!(
        tool.retry,
        Some(RetryOverride {
            attempts: Some(3),
            base: Some(Duration::from_millis(50)),
            multiplier: Some(1.5),
            cap: Some(Duration::from_secs(9)),
            jitter: Some((0.5, 1.0)),
            max_elapsed: Some(Duration::from_secs(2)),
            only_codes: Some(vec!["rate_limit".into()]),
        })
    );
    assert_eq!((tool.retry_safe, tool.cancellable), (Some(false), true));
    assert_eq!((tool.breaker.consecutive, tool.breaker.failure_rate), (Some(8), Some(0.3)));
    assert_eq!(tool.breaker.cooldown, Some(Duration::from_secs(15)));
    assert_eq!(tool.breaker_hint, Some(BreakerHint::Tool));
    assert_eq!((tool.loops.max_identical, tool.loops.poll), (Some(3), Some(true)));
    assert_eq!((tool.loops.max_failures_per_turn, tool.loops.repeats), (Some(7), Some(30)));
    assert_eq!(tool.loops.loop_key.as_deref(), Some(&["to".into()][..]));
    assert_eq!(tool.ttls.done, Some(Duration::from_secs(1)));
    assert_eq!(tool.ttls.failed, Some(Duration::from_millis(200)));
    assert_eq!(tool.ttls.inflight, Some(Duration::from_millis(30)));
    let of = |code: &str| tool.classification.iter().find(|(own, _)| **own == *code).unwrap().1;
    assert_eq!((of("503"), of("500")), (Verdict::Permanent, Verdict::Permanent));
    assert_eq!(tool.dependency.as_deref(), Some("smtp"));
    assert_eq!(tool.depends_on, [Box::from("search")]);
    assert!(tool.required);
    assert_eq!(tool.default_value.as_ref().unwrap().get(), r#"{"sent": null}"#);
    assert_eq!(tool.alternatives, [Box::from("agents.sms")]);
    assert_eq!(tool.priority, Priority::High);
    assert_eq!(tool.sensitive, [Box::from("to"), Box::from("token")]);
}

#[test]
fn key_rules_say_what_counts() {
    let catalog = whole();
    let rules = &catalog.find(Some("agents.tools"), "message", Some("send")).unwrap().rules;
    let digest = |text| Digest::of_params(text, rules).unwrap();
    assert_eq!(
        digest(r#"{"meta": {"sentAt": 1}, "text": " a  b"}"#),
        digest(r#"{"meta": {}, "text": "a b"}"#)
    );
    assert_ne!(digest(r#"{"retryCount": 1}"#), digest("{}"));
}

#[test]
fn a_tool_is_met_by_its_whole_identity() {
    let catalog = whole();
    assert_eq!(catalog.len(), 3);
    assert!(catalog.find(None, "message", Some("send")).is_none());
    assert!(catalog.find(Some("agents.tools"), "message", None).is_none());
    assert!(catalog.find(Some("agents.tools"), "message.send", None).is_none());
    assert!(catalog.find(Some("other"), "agents.sms", None).is_some());
    let id = ToolId::from_parts(Some("agents.tools"), "search", None);
    assert_eq!(catalog.get(&id).unwrap().effect, Some(Effect::ReadOnly));
}

#[test]
fn ut_06_capabilities_are_asked_for_before_a_call() {
    let catalog = json(
        r#"{"tools": {
            "exec": {"action": "run", "capabilities": ["streaming", "idempotency"]},
            "search": {"effect": "read_only", "capabilities": ["caching", "own_retries"]},
            "pay": {"effect": "mutating", "capabilities": ["caching"]}
        }}"#,
    )
    .unwrap();
    let exec = ToolId::from_parts(None, "exec", Some("run"));
    assert!(catalog.supports(exec.clone(), Capability::Streaming));
    assert!(catalog.supports(exec.clone(), Capability::Idempotency));
    assert!(!catalog.supports(exec, Capability::Caching));
    assert!(catalog.supports("search", Capability::OwnRetries));
    assert!(!catalog.supports("stranger", Capability::Streaming));

    let call = |tool: &str, action: &str| {
        let text = format!(
            r#"{{"tool": "{tool}", "action": "{action}", "params": {{}},
                "hints": {{"preferStreaming": true, "cacheKey": "k"}}}}"#
        );
        let request = ToolRequest::read(text).unwrap();
        catalog.manifested(request.into_call(CallContext::default(), || "r".into()).unwrap())
    };
    let streams = call("exec", "run");
    assert!(streams.manifest().unwrap().streams_for(&streams.parts().hints));
    assert_eq!(streams.manifest().unwrap().cache_key_of(&streams.parts().hints), None);
    let reads = call("search", "");
    assert!(!reads.manifest().unwrap().streams_for(&reads.parts().hints));
    assert_eq!(reads.manifest().unwrap().cache_key_of(&reads.parts().hints), Some("k"));
    // A payment is never answered from a cache, whatever its manifest allows.
    let pays = call("pay", "");
    assert_eq!(pays.manifest().unwrap().cache_key_of(&pays.parts().hints), None);
}

#[test]
fn a_call_learns_what_is_known_of_its_tool() {
    let catalog = whole();
    let search = ToolId::from_parts(Some("agents.tools"), "search", None);
    let call = catalog.manifested(ToolCall::new(search, Params::empty_object()));
    assert_eq!((call.parts().effect, call.parts().effect_declared), (Effect::ReadOnly, true));

    let call = catalog.manifested(ToolCall::new("stranger", Params::empty_object()));
    assert!(call.manifest().is_none());
    assert_eq!((call.parts().effect, call.parts().effect_declared), (Effect::Idempotent, false));

    let declared = ToolCall::new("stranger", Params::empty_object()).effect(Effect::ReadOnly);
    assert_eq!(catalog.manifested(declared).parts().effect, Effect::ReadOnly);

    let careful = json("{}").unwrap();
    assert_eq!((careful.undeclared_effect(), careful.is_empty()), (Effect::Mutating, true));
}

#[test]
fn retry_settings_stand_in_the_manifest_or_in_its_table() {
    let catalog = json(
        r#"{"tools": {
            "custom_api": {"initial_delay_ms": 50, "max_delay_ms": 2000, "max_attempts": 3},
            "nested": {"retry": {"base_ms": 50, "cap_ms": 2000, "attempts": 3}},
            "percent": {"retry": {"jitter_percent": 10, "multiplier": 2}}
        }}"#,
    )
    .unwrap();
    for tool in ["custom_api", "nested"] {
        let retry = catalog.find(None, tool, None).unwrap().retry.clone().unwrap();
        assert_eq!(retry.attempts, Some(3));
        assert_eq!(retry.base, Some(Duration::from_millis(50)));
        assert_eq!(retry.cap, Some(Duration::from_secs(2)));
    }
    let retry = catalog.find(None, "percent", None).unwrap().retry.clone().unwrap();
    assert_eq!((retry.jitter, retry.multiplier), (Some((0.9, 1.1)), Some(2.0)));
}

#[test]
fn a_catalog_may_be_made_in_code() {
    let mut search = ToolManifest::new("search");
    search.effect = Some(Effect::ReadOnly);
    let mut send = ToolManifest::new(ToolId::from_parts(None, "message", Some("send")));
    send.depends_on = vec!["search".into()];
    let catalog = ToolCatalog::new([send.clone(), search]).unwrap();
    let catalog = catalog.with_undeclared_effect(Effect::Idempotent);
    assert_eq!((catalog.iter().len(), catalog.undeclared_effect()), (2, Effect::Idempotent));
    assert_eq!(catalog.find(None, "search", None).unwrap().effect, Some(Effect::ReadOnly));

    let mut serch = ToolManifest::new("serch");
    serch.alternatives = vec!["message.send".into()];
    let error = ToolCatalog::new([send.clone(), serch, send]).unwrap_err();
    let mut lines: Vec<_> = error.mistakes().iter().map(ToString::to_string).collect();
    lines.sort();
    lines.dedup();
    assert_eq!(
        lines,
        [
            "/tools/message.send/depends_on/0: expected the name of a tool of this catalog, found \"search\" (did you mean \"serch\"?)",
            "/tools/message.send: expected each tool once, found message.send, which is also declared as \"message.send\"",
        ]
    );
}

/// A table of TOML is sorted by name.
#[cfg(feature = "toml")]
#[test]
fn of_two_tools_with_one_identity_the_second_in_the_text_is_refused() {
    let text = "[tools.zeta]\nname = \"x\"\n\n[tools.alpha]\nname = \"x\"\n";
    let error = ToolCatalog::from_toml(text).unwrap_err().to_string();
    assert!(error.contains("line 4") && error.contains("also declared as \"zeta\""), "{error}");
}

#[cfg(feature = "toml")]
#[test]
fn toml_says_the_same() {
    let catalog = ToolCatalog::from_toml(&as_built(
        r#"
        undeclared_effect = "idempotent"

        [defaults]
        namespace = "agents.tools"
        timeout_ms = 10_000
        sensitive = ["token"]
        classification = { 500 = "permanent", 503 = "transient" }
        retry = { cap_ms = 9_000, attempts = 0x7 }

        [tools.send]
        name = "message"
        action = "send"
        effect = "mutating"
        capabilities = ["idempotency", "own_retries"]
        input_schema = { type = "object", required = ["to"] }
        retry_safe = false
        cancellable = true
        dependency = "smtp"
        depends_on = ["search"]
        required = true
        default_value = { sent = 2026-01-01, share = 0.5, count = -3 }
        alternatives = ["agents.sms"]
        priority = "high"
        sensitive = ["to"]

        [tools.send.retry]
        attempts = 3
        base_ms = 50
        multiplier = 1.5
        jitter = [0.5, 1]
        max_elapsed_ms = 2000
        only_codes = ["rate_limit"]

        [tools.send.breaker]
        consecutive = 8
        failure_rate = 0.3
        cooldown_ms = 15_000
        hint = "tool"

        [tools.send.loops]
        max_identical = 3
        max_failures_per_turn = 7
        repeats = 30
        poll = true
        loop_key = ["to"]

        [tools.send.ttl]
        done_ms = 1000
        failed_ms = 200
        inflight_ms = 30

        [tools.send.classification]
        "503" = "permanent"

        [tools.send.keys]
        volatile = ["/meta/sentAt"]
        any_whitespace = ["/text"]
        keep_volatile = true

        [tools.search]
        effect = "read_only"
        capabilities = ["caching", "streaming"]

        [tools."agents.sms"]
        namespace = "other"
        timeout_ms = 5
        "#,
    ))
    .unwrap();
    let (toml, json) = (catalog.iter(), whole());
    for (mut ours, theirs) in toml.map(|tool| ToolManifest::clone(tool)).zip(json.iter()) {
        let mut theirs = ToolManifest::clone(theirs);
        if let Some(value) = ours.default_value.take() {
            assert_eq!(value.get(), r#"{"count":-3,"sent":"2026-01-01","share":0.5}"#);
        }
        let schema = |tool: &mut ToolManifest| {
            let schema: Option<serde_json::Value> =
                tool.input_schema.take().map(|s| s.parse().unwrap());
            schema
        };
        assert_eq!(schema(&mut ours), schema(&mut theirs));
        theirs.default_value = None;
        assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
    }
}

#[test]
fn defaults_without_any_tools_are_refused() {
    let error = json(r#"{"defaults": {"timeout_ms": 5}}"#).unwrap_err().to_string();
    assert!(error.contains("listed under `tools`"), "{error}");
    json(r#"{"defaults": {"timeout_ms": 5}, "tools": {}}"#).unwrap();
}
