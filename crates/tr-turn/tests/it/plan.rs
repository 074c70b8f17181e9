//! Plans in JSON: read, checked, refused with all their faults at once.
use std::{collections::BTreeSet, time::Duration};
use tr_config::ToolCatalog;
use tr_core::{Ran, Verdict, failure_info};
use tr_turn::{Call, Draft, Limits, Plan, Tools};

fn faults(text: &str, tools: &Tools) -> Vec<String> {
    let error = Plan::from_json(text, tools).unwrap_err();
    let found = failure_info(&error).unwrap();
    assert_eq!((found.ran(), found.verdict()), (Ran::No, Verdict::Permanent));
    error.faults().iter().map(ToString::to_string).collect()
}

/// A plan with every key that there is.
const FULL: &str = r#"{
        "turn": "trip-1", "session": "s-1", "agent": "planner",
        "limits": {"timeout_ms": 60000, "call_timeout_ms": 40000, "attempt_timeout_ms": 10000, "concurrency": 2},
        "calls": [
            {"tool": "flight_search", "params": {"to": "LIS"}, "effect": "read_only", "priority": "high",
             "timeout_ms": 30000, "attempt_timeout_ms": 5000, "alternatives": ["backup", {"tool": "agency", "params": {}}],
             "default_value": null, "cancellation_id": "stop-1"},
            {"name": "book", "tool": "pay", "params": {"flight": {"$from": "flight_search", "at": ""}},
             "depends_on": ["flight_search"], "required": true, "idempotency_key": "order-42", "effect": "mutating",
             "defaults": {"flight_search": []}}
        ]}"#;

#[test]
fn a_plan_says_all_that_a_draft_can() {
    let plan = Plan::from_json(FULL, &Tools::any()).unwrap();
    assert_eq!((plan.turn(), plan.session()), (Some("trip-1"), Some("s-1")));
    assert_eq!(plan.agent(), Some("planner"));
    assert_eq!(plan.calls().collect::<Vec<_>>(), ["flight_search", "book"]);
    let limits = Limits {
        timeout: Duration::from_secs(60),
        call_timeout: Some(Duration::from_secs(40)),
        attempt_timeout: Some(Duration::from_secs(10)),
        concurrency: 2,
    };
    assert_eq!(plan.limits(), &limits);
}

#[test]
fn every_fault_is_named_with_its_place() {
    let text = r#"{
        "limits": {"timeout_ms": 0, "concurency": 3, "call_timeout_ms": "soon"},
        "calls": [
            {"name": "a", "tool": "x", "depends_on": ["c"]},
            {"name": "b", "tool": "x", "params": {"of": {"$from": "z"}}, "depends_on": ["b", 7]},
            {"name": "c", "tool": "x", "depends_on": ["a", "a"], "alternatives": ["y", "y", {"params": {}}]},
            {"name": "a", "params": [], "required": "yes", "defaults": {"b": 1}},
            {"name": "d", "tool": "x", "params": {"of": {"$from": "a", "to": 1}}, "timeout_ms": 864000000}
        ]}"#;
    assert_eq!(
        faults(text, &Tools::any()),
        [
            r#"/limits/concurency: expected a known key, found the unknown key "concurency" (did you mean "concurrency"?)"#,
            r#"/limits/call_timeout_ms: expected whole milliseconds, found a string"#,
            r#"/calls/1/depends_on/1: expected the name of another call, found 7"#,
            r#"/calls/2/alternatives/2/tool: expected the name of a tool, found nothing"#,
            r#"/calls/3/tool: expected the name of a tool, found nothing"#,
            r#"/calls/3/params: expected an object, found an array"#,
            r#"/calls/3/required: expected true or false, found a string"#,
            r#"/limits/timeout_ms: expected 1 ms to 24 h, found 0 ms"#,
            r#"/calls/3/name: expected a unique name, found "a", as /calls/0 is (give calls of one tool different names)"#,
            r#"/calls/1/depends_on/0: expected the name of another call, found the call itself"#,
            r#"/calls/1/params: expected the name of another call, found "z" (did you mean "a"?)"#,
            r#"/calls/2/alternatives/1: expected each tool once, found "y" again"#,
            r#"/calls/2/depends_on/1: expected each call once, found "a" again"#,
            r#"/calls/4/params/of: expected {"$from": CALL} or {"$from": CALL, "at": POINTER}, found something else"#,
            r#"/calls/4/timeout_ms: expected 1 ms to 24 h, found 864000000 ms"#,
            r#"/calls/3/defaults/b: expected the name of a call that this one needs, found "b""#,
            r#"/calls/2/depends_on/0: expected no dependency cycle, found a → c → a"#,
        ]
    );
}

