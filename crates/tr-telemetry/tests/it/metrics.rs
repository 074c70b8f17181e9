//! The metrics, name by name and label by label.
use crate::common::{call, tell, telling};
use crate::metered::Metered;
use serde_json::json;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tower::{Service, ServiceExt, layer::Layer};
use tr_core::{
    BoxError, CallInfo, DedupeScope, Effect, Event, FailureInfo, MatchedOn, Params, Ran,
    SessionAction, ToolCall, ToolId, ToolOutcome, Verdict,
};
use tr_telemetry::{CacheReadings, Names, RecordCount, Refresh, Signals, TelemetryLayer};

fn ok() -> Result<ToolOutcome, BoxError> {
    Ok(ToolOutcome::success(json!("booked")))
}

fn signals(metered: &Metered, names: impl IntoIterator<Item = Names>) -> Signals {
    Signals::builder().meter(metered.meter()).names(names).build().unwrap()
}

fn table<const N: usize>(rows: [(&str, f64); N]) -> BTreeMap<String, f64> {
    rows.into_iter().map(|(series, value)| (series.to_owned(), value)).collect()
}

#[tokio::test(start_paused = true)]
async fn each_end_of_a_call_has_its_status() {
    let metered = Metered::new();
    let signals = signals(&metered, [Names::OpenClaw]);
    let (transient, permanent) = (Verdict::TRANSIENT, Verdict::Permanent);
    for (code, verdict) in [
        ("timeout", transient),
        ("circuit_open", transient),
        ("retry_exhausted", transient),
        ("http_unavailable", transient),
        ("http_client_error", permanent),
        ("idempotency_conflict", permanent),
    ] {
        let tool = tower::service_fn(move |_| async move {
            Err::<ToolOutcome, BoxError>(FailureInfo::new(code, Ran::No, verdict).into())
        });
        TelemetryLayer::call(&signals).layer(tool).oneshot(call("pay")).await.unwrap_err();
    }
    let mut tool = TelemetryLayer::call(&signals).layer(tower::service_fn(async |_| ok()));
    tool.ready().await.unwrap().call(call("pay")).await.unwrap();
    let mut global = call("pay").effect(Effect::ReadOnly);
    global.parts_mut().idempotency.scope = DedupeScope::Global;
    tool.ready().await.unwrap().call(global).await.unwrap();

    let calls = |status: &str, scope: &str| {
        format!("openclaw_tool_calls{{scope={scope},status={status},tool=pay}}")
    };
    let times =
        |status: &str| format!("openclaw_tool_call_duration_ms{{status={status},tool=pay}}");
    let wanted: BTreeMap<String, f64> = [
        (calls("success", "session"), 1.0),
        (calls("success", "global"), 1.0),
        (calls("timeout", "session"), 1.0),
        (calls("circuit_open", "session"), 1.0),
        (calls("retry_exhausted", "session"), 1.0),
        (calls("retriable_error", "session"), 1.0),
        (calls("error", "session"), 2.0),
        (times("success"), 2.0),
        (times("timeout"), 1.0),
        (times("circuit_open"), 1.0),
        (times("retry_exhausted"), 1.0),
        (times("retriable_error"), 1.0),
        (times("error"), 2.0),
        ("openclaw_tool_info{effect=mutating,tool=pay}".into(), 1.0),
        ("openclaw_tool_info{effect=read_only,tool=pay}".into(), 1.0),
    ]
    .into();
    assert_eq!(metered.read(), wanted);
}

