//! Which calls the stack guards, and what it says of those that it only watches.
use crate::common::{Notes, around, down, search as call};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{Instant, timeout};
use tool_reliability::{
    Mode, Rollout, Share, Stage, ToolStack, adapter::ToolFailed, idempotency::RecordState,
};
use tower::ServiceExt;
use tr_core::{
    BoxError, BreakerState, CallInfo, Effect, Event, KeyRef, Observer, Params, Ran, ToolCall,
    ToolOutcome, Verdict, find,
};
use tr_testkit::{
    calls::{answers, fails, laws, reports},
    tool::Step,
};

#[derive(Clone, Debug, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Observer for Heard {
    fn on_event(&self, _: &CallInfo<'_>, event: &Event<'_>) {
        let said = match event {
            Event::Retry { reason, .. } => format!("retry {reason}"),
            Event::Breaker { to, .. } => format!("breaker {}", to.as_str()),
            Event::BreakerRefused { .. } => "breaker refused".into(),
            Event::Replayed { state, .. } => format!("replayed {state}"),
            Event::KeyConflict => "conflict".into(),
            Event::TimedOut { after, .. } => format!("timed out after {after:?}"),
            Event::Loop { rule, blocked: true, .. } => format!("loop {rule}"),
            _ => return,
        };
        self.0.lock().unwrap().push(said);
    }
}

struct Bench {
    stack: ToolStack,
    /// What was decided, and not done.
    decided: Heard,
    /// What was done.
    done: Heard,
}

fn bench(rollout: Rollout) -> Bench {
    let (decided, done) = (Heard::default(), Heard::default());
    let stack = ToolStack::builder()
        .rollout(rollout)
        .shadow_observer(Arc::new(decided.clone()))
        .observer(Arc::new(done.clone()))
        .build()
        .unwrap();
    Bench { stack, decided, done }
}

fn of_sessions(percent: f64) -> Rollout {
    let share = Share::percent(percent).unwrap();
    Rollout::new(Stage::part(Mode::Enforce, share, Mode::Off))
}

/// The sessions whose calls are retried.
async fn guarded(stack: &ToolStack) -> BTreeSet<usize> {
    let mut guarded = BTreeSet::new();
    for session in 0..1_000 {
        let (tool, handle) = around(stack, [down(), answers("ok")]);
        // A turn for each, and one tool: what matters is the session.
        let _ = tool.oneshot(call(&format!("session-{session}"))).await;
        match handle.calls() {
            1 => assert!(!guarded.contains(&session)),
            2 => assert!(guarded.insert(session)),
            other => panic!("{other} attempts"),
        }
    }
    guarded
}

#[tokio::test(start_paused = true)]
async fn ut_10_a_percentage_of_sessions_is_guarded_stable_and_nested() {
    // Half of all calls fail, which is not what is looked at here.
    let build = |percent| {
        let stack = ToolStack::builder()
            .breaker(|breaker| breaker.mode(tool_reliability::breaker::Mode::Disabled))
            .rollout(of_sessions(percent));
        stack.build().unwrap()
    };
    let (tenth, fifth) = (build(10.0), build(20.0));
    let of_tenth = guarded(&tenth).await;
    let of_fifth = guarded(&fifth).await;
    // As many as a fair draw gives, and always the same.
    assert!((70..130).contains(&of_tenth.len()), "{}", of_tenth.len());
    assert!((150..250).contains(&of_fifth.len()), "{}", of_fifth.len());
    assert!(of_tenth.is_subset(&of_fifth));
    assert_eq!(guarded(&build(10.0)).await, of_tenth);

    // The share grows while the stack runs.
    tenth.kill_switch().set_rollout(of_sessions(20.0));
    assert_eq!(guarded(&tenth).await, of_fifth);
    tenth.kill_switch().set_rollout(of_sessions(0.0));
    assert!(guarded(&tenth).await.is_empty());
    tenth.kill_switch().set_rollout(of_sessions(100.0));
    assert_eq!(guarded(&tenth).await.len(), 1_000);
}

#[tokio::test(start_paused = true)]
async fn ut_10_a_call_without_a_session_waits_for_the_last_percent() {
    for (percent, attempts) in [(99.9, 1), (100.0, 2)] {
        let stack = ToolStack::builder().rollout(of_sessions(percent)).build().unwrap();
        let (tool, handle) = around(&stack, [down(), answers("ok")]);
        let nobody = ToolCall::new("search", Params::empty_object()).effect(Effect::ReadOnly);
        let _ = tool.oneshot(nobody).await;
        assert_eq!(handle.calls(), attempts);
    }
}