#[test]
fn drafts_in_rust_are_told_of_all_their_faults_at_once_too() {
    let limits = Limits { concurrency: 0, timeout: Duration::MAX, ..Limits::default() };
    let draft = Draft::new("").session(" ").agent("").limits(limits);
    let draft = draft
        .call(Call::new(""))
        .call(Call::new("").named("a"))
        .call(Call::new("b").after("").alternative(" ").alternative("b"))
        .call(Call::new("b").params(serde_json::json!([1])).timeout(Duration::ZERO))
        .call(Call::new("c").named("").alternative_with("", serde_json::json!("text")))
        .call(
            Call::new("d")
                .idempotency_key("")
                .cancellation_id("\t")
                .or_default("", serde_json::json!(1)),
        );
    let error = draft.check(&Tools::any()).unwrap_err();
    let faults: Vec<_> = error.faults().iter().map(ToString::to_string).collect();
    let longest = format!("found {} ms", Duration::MAX.as_millis());
    assert_eq!(
        faults,
        [
            "/turn: expected a name, found an empty string",
            "/session: expected a name, found white space",
            "/agent: expected a name, found an empty string",
            "/calls/0/tool: expected the name of a tool, found an empty string",
            "/calls/1/tool: expected the name of a tool, found an empty string",
            "/calls/2/depends_on/0: expected the name of another call, found an empty string",
            "/calls/2/alternatives/0: expected the name of a tool, or an object, found white space",
            "/calls/4/name: expected a name, found an empty string",
            "/calls/4/alternatives/0/tool: expected the name of a tool, found an empty string",
            "/calls/5/idempotency_key: expected a name, found an empty string",
            "/calls/5/cancellation_id: expected a name, found white space",
            &format!("/limits/timeout_ms: expected 1 ms to 24 h, {longest}"),
            "/limits/concurrency: expected 1 to 1000 calls at once, found 0",
            r#"/calls/3/name: expected a unique name, found "b", as /calls/2 is (give calls of one tool different names)"#,
            r#"/calls/2/alternatives/1: expected each tool once, found "b" again"#,
            "/calls/3/params: expected an object, found an array",
            "/calls/3/timeout_ms: expected 1 ms to 24 h, found 0 ms",
            "/calls/4/alternatives/0/params: expected an object, found a string",
            r#"/calls/5/defaults/: expected the name of a call that this one needs, found """#,
        ]
    );
}

#[test]
fn what_cannot_be_read_keeps_its_place_and_is_told_once() {
    let text = r#"{"turn": 1, "calls": [
        7,
        {"tool": 7, "alternatives": [7, {"params": {}}, "y", "y", {"tool": " "}], "depends_on": [7, ""]},
        {"tool": "x", "name": ""}
    ]}"#;
    assert_eq!(
        faults(text, &Tools::any()),
        [
            "/turn: expected a name, found 1",
            "/calls/0: expected an object, found 7",
            "/calls/1/tool: expected the name of a tool, found 7",
            "/calls/1/alternatives/0: expected the name of a tool, or an object, found 7",
            "/calls/1/alternatives/1/tool: expected the name of a tool, found nothing",
            "/calls/1/depends_on/0: expected the name of another call, found 7",
            "/calls/1/depends_on/1: expected the name of another call, found an empty string",
            "/calls/1/alternatives/4/tool: expected the name of a tool, found white space",
            "/calls/2/name: expected a name, found an empty string",
            r#"/calls/1/alternatives/3: expected each tool once, found "y" again"#,
        ]
    );
}

#[test]
fn what_is_no_json_is_refused_with_its_place() {
    for (text, fault) in [
        ("{", "the whole text: expected JSON, found"),
        (
            r#"{"calls": [], "calls": []}"#,
            "/calls: expected each name once, found a duplicate name",
        ),
        ("[]", "the whole text: expected an object, found an array"),
        ("{}", "/calls: expected 1 to 10000 calls, found 0"),
    ] {
        let faults = faults(text, &Tools::any());
        assert!(faults.len() == 1 && faults[0].starts_with(fault), "{text}: {faults:?}");
    }
}

#[test]
fn a_required_call_must_have_a_way() {
    let tools = Tools::any().offered(["hotel_search", "backup"]);
    let text = r#"{"calls": [
        {"tool": "flight_search", "alternatives": ["backup"]},
        {"tool": "car_search"},
        {"name": "cars", "tool": "car_search", "default_value": []},
        {"tool": "hotel_search", "required": true, "depends_on": ["flight_search", "cars"]},
        {"name": "itinerary", "tool": "create_itinerary", "required": true},
        {"name": "both", "tool": "hotel_search", "required": true, "depends_on": ["car_search"]}
    ]}"#;
    assert_eq!(
        faults(text, &tools),
        [
            r#"/calls/4/tool: expected an available tool for a required call, found "create_itinerary", which is not available"#,
            r#"/calls/5: expected an available tool for a required call, found its dependency "car_search" without a tool"#,
        ]
    );
}