#[tokio::test(start_paused = true)]
async fn layers_are_counted_by_what_they_tell() {
    let metered = Metered::new();
    let signals = signals(&metered, [Names::OpenClaw]);
    let told = |observer: &dyn tr_core::Observer, call: &CallInfo<'_>| {
        let (delay, latency) = (Duration::ZERO, Duration::ZERO);
        for reason in ["timeout", "timeout", "http_503", "http_999", "E_TOOLS_OWN_1"] {
            tell(
                observer,
                call,
                Event::Retry { attempt: 0, delay, retry_after: None, reason, latency },
            );
        }
        for state in ["done", "failed", "inflight"] {
            tell(observer, call, Event::Replayed { matched: MatchedOn::Completed, state });
        }
        tell(observer, call, Event::KeyConflict);
    };
    let tool = telling(signals.observer(), told, ok);
    TelemetryLayer::call(&signals).layer(tool).oneshot(call("pay")).await.unwrap();
    let wanted = table([
        ("openclaw_tool_calls{scope=session,status=success,tool=pay}", 1.0),
        ("openclaw_tool_call_duration_ms{status=success,tool=pay}", 1.0),
        ("openclaw_tool_retry_attempts{reason=timeout,tool=pay}", 2.0),
        ("openclaw_tool_retry_attempts{reason=service_unavailable,tool=pay}", 1.0),
        ("openclaw_tool_retry_attempts{reason=unclassified,tool=pay}", 1.0),
        ("openclaw_tool_retry_attempts{reason=_other,tool=pay}", 1.0),
        ("openclaw_tool_idempotency_hits{state=done,tool=pay}", 1.0),
        ("openclaw_tool_idempotency_hits{state=failed,tool=pay}", 1.0),
        ("openclaw_tool_idempotency_hits{state=inflight,tool=pay}", 1.0),
        ("openclaw_tool_idempotency_hits{state=conflict,tool=pay}", 1.0),
        ("openclaw_tool_info{effect=mutating,tool=pay}", 1.0),
    ]);
    assert_eq!(metered.read(), wanted);
}

#[tokio::test(start_paused = true)]
async fn other_sets_have_other_names_for_the_same() {
    let metered = Metered::new();
    let signals = signals(&metered, [Names::Utee, Names::GenAi]);
    let told = |observer: &dyn tr_core::Observer, call: &CallInfo<'_>| {
        let (delay, latency) = (Duration::ZERO, Duration::ZERO);
        tell(
            observer,
            call,
            Event::Retry { attempt: 0, delay, retry_after: None, reason: "timeout", latency },
        );
    };
    let failed = || Err(FailureInfo::new("timeout", Ran::Unknown, Verdict::TRANSIENT).into());
    for end in [ok, failed] {
        let tool = telling(signals.observer(), told, end);
        let tool = TelemetryLayer::call(&signals).layer(tool);
        let send = ToolId::from_parts(Some("agents.tools"), "message", Some("send"));
        let _ = tool.oneshot(ToolCall::new(send, Params::empty_object())).await;
    }
    let wanted = table([
        ("tool.invocation.count{action=send,status=success,tool=agents.tools/message}", 1.0),
        ("tool.invocation.count{action=send,status=timeout,tool=agents.tools/message}", 1.0),
        ("tool.invocation.duration{action=send,tool=agents.tools/message}", 2.0),
        ("tool.retry.count{error_code=timeout,tool=agents.tools/message}", 2.0),
        ("tool.error.count{error_code=timeout,tool=agents.tools/message}", 1.0),
        (
            "gen_ai.execute_tool.duration{gen_ai.operation.name=execute_tool,gen_ai.tool.name=agents.tools/message.send}",
            1.0,
        ),
        (
            "gen_ai.execute_tool.duration{error.type=timeout,gen_ai.operation.name=execute_tool,gen_ai.tool.name=agents.tools/message.send}",
            1.0,
        ),
    ]);
    assert_eq!(metered.read(), wanted);
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_unknown_tools_share_one_label_past_the_bound() {
    let metered = Metered::new();
    let signals = Signals::builder().meter(metered.meter()).tools(["pay"]).build().unwrap();
    let observer = signals.observer();
    let mut tool = TelemetryLayer::call(&signals).layer(tower::service_fn(async |_| ok()));
    for n in 0..10_000 {
        let name = format!("tool-{n}");
        tool.ready().await.unwrap().call(call(&name)).await.unwrap();
        let (delay, latency) = (Duration::ZERO, Duration::ZERO);
        let info = CallInfo::of(&name);
        observer.on_event(
            &info,
            &Event::Retry { attempt: 0, delay, retry_after: None, reason: &name, latency },
        );
    }
    tool.ready().await.unwrap().call(call("pay")).await.unwrap();

    let metrics = metered.read();
    let calls = |tool: &str| {
        metrics[&format!("openclaw_tool_calls{{scope=session,status=success,tool={tool}}}")]
    };
    assert_eq!((calls("tool-0"), calls("tool-99"), calls("_other")), (1.0, 1.0, 9_900.0));
    assert_eq!(calls("pay"), 1.0, "a tool that was named has its own label, however late it comes");
    let retries =
        |tool: &str| metrics[&format!("openclaw_tool_retry_attempts{{reason=_other,tool={tool}}}")];
    assert_eq!((retries("tool-0"), retries("_other")), (1.0, 9_900.0));
    assert_eq!(
        metrics.len(),
        4 * 101 + 3,
        "four kinds of series, and no retry of pay: {:?}",
        metrics.keys()
    );
}