#[tokio::test(start_paused = true)]
async fn in_shadow_a_retry_is_told_and_not_made() {
    let Bench { stack, decided, done } = bench(Rollout::new(Mode::Shadow));
    let (tool, handle) = around(&stack, [down()]);
    let (call, started) = (call("s").idempotency_key("k"), Instant::now());
    let error = tool.oneshot(call.clone()).await.unwrap_err();
    // The tool's own error, at once, after its own params.
    assert_eq!(error.to_string(), "http_503: the tool did not run");
    assert!(find::<ToolFailed>(&*error).is_none());
    assert_eq!((handle.calls(), started.elapsed()), (1, Duration::ZERO));
    assert!(handle.requests()[0].parts().params.ptr_eq(&call.parts().params));
    assert_eq!((decided.take(), done.take()), (vec!["retry http_503".to_owned()], vec![]));
}

#[tokio::test(start_paused = true)]
async fn in_shadow_a_repeat_runs_and_is_told_as_a_replay() {
    let Bench { stack, decided, .. } = bench(Rollout::new(Mode::Shadow));
    let (tool, handle) = around(&stack, [answers("1"), answers("2")]);
    let pay = |params| {
        ToolCall::new("pay", Params::from_text(params).unwrap()).session("s").idempotency_key("k")
    };
    let text = |outcome: ToolOutcome| outcome.content().unwrap().get().to_owned();
    assert_eq!(text(tool.clone().oneshot(pay("{}")).await.unwrap()), r#""1""#);
    let again = tool.clone().oneshot(pay("{}")).await.unwrap();
    assert!(!again.from_cache());
    assert_eq!((text(again), handle.calls()), (r#""2""#.to_owned(), 2));
    assert_eq!(decided.take(), ["replayed done"]);
    tool.clone().oneshot(pay(r#"{"other": 1}"#)).await.unwrap();
    assert_eq!(decided.take(), ["conflict"]);

    // What was seen is known when the call is guarded.
    stack.kill_switch().set_rollout(Rollout::new(Mode::Enforce));
    let replay = tool.oneshot(pay("{}")).await.unwrap();
    assert!(replay.from_cache());
    assert_eq!((text(replay), handle.calls()), (r#""1""#.to_owned(), 3));
}

#[tokio::test(start_paused = true)]
async fn in_shadow_an_open_breaker_refuses_nobody() {
    let Bench { stack, decided, done } = bench(Rollout::new(Mode::Shadow));
    let (tool, handle) = around(&stack, [fails("reset", Verdict::TRANSIENT, Ran::Unknown)]);
    for turn in 0..6 {
        let call = call("s").effect(Effect::Mutating).turn(turn.to_string());
        tool.clone().oneshot(call).await.unwrap_err();
    }
    assert_eq!(handle.calls(), 6);
    let breaker = stack.breakers().get(KeyRef::new("search")).unwrap();
    assert_eq!((breaker.state(), breaker.counts().consecutive_failures), (BreakerState::Open, 5));
    // The breaker is open for all, enforced calls too: that is no mere thought.
    assert_eq!(
        (decided.take(), done.take()),
        (vec!["breaker refused".into()], vec!["breaker OPEN".into()])
    );
}

#[tokio::test(start_paused = true)]
async fn in_shadow_a_loop_goes_on_and_is_told() {
    let Bench { stack, decided, .. } = bench(Rollout::new(Mode::Shadow));
    let (tool, handle) = around(&stack, [reports("bad", "Missing required parameter: path")]);
    for _ in 0..3 {
        let outcome = tool.clone().oneshot(call("s").turn("t")).await.unwrap();
        // No note for the model, no code of ours.
        let error = outcome.error().unwrap();
        assert_eq!((&*error.code, error.verdict, outcome.parts().notes.len()), ("bad", None, 0));
    }
    assert_eq!((handle.calls(), decided.take()), (3, vec!["loop identical".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn in_shadow_time_runs_out_for_nobody() {
    let Bench { stack, decided, .. } = bench(Rollout::new(Mode::Shadow));
    let slowly = Step::After(Duration::from_secs(12), Box::new(answers("late")));
    let (tool, handle) = around(&stack, [slowly]);
    let started = Instant::now();
    let outcome = tool.oneshot(call("s").effect(Effect::Mutating)).await.unwrap();
    assert!(outcome.error().is_none());
    assert_eq!((handle.calls(), started.elapsed()), (1, Duration::from_secs(12)));
    assert_eq!(decided.take(), ["timed out after 10s"]);
}

#[tokio::test(start_paused = true)]
async fn in_shadow_a_call_whose_caller_vanishes_is_recorded_as_one_that_may_have_run() {
    let Bench { stack, .. } = bench(Rollout::new(Mode::Shadow));
    let (tool, handle) = around(&stack, [Step::Hang]);
    let pay = ToolCall::new("pay", Params::empty_object()).session("s").idempotency_key("k");
    assert!(timeout(Duration::from_secs(1), tool.oneshot(pay)).await.is_err());
    tokio::task::yield_now().await;
    assert_eq!(handle.calls(), 1);
    let states: Vec<_> = stack.records().records().into_iter().map(|it| it.state).collect();
    assert_eq!(states, [RecordState::Unknown]);
}

#[tokio::test(start_paused = true)]
async fn hooks_fire_once_in_every_mode() {
    for mode in [Mode::Off, Mode::Observe, Mode::Shadow, Mode::Enforce] {
        let notes = Notes::giving("from the hook");
        let stack = ToolStack::builder().rollout(Rollout::new(mode)).hook(notes.clone());
        let stack = stack.build().unwrap();
        let (tool, handle) = around(&stack, [answers("ok")]);
        tool.oneshot(call("s")).await.unwrap();
        assert_eq!(notes.take(), ["prepare", "before", "after"], "{mode:?}");
        let key = handle.requests()[0].parts().idempotency.key.clone();
        assert_eq!(key.as_deref(), Some("from the hook"));
        // What is watched has the hook's key, too.
        let is_recorded = matches!(mode, Mode::Shadow | Mode::Enforce);
        assert_eq!(stack.records().records().len(), usize::from(is_recorded), "{mode:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn tools_and_effects_have_modes_of_their_own() {
    let rollout = Rollout::new(Mode::Off)
        .effect(Effect::Idempotent, Mode::Enforce)
        .tool("search", Mode::Shadow);
    let Bench { stack, decided, .. } = bench(rollout);
    for (name, attempts, told) in [("search", 1, 1), ("read", 4, 0)] {
        let (tool, handle) = around(&stack, [down()]);
        let call = ToolCall::new(name, Params::empty_object()).effect(Effect::Idempotent);
        tool.clone().oneshot(call.clone()).await.unwrap_err();
        assert_eq!((handle.calls(), decided.take().len()), (attempts, told), "{name}");
        // A tool's own mode is stronger than its effect's.
        tool.oneshot(call.effect(Effect::Mutating)).await.unwrap_err();
        assert_eq!((handle.calls(), decided.take().len()), (attempts + 1, told), "{name}");
    }
}

#[test]
fn the_laws_of_services_hold_in_every_mode() {
    let stack = |rollout| ToolStack::builder().rollout(rollout).build().unwrap();
    // The calls of the laws read, and have keys: what has begun outlives its caller, and in shadow
    // what stands beside it does.
    let differs = |of_all, of_reads| Rollout::new(of_all).effect(Effect::ReadOnly, of_reads);
    laws().check(|tool| stack(Rollout::new(Mode::Off)).service(tool));
    laws().check(|tool| stack(Rollout::new(Mode::Observe)).service(tool));
    laws().check(|tool| stack(differs(Mode::Enforce, Mode::Off)).service(tool));
    laws().check(|tool| stack(differs(Mode::Enforce, Mode::Observe)).service(tool));
    laws().detaches().check(|tool| stack(Rollout::new(Mode::Shadow)).service(tool));
    laws().detaches().check(|tool| stack(differs(Mode::Off, Mode::Shadow)).service(tool));
    laws().detaches().check(|tool| stack(differs(Mode::Off, Mode::Enforce)).service(tool));
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_tells_calls_apart_holds_no_reservation_of_the_tool() {
    use tower::{Layer, Service, limit::GlobalConcurrencyLimitLayer, service_fn};
    let rollout = Rollout::new(Mode::Enforce)
        .tool("bare", Mode::Off)
        .tool("watched", Mode::Observe)
        .tool("seen", Mode::Shadow);
    let stack = ToolStack::builder().rollout(rollout).build().unwrap();
    let tool = service_fn(async |_: ToolCall| Ok::<_, BoxError>(ToolOutcome::default()));
    let one = GlobalConcurrencyLimitLayer::new(1).layer(tool);
    let mut guarded = stack.service(one);
    for name in ["bare", "watched", "seen", "other", "watched", "other", "seen", "bare"] {
        let call = ToolCall::new(name, Params::empty_object());
        let answered = async { guarded.ready().await.unwrap().call(call).await };
        let answered = timeout(Duration::from_secs(60), answered).await;
        assert!(answered.expect("nobody holds the one place").is_ok(), "{name}");
    }
}
