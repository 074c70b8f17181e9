//! Reads a sequence, and plays it to a guard in virtual time.
use serde_json::{Map, Value};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::{advance, sleep};
use tower::{Layer, ServiceExt, service_fn};
use tr_core::{BoxError, Effect, Json, ToolCall, ToolError, ToolManifest, ToolOutcome};
use tr_loopguard::Builder;

/// A sequence of calls, written out.
#[derive(Debug)]
pub(crate) struct Sequence {
    pub(crate) name: String,
    pub(crate) is_loop: bool,
    pub(crate) calls: Vec<Call>,
}

/// A call and its result.
#[derive(Debug)]
pub(crate) struct Call {
    call: ToolCall,
    end: Arc<Planned>,
    after: Duration,
}

#[derive(Debug)]
struct Planned {
    outcome: ToolOutcome,
    took: Duration,
}

/// The first call that was warned of, and the first that was refused; counted from 1.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) calls: usize,
    pub(crate) warned: Option<usize>,
    pub(crate) refused: Option<usize>,
}

impl Sequence {
    pub(crate) fn read(lines: &str) -> Vec<Self> {
        lines.lines().map(|line| Self::of(&serde_json::from_str(line).unwrap())).collect()
    }

    fn of(line: &Value) -> Self {
        let mut calls = Vec::new();
        for call in line["calls"].as_array().unwrap() {
            unroll(call, &mut calls);
        }
        let turnless = line["turnless"] == true;
        let call = |value: &Value| Call::of(value, &line["tools"], turnless);
        Self {
            name: line["name"].as_str().unwrap().to_owned(),
            is_loop: line["loop"].as_bool().unwrap(),
            calls: calls.iter().map(call).collect(),
        }
    }
}

/// Writes repeats out.
fn unroll(value: &Value, calls: &mut Vec<Value>) {
    for n in 0..value["times"].as_u64().unwrap_or(1) {
        let mut one: Map<String, Value> = value.as_object().unwrap().clone();
        one.remove("times");
        let text = Value::Object(one).to_string().replace("{n}", &n.to_string());
        let one: Value = serde_json::from_str(&text).unwrap();
        match one["calls"].as_array() {
            Some(round) => round.iter().for_each(|call| unroll(call, calls)),
            None => calls.push(one),
        }
    }
}

impl Call {
    fn of(value: &Value, tools: &Value, turnless: bool) -> Self {
        let tool = value["tool"].as_str().unwrap();
        let outcome = match (value["ok"].as_str(), value["fails"].as_str()) {
            (Some(text), None) => ToolOutcome::success(Json::from(Value::from(text))),
            (None, Some(text)) => ToolOutcome::failure(ToolError::new("tool_error", text)),
            _ => panic!("a call ends either way: {value}"),
        };
        let seconds =
            |name: &str, or: f64| Duration::from_secs_f64(value[name].as_f64().unwrap_or(or));
        let end = Arc::new(Planned { outcome, took: seconds("took", 0.0) });
        let mut call = ToolCall::new(tool, Json::from(value["args"].clone())).session("s");
        if !turnless {
            call = call.turn(value["turn"].as_str().unwrap_or("t"));
        }
        if let Some(manifest) = manifest(tool, &tools[tool]) {
            call = call.manifested(Arc::new(manifest));
        }
        Self { call, end, after: seconds("after", 3.0) }
    }
}

fn manifest(tool: &str, declared: &Value) -> Option<ToolManifest> {
    let declared = declared.as_object()?;
    let mut manifest = ToolManifest::new(tool);
    for (name, value) in declared {
        match (&**name, value.as_str()) {
            ("effect", Some("read_only")) => manifest.effect = Some(Effect::ReadOnly),
            ("poll", None) => manifest.loops.poll = value.as_bool(),
            ("loop_key", None) => {
                let names = value.as_array().unwrap().iter();
                manifest.loops.loop_key = Some(names.map(|n| n.as_str().unwrap().into()).collect());
            }
            _ => panic!("{tool} declares {name}"),
        }
    }
    Some(manifest)
}

/// Plays all calls, whatever was refused before.
pub(crate) async fn replay(sequence: &Sequence, builder: Builder) -> Seen {
    let plans: Vec<_> = sequence.calls.iter().map(|call| call.end.clone()).collect();
    let next = Arc::new(AtomicUsize::new(0));
    let tool = {
        let next = next.clone();
        service_fn(move |_: ToolCall| {
            let plan = plans[next.load(Ordering::Relaxed)].clone();
            async move {
                sleep(plan.took).await;
                Ok::<_, BoxError>(plan.outcome.clone())
            }
        })
    };
    let guard = builder.build().unwrap().layer(tool);
    let mut seen = Seen { calls: sequence.calls.len(), warned: None, refused: None };
    for (n, call) in sequence.calls.iter().enumerate() {
        next.store(n, Ordering::Relaxed);
        advance(call.after).await;
        match guard.clone().oneshot(call.call.clone()).await {
            Ok(outcome) if outcome.parts().notes.is_empty() => {}
            Ok(_) => seen.warned = seen.warned.or(Some(n + 1)),
            Err(_) => seen.refused = seen.refused.or(Some(n + 1)),
        }
    }
    seen
}