#[tokio::test(start_paused = true)]
async fn long_names_are_cut_and_share_series_where_they_read_the_same() {
    let metered = Metered::new();
    let signals = signals(&metered, [Names::OpenClaw, Names::Utee, Names::GenAi]);
    let mut tool = TelemetryLayer::call(&signals).layer(tower::service_fn(async |_| ok()));
    let names = |len| ["a", "b"].map(|end| "t".repeat(len) + end);
    for name in names(300).iter().chain(&names(300)).chain(&names(1_000_000)) {
        let id = ToolId::from_parts(Some("tools"), "read", Some(name));
        tool.ready().await.unwrap().call(ToolCall::new(id, Params::empty_object())).await.unwrap();
        tool.ready().await.unwrap().call(call(name)).await.unwrap();
        let (delay, latency) = (Duration::ZERO, Duration::ZERO);
        let event = Event::Retry { attempt: 0, delay, retry_after: None, reason: name, latency };
        signals.observer().on_event(&CallInfo::of(name), &event);
    }
    let metrics = metered.read();
    let longest = metrics.keys().max_by_key(|series| series.len()).unwrap();
    assert!(longest.len() < 400, "{longest}");
    let calls = |tool: &str| {
        metrics[&format!("openclaw_tool_calls{{scope=session,status=success,tool={tool}}}")]
    };
    let read = format!("tools/read.{}…", "t".repeat(114));
    assert_eq!((calls(&format!("{}…", "t".repeat(125))), calls(&read)), (4.0, 4.0));
    // What of such a word may be a secret nobody can tell.
    assert_eq!(calls("_other"), 4.0);
}

#[tokio::test(start_paused = true)]
async fn tools_of_different_namespaces_have_series_of_their_own() {
    let metered = Metered::new();
    let signals = Signals::builder().meter(metered.meter()).max_unknown_tools(2).build().unwrap();
    let mut tool = TelemetryLayer::call(&signals).layer(tower::service_fn(async |_| ok()));
    for n in 0..50 {
        let id = ToolId::from_parts(Some(&format!("ns-{n}")), "read", None);
        tool.ready().await.unwrap().call(ToolCall::new(id, Params::empty_object())).await.unwrap();
    }
    let metrics = metered.read();
    let calls = |tool: &str| {
        metrics[&*format!("openclaw_tool_calls{{scope=session,status=success,tool={tool}}}")]
    };
    assert_eq!((calls("ns-0/read"), calls("ns-1/read"), calls("_other")), (1.0, 1.0, 48.0));
}

