//! Timeouts of attempts, calls and turns.
use super::*;
use tr_core::{Ran, Verdict, code};
use tr_testkit::calls::fails;
use tr_turn::{CutShort, Fact, Limits, Outcome};

fn turn_of(secs: u64) -> Limits {
    Limits { timeout: seconds(secs), ..Limits::default() }
}

/// When each timeout was recorded, and after what.
fn timeouts(report: &Report) -> Vec<(Duration, Duration)> {
    let after = |entry: &tr_turn::Entry| match entry.fact {
        Fact::ToolTimeout { after } => Some((entry.at, after)),
        _ => None,
    };
    report.trace.entries().iter().filter_map(after).collect()
}

fn down() -> Step<ToolOutcome> {
    fails("connection_reset", Verdict::TRANSIENT, Ran::Unknown)
}

#[tokio::test(start_paused = true)]
async fn eh_4_1_the_tool_timeout_terminates_the_tool() {
    let bench = Bench::new([("flight_search", vec![Step::Hang, answers("late but there")])]);
    let report = bench.run(Draft::new("t").call(reads("flight_search"))).await;
    // Terminated at 30 s, at that moment, and retried.
    assert_eq!(bench.handle.ends()[0], seconds(30));
    let errors: Vec<_> = report
        .trace
        .entries()
        .iter()
        .filter_map(|entry| match &entry.fact {
            Fact::ToolError { error, verdict, ran, .. } => {
                Some((entry.at, &**error, *verdict, *ran))
            }
            _ => None,
        })
        .collect();
    let timeout = (seconds(30), "Tool timeout after 30s", Verdict::TRANSIENT, Ran::Unknown);
    assert_eq!(errors, [timeout]);
    assert_eq!(decisions(&report)[0].1, "Retry");
    assert_eq!((report.calls[0].outcome, report.calls[0].attempts), (Outcome::Success, 2));
}

