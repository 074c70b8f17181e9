//! What `[telemetry]` changes in a stack. Where metrics go, and the key of hashes, are `tool-guard`'s.
use crate::metered::Metered;
use std::collections::BTreeSet;
use tool_reliability::{
    ToolStack,
    config::{self, Config},
    telemetry::JsonLines,
};
use tower::{ServiceExt, service_fn};
use tr_core::{BoxError, Params, ToolCall, ToolOutcome};
use tr_testkit::logs::Logs;
use tracing_subscriber::{prelude::*, registry};

/// What is logged of one call by a stack that only a configuration sets up.
async fn logged(telemetry: &str) -> String {
    let config = Config::from_json(&format!(r#"{{"telemetry": {telemetry}}}"#)).unwrap();
    let (logs, _listening) = Logs::listen(|logs| registry().with(JsonLines::new(logs)));
    let stack = ToolStack::builder().config(&config).build().unwrap();
    let tool =
        service_fn(async |_: ToolCall| Err::<ToolOutcome, BoxError>("birth_date=1999".into()));
    let params = Params::from_text(r#"{"from": "LIS", "note": "private"}"#).unwrap();
    stack.service(tool).oneshot(ToolCall::new("flight_search", params)).await.unwrap_err();
    logs.text()
}

/// The names of the metrics of calls to two tools, and the labels of these tools.
async fn counted(telemetry: &str) -> (BTreeSet<String>, bool) {
    let config = Config::from_json(&format!(r#"{{"telemetry": {telemetry}}}"#)).unwrap();
    let metered = Metered::new();
    let signals = config::telemetry(&config.telemetry).meter(metered.meter()).build().unwrap();
    let stack = ToolStack::builder().telemetry(signals).config(&config).build().unwrap();
    for tool in ["a", "b"] {
        let ok = service_fn(async |_: ToolCall| Ok::<_, BoxError>(ToolOutcome::default()));
        let call = ToolCall::new(tool, Params::empty_object());
        stack.service(ok).oneshot(call).await.unwrap();
    }
    let series = metered.read();
    let name = |series: &String| series.split(['_', '.']).next().unwrap().to_owned();
    (series.keys().map(name).collect(), series.keys().any(|it| it.contains("tool=_other")))
}

#[tokio::test(start_paused = true)]
async fn each_key_of_telemetry_acts() {
    let plain = logged("{}").await;
    assert!(plain.contains(r#""params":null"#) && plain.contains("birth_date=1999"), "{plain}");
    let shape = logged(r#"{"params_shape": true}"#).await;
    assert!(shape.contains("from:string(3) note:string(7)"), "{shape}");
    let shown = logged(r#"{"show_params": {"flight_search": ["from"]}}"#).await;
    assert!(shown.contains(r#"from:\"LIS\" note:string(7)"#), "{shown}");
    let others = logged(r#"{"show_params": {"other": ["from"]}}"#).await;
    assert!(others.contains(r#""params":null"#), "{others}");
    let hidden = logged(r#"{"hide": ["birth_date"]}"#).await;
    assert!(!hidden.contains("1999"), "{hidden}");

    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(counted("{}").await, (names(&["openclaw"]), false));
    let utee = counted(r#"{"names": ["utee", "gen_ai"]}"#).await;
    assert_eq!(utee, (names(&["gen", "tool"]), false));
    let few = counted(r#"{"max_unknown_tools": 1}"#).await;
    assert_eq!(few, (names(&["openclaw"]), true));
}