#[test]
fn defaults_must_have_what_params_take_from_them() {
    let text = r#"{"calls": [
        {"tool": "a", "default_value": {"x": 1}},
        {"tool": "b"},
        {"tool": "c", "params": [], "depends_on": []},
        {"tool": "d", "params": {"p": {"$from": "a", "at": "/y"}, "q": {"$from": "b", "at": "/0"}}, "defaults": {"b": []}}
    ]}"#;
    assert_eq!(
        faults(text, &Tools::any())[1..],
        [
            r#"/calls/0/default_value: expected a default with a value at /y, found none there, and /calls/3/params uses it"#,
            r#"/calls/3/defaults/b: expected a default with a value at /0, found none there, and /calls/3/params uses it"#,
        ]
    );
}

#[test]
fn a_catalog_completes_a_plan() {
    let catalog = ToolCatalog::from_toml(
        r#"
        [tools.flight_search]
        effect = "read_only"
        alternatives = ["backup"]
        [tools.backup]
        effect = "read_only"
        [tools.compare]
        depends_on = ["flight_search"]
        required = true
        "#,
    )
    .unwrap();
    let draft = Draft::new("t")
        .call(Call::new("compare"))
        .call(Call::new("flight_search").named("out"))
        .call(Call::new("flight_search").named("back"));
    let tools = Tools::any().catalog(catalog.clone());
    draft.check(&tools).unwrap();
    // The manifest says that it is required, and it needs both searches.
    let error = draft.check(&tools.offered(["compare"])).unwrap_err();
    let faults: Vec<_> = error.faults().iter().map(ToString::to_string).collect();
    assert_eq!(
        faults,
        [
            r#"/calls/0: expected an available tool for a required call, found its dependency "out" without a tool"#
        ]
    );
    // The alternative that the manifest names is a way.
    let offered = Tools::any().catalog(catalog).offered(["compare", "backup"]);
    draft.check(&offered).unwrap();
}

#[test]
fn a_long_chain_and_a_large_plan_are_no_trouble() {
    let chain = (1..10_000).fold(Draft::new("t").call(Call::new("c0")), |draft, n| {
        draft.call(Call::new(format!("c{n}")).after(format!("c{}", n - 1)))
    });
    chain.check(&Tools::any()).unwrap();
    let cycle = Draft::new("t").call(Call::new("c0").after("c9999"));
    let cycle = (1..10_000).fold(cycle, |draft, n| {
        draft.call(Call::new(format!("c{n}")).after(format!("c{}", n - 1)))
    });
    assert_eq!(cycle.check(&Tools::any()).unwrap_err().faults().len(), 1);
    let error = chain.call(Call::new("one_more")).check(&Tools::any()).unwrap_err();
    assert!(error.to_string().ends_with("/calls: expected 1 to 10000 calls, found 10001"));
}

#[test]
fn the_schema_knows_what_the_reader_knows() {
    let schema = tr_turn::plan::json_schema();
    jsonschema::meta::validate(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let full: serde_json::Value = serde_json::from_str(FULL).unwrap();
    assert!(validator.is_valid(&full), "{:?}", validator.iter_errors(&full).collect::<Vec<_>>());
    // Each key of the schema is one that the full plan has, and the reader takes it.
    let keys = |of: &serde_json::Value| -> BTreeSet<String> {
        of.as_object().unwrap().keys().cloned().collect()
    };
    let known = |at: &str| keys(schema.pointer(at).unwrap());
    let used: BTreeSet<_> = full["calls"].as_array().unwrap().iter().flat_map(keys).collect();
    assert_eq!(known("/$defs/call/properties"), used);
    assert_eq!(known("/properties/limits/properties"), keys(&full["limits"]));
    assert_eq!(
        known("/properties"),
        [&keys(&full), &BTreeSet::from(["$schema".to_owned()])]
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    );
    let absent = r#"{"$schema": "x", "turn": null, "limits": null, "calls": [{"tool": "a", "params": null, "effect": null}]}"#;
    for text in [
        absent,
        r#"{"calls": [{"tool": "a"}, {"name": "b", "tool": "a", "alternatives": ["c"], "depends_on": ["a"]}]}"#,
    ] {
        Plan::from_json(text, &Tools::any()).unwrap();
        assert!(validator.is_valid(&serde_json::from_str(text).unwrap()), "{text}");
    }
    for text in [
        "{}",
        r#"{"calls": []}"#,
        r#"{"calls": [{}]}"#,
        r#"{"calls": [{"tool": " "}]}"#,
        r#"{"calls": [{"tool": "a", "priority": "urgent"}]}"#,
        r#"{"calls": [{"tool": "a", "timeout_ms": 0}]}"#,
        r#"{"calls": [{"tool": "a", "paramz": {}}]}"#,
        r#"{"calls": [{"tool": "a", "params": []}]}"#,
        r#"{"calls": [{"tool": "a", "alternatives": [{"params": {}}]}]}"#,
        r#"{"calls": [{"tool": "a", "depends_on": [""]}]}"#,
        r#"{"calls": [{"tool": "a"}], "limits": {"concurrency": 1001}}"#,
    ] {
        Plan::from_json(text, &Tools::any()).unwrap_err();
        assert!(!validator.is_valid(&serde_json::from_str(text).unwrap()), "{text}");
    }
}
