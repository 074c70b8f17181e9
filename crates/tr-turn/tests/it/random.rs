//! Random graphs of up to 1,000 calls over tools that do anything tools do, cancelled and dropped
//! at random points: a turn always ends, and leaks nothing.
use fastrand::Rng;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};
use tool_reliability::{ToolStack, cancel::CancelLayer};
use tower::{Layer, Service};
use tr_core::{BoxError, Effect, FailureInfo, Priority, Ran, ToolCall, ToolOutcome, Verdict};
use tr_testkit::{
    calls::ScriptedTool,
    rounds,
    tool::{Handle, Step},
};
use tr_turn::{Call, Canceller, Draft, Limits, Outcome, Plan, Recorder, Report, Tools, Turns};

const TIMEOUT: Duration = Duration::from_secs(60);

/// A graph whose calls need earlier ones, and take from some of their results.
fn draft(rng: &mut Rng, most: usize) -> Draft {
    let limits = Limits {
        timeout: TIMEOUT,
        concurrency: rng.usize(1..=40),
        call_timeout: rng.bool().then(|| Duration::from_secs(rng.u64(1..=90))),
        ..Limits::default()
    };
    let mut draft = Draft::new(format!("t{}", rng.u64(..))).limits(limits);
    for own in 0..rng.usize(1..=most) {
        let name = format!("c{own}");
        let mut call = Call::new(&*name).effect(rng.choice(EFFECTS).unwrap());
        let needs = if own == 0 { 0 } else { rng.usize(0..=own.min(3)) };
        let mut seen = Vec::new();
        let mut params = serde_json::Map::new();
        for _ in 0..needs {
            let need = format!("c{}", rng.usize(0..own));
            if seen.contains(&need) {
                continue;
            }
            if rng.bool() {
                params.insert(need.clone(), serde_json::json!({ "$from": need }));
            } else {
                call = call.after(&*need);
            }
            if rng.u8(0..4) == 0 {
                call = call.or_default(&*need, serde_json::json!("own default"));
            }
            seen.push(need);
        }
        if rng.u8(0..8) == 0 {
            call = call.default_value(serde_json::json!("default"));
        }
        for n in 0..rng.usize(0..3) {
            call = call.alternative(format!("{name}-{n}"));
        }
        if rng.bool() {
            call = call.required();
        }
        call = call.params(serde_json::Value::from(params));
        draft = draft.call(call.priority(rng.choice(PRIORITIES).unwrap()));
    }
    draft
}

const EFFECTS: [Effect; 3] = [Effect::ReadOnly, Effect::Idempotent, Effect::Mutating];
const PRIORITIES: [Priority; 3] = [Priority::Low, Priority::Normal, Priority::High];

/// What tools do, mostly well.
fn step(rng: &mut Rng) -> Step<ToolOutcome> {
    let ends = match rng.u8(0..20) {
        0 => Step::Hang,
        1 => Step::Panic,
        2 => Step::PanicInCall,
        3 => Step::err(BoxError::from("Invalid input")),
        4 => Step::err(FailureInfo::new("http_503", Ran::No, Verdict::TRANSIENT)),
        5 => Step::err(BoxError::from("read ECONNRESET")),
        _ => Step::Ok(ToolOutcome::success(serde_json::json!("result"))),
    };
    match rng.u8(0..3) {
        0 => ends,
        1 => Step::after(Duration::from_millis(rng.u64(0..3_000)), ends),
        _ => Step::after(Duration::from_millis(rng.u64(0..30_000)), ends),
    }
}

fn tool(seed: u64) -> (ScriptedTool, Handle<ToolCall>) {
    let rng = std::sync::Mutex::new(Rng::with_seed(seed));
    let tool = ScriptedTool::by(move |_, _: &ToolCall| step(&mut rng.lock().unwrap()));
    let handle = tool.handle();
    (tool, handle)
}

/// Withdraws some calls, or the turn, at random moments.
async fn meddle(mut rng: Rng, calls: usize, canceller: Canceller) {
    for _ in 0..rng.usize(0..4) {
        sleep(Duration::from_millis(rng.u64(0..40_000))).await;
        if rng.u8(0..4) == 0 {
            canceller.cancel_turn();
        } else {
            assert!(canceller.cancel(&format!("c{}", rng.usize(0..calls))));
        }
    }
    std::future::pending::<()>().await;
}

