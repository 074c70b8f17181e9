//! Looking at a stack and interfering by hand, over HTTP.
mod access;
mod foreign;
mod store;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tool_reliability::{
    Guarded, Mode, Rollout, Share, Stage, ToolStack,
    admin::{Admin, PATH, Peer},
};
use tower::ServiceExt;
use tr_core::{BreakerState, Effect, KeyRef, Params, Ran, ToolCall, Verdict};
use tr_testkit::{
    calls::{ScriptedTool, answers, fails},
    logs::Logs,
    tool::Step,
};
use tracing_subscriber::fmt;

const TOKEN: &str = "0123456789abcdef";

/// An endpoint that executes orders, since it has a token.
fn admin(stack: &ToolStack) -> Admin {
    Admin::new(stack).token(TOKEN).unwrap()
}

/// A request with the token.
fn request(method: Method, body: &str) -> Request<Full<Bytes>> {
    let mut request = Request::builder()
        .method(method)
        .uri(PATH)
        .header("host", "localhost:9000")
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {TOKEN}"));
    request.extensions_mut().unwrap().insert(Peer("127.0.0.1:5000".parse().unwrap()));
    request.body(Full::from(body.to_owned())).unwrap()
}

async fn send(admin: &Admin, request: Request<Full<Bytes>>) -> (StatusCode, Value) {
    let response = admin.clone().oneshot(request).await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(response.headers()["cache-control"], "no-store");
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap())
}

async fn state(admin: &Admin) -> Value {
    let (status, state) = send(admin, request(Method::GET, "")).await;
    assert_eq!(status, StatusCode::OK);
    state
}

async fn order(admin: &Admin, order: Value) -> (StatusCode, Value) {
    send(admin, request(Method::POST, &order.to_string())).await
}

fn around(stack: &ToolStack, step: Step<tr_core::ToolOutcome>) -> Guarded<ScriptedTool> {
    stack.service(ScriptedTool::script([step]).then_repeat_last())
}

fn call(tool: &str, key: &str) -> ToolCall {
    ToolCall::new(tool, Params::empty_object())
        .effect(Effect::Mutating)
        .session("s")
        .idempotency_key(key)
}