#[test]
fn the_cache_is_read_when_somebody_looks() {
    struct Store;
    impl CacheReadings for Store {
        fn read(&self, report: &mut dyn FnMut(RecordCount<'_>)) {
            let of = |tool| RecordCount { tool, ..count(10, "done", 86_400) };
            report(of("pay"));
            ["a", "b", "c"]
                .into_iter()
                .for_each(|tool| report(RecordCount { ttl: Duration::ZERO, ..of(tool) }));
            report(RecordCount {
                scope: DedupeScope::Global,
                stale: 1,
                ..count(3, "inflight", 120)
            });
        }
    }
    let metered = Metered::new();
    let signals = Signals::builder().meter(metered.meter()).tools(["pay"]);
    let signals = signals.max_unknown_tools(1).build().unwrap();
    signals.observe_cache(Store);
    let wanted = table([
        ("openclaw_tool_dedupe_cache_size{scope=session,tool=pay}", 10.0),
        ("openclaw_tool_dedupe_cache_size{scope=global,tool=pay}", 3.0),
        ("openclaw_tool_dedupe_cache_size{scope=session,tool=a}", 10.0),
        ("openclaw_tool_dedupe_cache_size{scope=session,tool=_other}", 20.0),
        ("openclaw_tool_dedupe_records{state=done,tool=pay}", 10.0),
        ("openclaw_tool_dedupe_records{state=done,tool=a}", 10.0),
        ("openclaw_tool_dedupe_records{state=done,tool=_other}", 20.0),
        ("openclaw_tool_dedupe_records{state=inflight,tool=pay}", 3.0),
        ("openclaw_tool_dedupe_inflight_records{stale=true,tool=pay}", 1.0),
        ("openclaw_tool_dedupe_inflight_records{stale=false,tool=pay}", 2.0),
        ("openclaw_tool_dedupe_ttl_seconds{state=done,tool=pay}", 86_400.0),
        ("openclaw_tool_dedupe_ttl_seconds{state=done,tool=a}", 0.0),
        ("openclaw_tool_dedupe_ttl_seconds{state=done,tool=_other}", 0.0),
        ("openclaw_tool_dedupe_ttl_seconds{state=inflight,tool=pay}", 120.0),
    ]);
    assert_eq!(metered.read(), wanted);
}

/// So many records of the tool `pay`, kept for so many seconds.
fn count(records: u64, state: &'static str, ttl: u64) -> RecordCount<'static> {
    let (scope, ttl) = (DedupeScope::Session, Duration::from_secs(ttl));
    RecordCount { tool: "pay", scope, state, records, stale: 0, ttl }
}

#[tokio::test]
async fn a_store_elsewhere_is_read_again_when_that_is_asked_for() {
    struct Store(Arc<AtomicU64>);
    impl CacheReadings for Store {
        fn read(&self, report: &mut dyn FnMut(RecordCount<'_>)) {
            report(count(self.0.load(Relaxed), "done", 1));
        }

        fn refresh(&self) -> Option<Refresh<'_>> {
            Some(Box::pin(async { _ = self.0.fetch_add(1, Relaxed) }))
        }
    }
    let metered = Metered::new();
    let signals = Signals::builder().meter(metered.meter()).build().unwrap();
    signals.observe_cache(Store(Arc::default()));
    let size = || metered.read()["openclaw_tool_dedupe_cache_size{scope=session,tool=pay}"];
    assert_eq!(size(), 0.0);
    signals.refresh().await;
    assert_eq!(size(), 1.0);
}

#[test]
fn the_caches_of_several_stacks_add_up() {
    struct Store(u64);
    impl CacheReadings for Store {
        fn read(&self, report: &mut dyn FnMut(RecordCount<'_>)) {
            report(count(self.0, "done", self.0));
        }
    }
    let metered = Metered::new();
    let signals = Signals::builder().meter(metered.meter()).build().unwrap();
    signals.observe_cache(Store(7));
    signals.observe_cache(Store(5));
    let wanted = table([
        ("openclaw_tool_dedupe_cache_size{scope=session,tool=pay}", 12.0),
        ("openclaw_tool_dedupe_records{state=done,tool=pay}", 12.0),
        ("openclaw_tool_dedupe_ttl_seconds{state=done,tool=pay}", 7.0),
    ]);
    assert_eq!(metered.read(), wanted);
}

#[test]
fn what_befalls_a_session_is_a_line_and_a_count() {
    let (lines, _listening) = crate::lines::Lines::listen();
    let metered = Metered::new();
    let signals = signals(&metered, [Names::OpenClaw]);
    let observer = signals.observer();
    let mut call = CallInfo::of("model");
    call.session = Some("s-1");
    let actions = [
        SessionAction::Blocked,
        SessionAction::Repaired,
        SessionAction::RolledBack,
        SessionAction::Abandoned,
        SessionAction::NotRecorded,
        SessionAction::Blocked,
    ];
    for (removed, action) in (0..).zip(actions) {
        tell(&*observer, &call, Event::Session { action, removed });
    }
    let wanted = table([
        ("openclaw_tool_session_events{action=blocked}", 2.0),
        ("openclaw_tool_session_events{action=repaired}", 1.0),
        ("openclaw_tool_session_events{action=rolled_back}", 1.0),
        ("openclaw_tool_session_events{action=abandoned}", 1.0),
        ("openclaw_tool_session_events{action=not_recorded}", 1.0),
    ]);
    assert_eq!(metered.read(), wanted);
    let events = lines.events();
    assert_eq!(events.len(), actions.len());
    for (n, (event, action)) in events.iter().zip(actions).enumerate() {
        let action = json!(action.as_str());
        assert_eq!((&event["event"], &event["action"]), (&json!("tool_session"), &action));
        assert_eq!((&event["sessionKey"], &event["removedMessages"]), (&json!("s-1"), &json!(n)));
        assert_eq!(event["level"], "warn");
    }
}

#[test]
fn all_faults_are_named_at_once() {
    let error =
        Signals::builder().max_unknown_tools(1_001).names([]).tools([""]).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid telemetry configuration: `max_unknown_tools` is 1001, must be 0 to 1000; `names` is \
         empty, must have at least one set; `tools` has an empty name"
    );
}