#[tokio::test(start_paused = true)]
async fn eh_4_2_the_turn_timeout_collects_partial_results() {
    let bench = Bench::with_timeout(
        400,
        [
            ("flight_search", vec![after(50, answers("LH 1"))]),
            ("hotel_search", vec![Step::Hang]),
            ("activity_search", vec![Step::Hang]),
        ],
    );
    let one_late = Draft::new("t").call(reads("flight_search")).call(reads("hotel_search"));
    let report = bench.run(one_late.limits(turn_of(300))).await;
    assert_eq!(report.summary, "Completed flight search, but hotel search timed out");

    let began = tokio::time::Instant::now();
    let all = Draft::new("t")
        .call(reads("flight_search"))
        .call(reads("hotel_search"))
        .call(reads("activity_search").required())
        .call(reads("never_started").after("hotel_search"));
    let report = bench.run(all.limits(turn_of(300))).await;
    assert_eq!(began.elapsed(), seconds(300));
    assert_eq!((report.took, report.cut_short), (seconds(300), Some(CutShort::TimedOut)));
    assert_eq!(
        report.summary,
        "Completed flight search, but hotel search, activity search and never started timed out"
    );
    let flights = report.call("flight_search").unwrap();
    assert_eq!(flights.content().unwrap().get(), r#""LH 1""#);
    assert_eq!((flights.ended, flights.ran), (seconds(50), Ran::Yes));
    let ends: Vec<_> = report.calls[1..].iter().map(|call| (call.outcome, call.ran)).collect();
    let late = Outcome::TimedOut;
    assert_eq!(ends, [(late, Ran::Unknown), (late, Ran::Unknown), (late, Ran::No)]);
    // A required call is escalated to the user.
    let told: Vec<_> = report.escalated().map(|call| &*call.name).collect();
    assert_eq!(told, ["activity_search"]);
    assert_eq!(bench.handle.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_ends_with_the_turn_counts_and_starts_nothing() {
    let tool = tr_testkit::calls::ScriptedTool::script([after(20, answers("just in time"))]);
    let handle = tool.handle();
    let draft = Draft::new("t").limits(turn_of(20)).call(reads("last"));
    let draft = draft.call(reads("too_late").after("last"));
    let report = Turns::new(tool).run(draft.check(&Tools::any()).unwrap()).await;
    let ends: Vec<_> = report.calls.iter().map(|call| (call.outcome, call.ran)).collect();
    assert_eq!(ends, [(Outcome::Success, Ran::Yes), (Outcome::TimedOut, Ran::No)]);
    assert_eq!((handle.calls(), report.took), (1, seconds(20)));
}

/// The report has to say that a payment may have run when the turn ended.
#[tokio::test(start_paused = true)]
async fn what_may_have_changed_something_at_the_turn_s_end_is_told() {
    let bench = Bench::with_timeout(400, [("pay", vec![Step::Hang]), ("search", vec![Step::Hang])]);
    let pay = |name: &str| tr_turn::Call::new("pay").named(name).effect(Effect::Mutating);
    let limits = Limits { concurrency: 2, ..turn_of(20) };
    let draft = Draft::new("t").limits(limits).call(pay("paid")).call(reads("search"));
    let report = bench.run(draft.call(pay("never_started"))).await;
    let told: Vec<_> = report.escalated().map(|call| &*call.name).collect();
    assert_eq!(told, ["paid"]);
    let reason = "The turn timed out, and the tool may have run";
    assert_eq!(report.calls[0].decision.unwrap().reason, reason);
    let sentence = "paid timed out: Turn timeout after 20s (it may have run)";
    assert!(report.trace.to_json_lines().contains(sentence), "{}", report.trace);
}

/// What the trace says was used was used.
#[tokio::test(start_paused = true)]
async fn an_alternative_that_never_starts_was_not_used() {
    use tr_core::Priority::{High, Low};
    let fallen = vec![after(2, says("Invalid city code: LX"))];
    let scripts =
        [("gate", vec![after(1, answers("ok"))]), ("search", fallen), ("slow", vec![Step::Hang])];
    let bench = Bench::with_timeout(400, scripts);
    let slow = |name: &str| reads("slow").named(name).after("gate").priority(High);
    let draft = Draft::new("t")
        .limits(Limits { concurrency: 2, ..turn_of(20) })
        .call(reads("gate"))
        .call(reads("search").alternative("backup").priority(Low))
        .call(slow("one"))
        .call(slow("two"));
    let report = bench.run(draft).await;
    assert_eq!(bench.calls("backup"), 0);
    assert!(!report.trace.to_string().contains("Used alternative tool"), "{}", report.trace);
    assert!(report.calls.iter().all(|call| &*call.tool != "backup"));
}

#[tokio::test(start_paused = true)]
async fn eh_4_3_a_timeout_is_transient() {
    let bench = Bench::new([("flight_search", vec![Step::Hang, answers("ok")])]);
    let report = bench.run(Draft::new("t").call(reads("flight_search"))).await;
    let error = report.trace.entries().iter().find_map(|entry| match &entry.fact {
        Fact::ToolError { verdict, reason, .. } => Some((*verdict, *reason)),
        _ => None,
    });
    assert_eq!(error, Some((Verdict::TRANSIENT, "Timeout is temporary")));
    assert_eq!(decisions(&report)[0].1, "Retry");
}

#[tokio::test(start_paused = true)]
async fn eh_4_4_timeouts_are_recorded_in_the_trace() {
    let bench = Bench::new([("flight_search", vec![Step::Hang, answers("ok")])]);
    let report = bench.run(Draft::new("t-1").call(reads("flight_search"))).await;
    let lines = report.trace.to_json_lines();
    let line = lines.lines().find(|line| line.contains("ToolTimeout")).unwrap();
    // The four fields of the requirement, then ours.
    assert_eq!(
        line,
        concat!(
            r#"{"event_type":"ToolTimeout","tool_id":"flight_search","timeout_ms":30000,"timestamp":"2025-11-05T10:30:45Z","#,
            r#""turn_id":"t-1","call":"flight_search","attempt":1,"at_ms":30000}"#
        )
    );
}

#[tokio::test(start_paused = true)]
async fn eh_7_3_timeout_during_retry() {
    let bench = Bench::new([("flight_search", vec![after(25, down()), Step::Hang])]);
    let draft = Draft::new("t").call(reads("flight_search")).limits(turn_of(60));
    let report = bench.run(draft).await;
    // Attempt 2 is terminated at 55 s and treated as transient, so attempt 3 starts; the turn ends
    // it at 60 s.
    assert_eq!(bench.handle.starts(), [0, 25, 55].map(seconds));
    assert_eq!(bench.handle.ends(), [25, 55, 60].map(seconds));
    assert_eq!((report.took, report.calls[0].outcome), (seconds(60), Outcome::TimedOut));
    assert_eq!(report.calls[0].attempts, 3);
    // The innermost that fires names itself.
    assert_eq!(timeouts(&report), [(55, 30), (60, 60)].map(|(at, of)| (seconds(at), seconds(of))));
}

#[tokio::test(start_paused = true)]
async fn eh_7_4_turn_timeout_during_retry() {
    let bench = Bench::with_timeout(
        40,
        [("flight_search", vec![after(25, down()), Step::Hang]), ("hotel_search", ok())],
    );
    let draft = Draft::new("t").call(reads("flight_search").alternative("hotel_search"));
    let draft = draft.call(reads("hotel_search")).limits(turn_of(60));
    let report = bench.run(draft).await;
    // Attempt 2 is interrupted at 60 s; none follows, and no other tool is tried.
    assert_eq!(bench.calls("flight_search"), 2);
    assert_eq!(bench.calls("hotel_search"), 1);
    let flights = bench.handle.attempts();
    assert_eq!(flights[2].started - flights[0].started, seconds(25));
    assert_eq!(flights[2].ended.unwrap().0 - flights[0].started, seconds(60));
    assert_eq!(report.summary, "Completed hotel search, but flight search timed out");
    assert_eq!(report.calls[0].decision.unwrap().reason, "The turn timed out");
    let failure = report.calls[0].failure.as_ref().unwrap();
    assert_eq!((&*failure.code, report.calls[0].ran), (code::TIMEOUT, Ran::Unknown));
    tokio::time::sleep(seconds(600)).await;
    assert_eq!(bench.handle.calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_call_s_own_timeout_covers_all_its_attempts() {
    let bench = Bench::new([("flight_search", vec![after(25, down()), Step::Hang])]);
    let draft = Draft::new("t").call(reads("flight_search").timeout(seconds(40)));
    let report = bench.run(draft).await;
    assert_eq!((report.took, report.cut_short), (seconds(40), None));
    assert_eq!(report.calls[0].outcome, Outcome::TimedOut);
    assert_eq!(&*report.calls[0].failure.as_ref().unwrap().message, "Call timeout after 40s");
    assert_eq!(timeouts(&report), [(seconds(40), seconds(40))]);
}

#[tokio::test(start_paused = true)]
async fn attempt_timeouts_of_the_plan_reach_the_stack() {
    let bench = Bench::new([("flight_search", vec![Step::Hang, answers("ok")])]);
    let call = reads("flight_search").attempt_timeout(seconds(2));
    let report = bench.run(Draft::new("t").call(call)).await;
    assert_eq!(bench.handle.ends()[0], seconds(2));
    assert_eq!(report.calls[0].outcome, Outcome::Success);
}

/// Without a stack, the turn's own clock bounds a call.
#[tokio::test(start_paused = true)]
async fn a_bare_tool_is_bounded_too() {
    let tool = tr_testkit::calls::ScriptedTool::script([Step::Hang]).then_repeat_last();
    let handle = tool.handle();
    let call = reads("flight_search").timeout(seconds(30));
    let plan = Draft::new("t").call(call).check(&Tools::any()).unwrap();
    let report = Turns::new(tool).run(plan).await;
    let failure = report.calls[0].failure.as_ref().unwrap();
    assert_eq!(&*failure.message, "Call timeout after 30s");
    assert_eq!((report.calls[0].outcome, report.calls[0].ran), (Outcome::TimedOut, Ran::Unknown));
    assert_eq!((report.took, handle.in_flight()), (seconds(30), 0));
    assert_eq!(timeouts(&report), [(seconds(30), seconds(30))]);

    // One that never gets ready never ran.
    let tool = tr_testkit::calls::ScriptedTool::script([]).capacity(0);
    let call = reads("flight_search").timeout(seconds(30));
    let plan = Draft::new("t").call(call).check(&Tools::any()).unwrap();
    let report = Turns::new(tool).run(plan).await;
    assert_eq!((report.calls[0].outcome, report.calls[0].ran), (Outcome::TimedOut, Ran::No));
}

/// A tool that is never done and never waits uses up its task's budget, and is ended all the same.
#[tokio::test(start_paused = true)]
async fn a_busy_tool_cannot_hold_a_turn() {
    let busy = tower::service_fn(|_: ToolCall| async {
        loop {
            tokio::task::consume_budget().await;
        }
        #[expect(unreachable_code, reason = "the types of an answer that never comes")]
        Ok::<_, BoxError>(ToolOutcome::default())
    });
    // Paused time stands still while anything is busy.
    let clock = tokio::spawn(async {
        loop {
            tokio::time::advance(Duration::from_millis(100)).await;
        }
    });
    let plan = Draft::new("t")
        .limits(turn_of(3))
        .call(reads("busy"))
        .call(reads("other").named("bounded").timeout(seconds(1)))
        .check(&Tools::any());
    let report = Turns::new(busy).run(plan.unwrap()).await;
    clock.abort();
    assert_eq!(report.cut_short, Some(CutShort::TimedOut));
    assert!(report.took <= Duration::from_millis(3_200), "{:?}", report.took);
    assert!(report.calls[1].ended <= Duration::from_millis(1_200), "{:?}", report.calls[1].ended);
}