#[tokio::test(start_paused = true)]
async fn breakers_are_seen_and_turned() {
    let stack = ToolStack::default();
    let admin = admin(&stack);
    around(&stack, answers("ok")).oneshot(call("pay", "k")).await.unwrap();
    let seen = state(&admin).await;
    assert_eq!(seen["breakers"][0]["name"], "_overflow");
    assert_eq!(
        (&seen["breakers"][1]["name"], &seen["breakers"][1]["state"]),
        (&json!("pay"), &json!("CLOSED"))
    );
    let breaker = stack.breakers().get(KeyRef::new("pay")).unwrap();
    for (action, wanted, mode) in [
        ("force_open", "FORCED_OPEN", "enforce"),
        ("shadow", "FORCED_OPEN", "shadow"),
        ("enforce", "FORCED_OPEN", "enforce"),
        ("disable", "CLOSED", "disabled"),
        ("reset", "CLOSED", "enforce"),
    ] {
        let (status, now) = order(&admin, json!({ "action": action, "breaker": "pay" })).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!((&now["state"], &now["mode"]), (&json!(wanted), &json!(mode)), "{action}");
        assert_eq!(breaker.state().as_str(), wanted);
    }
    // What is not there is not made.
    let (status, _) = order(&admin, json!({ "action": "force_open", "breaker": "typo" })).await;
    assert_eq!((status, stack.breakers().all().len()), (StatusCode::NOT_FOUND, 1));
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn an_order_for_a_tool_reaches_what_it_reaches() {
    let stack = ToolStack::default();
    let admin = admin(&stack);
    let fetch = |url: &str| ToolCall::new("fetch", Params::from(json!({ "url": url })));
    let tool = around(&stack, answers("page"));
    tool.clone().oneshot(fetch("https://a.example/1")).await.unwrap();
    let seen = state(&admin).await;
    let names: Vec<_> = seen["breakers"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["_overflow", "fetch", "fetch https://a.example"]);

    order(&admin, json!({ "action": "force_open", "breaker": "fetch" })).await;
    for url in ["https://a.example/2", "https://b.example/", "none"] {
        let refused = tool.clone().oneshot(fetch(url)).await.unwrap_err();
        assert!(refused.to_string().contains("fetch is FORCED_OPEN"), "{refused}");
    }
    order(&admin, json!({ "action": "reset", "breaker": "fetch" })).await;
    for url in ["https://a.example/3", "https://b.example/", "none"] {
        tool.clone().oneshot(fetch(url)).await.unwrap();
    }
    let one = json!({ "action": "force_open", "breaker": "fetch https://a.example" });
    assert_eq!(order(&admin, one).await.0, StatusCode::OK);
    tool.clone().oneshot(fetch("https://a.example/4")).await.unwrap_err();
    tool.clone().oneshot(fetch("https://b.example/4")).await.unwrap();
    order(&admin, json!({ "action": "reset", "breaker": "fetch" })).await;
    tool.clone().oneshot(fetch("https://a.example/5")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_breaker_of_a_tool_with_an_action_is_found_by_the_name_that_is_shown() {
    let stack = ToolStack::default();
    let tool = tr_core::ToolId::from_parts(Some("agents"), "message", Some("send"));
    let call = ToolCall::new(tool, Params::empty_object());
    around(&stack, answers("ok")).oneshot(call).await.unwrap();
    let admin = admin(&stack);
    let name = state(&admin).await["breakers"][1]["name"].as_str().unwrap().to_owned();
    let (status, now) = order(&admin, json!({ "action": "force_open", "breaker": name })).await;
    assert_eq!((status, &now["state"]), (StatusCode::OK, &json!("FORCED_OPEN")));
}

#[tokio::test(start_paused = true)]
async fn a_flush_says_the_number_first_and_does_it_when_confirmed() {
    let stack = ToolStack::default();
    let admin = admin(&stack);
    let (pay, hang) = (around(&stack, answers("ok")), around(&stack, Step::Hang));
    for key in ["a", "b", "c"] {
        pay.clone().oneshot(call("pay", key)).await.unwrap();
    }
    // In flight: it stays.
    let running = tokio::spawn(hang.oneshot(call("slow", "d")));
    tokio::task::yield_now().await;

    let flush = |more: Value| {
        let mut order = json!({ "action": "flush", "session": "s" });
        order.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        order
    };
    assert_eq!(order(&admin, flush(json!({}))).await, (StatusCode::OK, json!({ "wouldFlush": 3 })));
    assert_eq!(stack.records().records().len(), 4);
    let (status, said) = order(&admin, flush(json!({ "confirm": 2 }))).await;
    assert_eq!((status, &said["wouldFlush"]), (StatusCode::CONFLICT, &json!(3)));
    assert_eq!(stack.records().records().len(), 4);
    assert_eq!(
        order(&admin, flush(json!({ "confirm": 3 }))).await,
        (StatusCode::OK, json!({ "flushed": 3 }))
    );
    assert_eq!(stack.records().counts().inflight, 1);
    running.abort();

    pay.clone().oneshot(call("pay", "a")).await.unwrap();
    pay.oneshot(call("payout", "b")).await.unwrap();
    let tool = |name: &str| json!({ "action": "flush", "tool": name });
    assert_eq!(order(&admin, tool("payo")).await.1, json!({ "wouldFlush": 1 }));
    assert_eq!(order(&admin, tool("pay")).await.1, json!({ "wouldFlush": 2 }));
    let key = call("pay", "a").id().unwrap().unwrap().key;
    let one = json!({ "action": "flush", "key": key.to_string(), "confirm": 1 });
    assert_eq!(order(&admin, one).await.1, json!({ "flushed": 1 }));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_is_listed_and_settled() {
    let stack = ToolStack::default();
    let admin = admin(&stack);
    let pay = around(&stack, fails("timeout", Verdict::TRANSIENT, Ran::Unknown));
    pay.clone().oneshot(call("pay", "order-42")).await.unwrap_err();
    let seen = state(&admin).await;
    let unknown = &seen["unknown"][0];
    assert_eq!((&unknown["tool"], &unknown["state"]), (&json!("pay"), &json!("unknown")));
    let settle = |epoch: Value| {
        json!({ "action": "settle", "key": unknown["key"], "epoch": epoch,
            "outcome": "done", "output": {"charged": 12} })
    };
    let (status, _) = order(&admin, settle(json!(99))).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "another run is meant");
    let (status, _) = order(&admin, settle(unknown["epoch"].clone())).await;
    assert_eq!(status, StatusCode::OK);
    let replay = pay.oneshot(call("pay", "order-42").turn("next")).await.unwrap();
    assert_eq!(replay.content().unwrap().get(), r#"{"charged":12}"#);
    let (status, _) = order(&admin, settle(unknown["epoch"].clone())).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "it is settled");
}

#[tokio::test(start_paused = true)]
async fn a_call_past_its_lease_is_listed() {
    let stack = ToolStack::builder()
        .attempt_timeout(|it| it.after(Duration::from_secs(900)))
        .build()
        .unwrap();
    let admin = admin(&stack);
    let hang = around(&stack, Step::Hang);
    let running = tokio::spawn(hang.oneshot(call("slow", "k")));
    tokio::task::yield_now().await;
    assert_eq!(state(&admin).await["stale"], json!([]));
    tokio::time::advance(Duration::from_secs(121)).await;
    assert_eq!(state(&admin).await["stale"][0]["tool"], "slow");
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn the_stack_is_turned_off_and_on() {
    let stack = ToolStack::default();
    let admin = admin(&stack);
    assert_eq!(
        (state(&admin).await["on"].clone(), state(&admin).await["mode"].clone()),
        (json!(true), json!("enforce"))
    );
    let ten = Stage::part(Mode::Enforce, Share::percent(10.0).unwrap(), Mode::Shadow);
    let mixed = Rollout::new(Mode::Off).effect(Effect::ReadOnly, ten).tool("pay", Mode::Shadow);
    stack.kill_switch().set_rollout(mixed);
    let shown = state(&admin).await;
    assert_eq!(shown["mode"], "by call");
    let ten = json!({ "mode": "enforce", "percent": 10.0, "others": "shadow" });
    assert_eq!(
        shown["rollout"],
        json!({ "mode": "off", "read_only": ten, "tools": { "pay": "shadow" } })
    );
    order(&admin, json!({ "action": "switch", "on": false })).await;
    assert!(!stack.kill_switch().is_on());
    assert_eq!(state(&admin).await["on"], false);
}

#[tokio::test]
async fn a_configuration_is_read_again() {
    use tool_reliability::config::{Config, Live};
    let live = Live::new(Config::default(), |builder| builder).unwrap();
    let texts = Arc::new(Mutex::new(vec![
        r#"{"rollout": {"mode": "sideways"}}"#,
        r#"{"rollout": {"mode": "shadow"}, "retry": {"attempts": 2}}"#,
    ]));
    let admin = admin(live.stack()).on_reload({
        let live = live.clone();
        move || {
            let text = texts.lock().unwrap().pop().unwrap();
            let config = Config::from_json(text).map_err(|error| error.to_string())?;
            live.reload(config).map_err(|error| error.to_string())
        }
    });
    let reload = || json!({ "action": "reload" });
    assert_eq!(
        order(&admin, reload()).await,
        (StatusCode::OK, json!({ "needsRestart": ["retry"] }))
    );
    assert_eq!(state(&admin).await["mode"], "shadow");
    let (status, said) = order(&admin, reload()).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(said["error"].as_str().unwrap().contains("line 1, column 22"), "{said}");
    assert_eq!(state(&admin).await["mode"], "shadow");
    let without = self::admin(live.stack());
    assert_eq!(order(&without, reload()).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_is_no_order_is_refused_and_changes_nothing() {
    let stack = ToolStack::default();
    let admin = admin(&stack);
    let of = |method, body: &str| request(method, body);
    let long = format!(r#"{{"action": "{}"}}"#, "x".repeat(70_000));
    for (request, status) in [
        (of(Method::POST, "{"), StatusCode::BAD_REQUEST),
        (of(Method::POST, r#"{"action":"flush"}"#), StatusCode::BAD_REQUEST),
        (of(Method::POST, &long), StatusCode::PAYLOAD_TOO_LARGE),
        (of(Method::DELETE, ""), StatusCode::METHOD_NOT_ALLOWED),
    ] {
        let (found, body) = send(&admin, request).await;
        assert_eq!(found, status, "{body}");
        assert!(body["error"].is_string());
    }
    let mut elsewhere = of(Method::GET, "");
    *elsewhere.uri_mut() = "/".parse().unwrap();
    assert_eq!(send(&admin, elsewhere).await.0, StatusCode::NOT_FOUND);
    let mut form = of(Method::POST, r#"{"action":"switch","on":false}"#);
    form.headers_mut().insert("content-type", "text/plain".parse().unwrap());
    assert_eq!(send(&admin, form).await.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert!(stack.kill_switch().is_on());
}

#[tokio::test(start_paused = true)]
async fn every_change_is_written_down_and_no_secret_is_shown() {
    const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let (logs, _listening) = Logs::listen(|logs| fmt().with_writer(move || logs.clone()).finish());
    let stack = ToolStack::default();
    let admin = admin(&stack);
    let failing = ScriptedTool::script([Step::err(
        tr_core::FailureInfo::new("timeout", Ran::Unknown, Verdict::TRANSIENT)
            .because(format!("no answer with token {SECRET}")),
    )]);
    let leaky = call("pay", SECRET).session(format!("session-{SECRET}"));
    stack.service(failing).oneshot(leaky).await.unwrap_err();
    let seen = state(&admin).await;
    assert_eq!(seen["unknown"].as_array().unwrap().len(), 1);
    assert!(!seen.to_string().contains(SECRET), "{seen}");

    let why = format!("it leaks {SECRET}");
    order(&admin, json!({ "action": "force_open", "breaker": "pay", "why": why })).await;
    let session = format!("session-{SECRET}");
    order(&admin, json!({ "action": "flush", "session": session })).await;
    let mut page = request(Method::GET, "");
    page.headers_mut().insert("origin", "https://attacker.example".parse().unwrap());
    send(&admin, page).await;
    let log = logs.text();
    let changes: Vec<_> = log.lines().filter(|line| line.contains("admin_change")).collect();
    assert_eq!(changes.len(), 2, "{log}");
    assert!(changes[0].contains(r#"action="force_open""#) && changes[0].contains("pay"), "{log}");
    assert!(changes[0].contains("it leaks"), "{log}");
    assert!(changes[0].contains("127.0.0.1:5000") && changes[0].contains("status=200"), "{log}");
    assert!(log.lines().any(|line| line.contains("admin_refused")), "{log}");
    assert!(!log.contains(SECRET), "{log}");
}

/// TR-15: an error may quote what stands in sensitive fields.
#[tokio::test(start_paused = true)]
async fn tr_15_of_tools_with_sensitive_fields_only_codes_are_shown() {
    use tool_reliability::config::{Config, Live};
    let config = r#"{"tools": {
        "visa": {"effect": "mutating", "sensitive": ["passport"]},
        "pay": {"effect": "mutating"}
    }}"#;
    let live = Live::new(Config::from_json(config).unwrap(), |builder| builder).unwrap();
    for (tool, says) in [("visa", "no visa for X17"), ("pay", "no money in K4")] {
        let failing = around(live.stack(), Step::err(format!("{says}: connection reset")));
        let call = live.catalog().manifested(call(tool, tool));
        failing.oneshot(call).await.unwrap_err();
    }
    for (tool, says) in [("visa", "no visa for X17"), ("pay", "no money in K4")] {
        let failing = around(live.stack(), Step::err(format!("{says}: connection reset")));
        let to = Params::from(
            json!({ "url": "https://bank.example/", "passport": "https://x17.example/" }),
        );
        let call = live.catalog().manifested(ToolCall::new(tool, to));
        failing.oneshot(call).await.unwrap_err();
    }
    let blind = state(&Admin::new(live.stack())).await.to_string();
    let seen = state(&Admin::live(&live)).await;
    let all = seen.to_string();
    assert!(blind.contains("X17") && blind.contains("K4"), "{blind}");
    assert!(!all.contains("X17") && all.contains("K4"), "{all}");
    let last = |name: &str| {
        let breakers = seen["breakers"].as_array().unwrap();
        breakers.iter().find(|it| it["name"] == name).unwrap()["lastFailure"].clone()
    };
    assert!(last("pay").as_str().unwrap().contains("K4"));
    assert_eq!(last("visa https://bank.example"), last("visa"));
    assert!(!all.contains("x17"), "{all}");
    let visa = seen["unknown"].as_array().unwrap().iter().find(|it| it["tool"] == "visa");
    assert_eq!(visa.unwrap()["error"]["message"], "connection_reset");
}