/// Runs a turn; `None` if it was dropped on its way.
async fn run<S>(rng: &mut Rng, turns: &Turns<S>, plan: &Plan) -> Option<Report>
where
    S: Service<ToolCall, Response = ToolOutcome> + Clone,
    S::Error: Into<BoxError>,
{
    let turn = turns.run(plan.clone());
    let meddler = meddle(rng.fork(), plan.calls().len(), turn.canceller());
    let dropped_at = Duration::from_millis(rng.u64(0..200_000));
    tokio::select! {
        biased;
        report = turn => Some(report),
        () = meddler => unreachable!("it waits for ever"),
        () = sleep(dropped_at) => None,
    }
}

fn check(plan: &Plan, draft: &str, report: &Report, attempts: &HashMap<String, usize>) {
    assert!(report.took <= TIMEOUT, "{draft}");
    assert_eq!(report.calls.len(), plan.calls().len());
    for call in &report.calls {
        let name = &*call.name;
        let tools = attempts.keys().filter(|tool| tool.split('-').next() == Some(name)).count();
        // What never reached a tool says so, and what did, too.
        if call.ran != Ran::No {
            assert!(tools > 0, "{name} ran without a tool: {draft}");
        }
        match call.outcome {
            Outcome::Success => assert!(call.content().is_some() && call.decision.is_none()),
            Outcome::Skipped => assert!(tools == 0 && call.ran == Ran::No, "{name}: {draft}"),
            _ => assert!(call.failure.is_some() && call.decision.is_some()),
        }
        assert!(call.started.is_none_or(|at| at <= call.ended) && call.ended <= report.took);
    }
}

fn count(handle: &Handle<ToolCall>) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for call in handle.requests() {
        *counts.entry(call.parts().tool.label().to_owned()).or_default() += 1;
    }
    counts
}

/// What was handed to a tool was there: each result that params take from is a result, or a
/// default that the plan has.
fn check_params(handle: &Handle<ToolCall>) {
    for call in handle.requests() {
        let params: HashMap<String, String> = call.parts().params.parse().unwrap();
        let known = ["result", "own default", "default"];
        assert!(params.values().all(|value| known.contains(&&**value)), "{params:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn turns_over_bare_tools_always_end() {
    for seed in 0..rounds(150, 20_000) {
        let mut rng = Rng::with_seed(seed);
        let most = if seed % 10 == 0 { 1_000 } else { 60 };
        let draft = draft(&mut rng, most);
        let plan = draft.check(&Tools::any()).unwrap();
        let (tool, handle) = tool(seed);
        let began = Instant::now();
        let report = run(&mut rng, &Turns::new(tool), &plan).await;
        assert!(began.elapsed() <= TIMEOUT, "seed {seed}");
        let counts = count(&handle);
        assert!(counts.values().all(|calls| *calls == 1), "seed {seed}: nothing runs twice");
        assert!(handle.max_in_flight() <= plan.limits().concurrency, "seed {seed}");
        let leaked = (handle.in_flight(), handle.reserved(), handle.waiting());
        assert_eq!(leaked, (0, 0, 0), "seed {seed}");
        assert_eq!(handle.breaches(), [], "seed {seed}");
        check_params(&handle);
        if let Some(report) = report {
            check(&plan, &format!("seed {seed}"), &report, &counts);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn turns_over_the_whole_stack_always_end() {
    for seed in 0..rounds(60, 5_000) {
        let mut rng = Rng::with_seed(seed);
        let draft = draft(&mut rng, 60);
        let plan = draft.check(&Tools::any()).unwrap();
        let (tool, handle) = tool(seed);
        let recorder = Recorder::default();
        let stack = ToolStack::builder()
            .hook(recorder.clone())
            .observer(Arc::new(recorder.clone()))
            .build()
            .unwrap();
        let turns = Turns::new(stack.service(CancelLayer.layer(tool)));
        let turns = turns.recorder(recorder.clone());
        let began = Instant::now();
        let report = run(&mut rng, &turns, &plan).await;
        assert!(began.elapsed() <= TIMEOUT, "seed {seed}");
        if let Some(report) = &report {
            check(&plan, &format!("seed {seed}"), report, &count(&handle));
        }
        // Runs of dropped calls go on for their records' sake, but not for ever.
        sleep(Duration::from_secs(3_600)).await;
        assert_eq!((handle.in_flight(), handle.reserved()), (0, 0), "seed {seed}");
        assert!(format!("{recorder:?}").contains("runs: 0"), "seed {seed}: {recorder:?}");
    }
}
