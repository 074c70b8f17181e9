//! Error handlers and recovery decisions.
use super::*;
use std::sync::Mutex;
use tr_core::{Ran, Verdict};
use tr_testkit::calls::fails;
use tr_turn::{Entry, Fact, Outcome, Recovery, TurnInfo, Watch};

fn timeout() -> Step<ToolOutcome> {
    fails("timeout", Verdict::TRANSIENT, Ran::Unknown)
}

/// An error handler that notes what it can see.
#[derive(Clone, Debug, Default)]
struct Handler(Arc<Mutex<Vec<String>>>);

impl Watch for Handler {
    fn on_entry(&self, turn: &TurnInfo<'_>, entry: &Entry) {
        if let Fact::ToolError { code, error, ran, .. } = &entry.fact {
            let (tool, attempt) = (entry.tool.as_deref().unwrap(), entry.attempt);
            let (name, session) = (turn.turn, turn.session.unwrap());
            self.0.lock().unwrap().push(format!(
                "{name} of {session}: attempt {attempt} of {tool}: {code}: {error} ({ran:?})"
            ));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn eh_6_1_the_error_handler_is_notified() {
    let bench = Bench::new([("flight_search", vec![timeout(), says("ECONNRESET"), answers("ok")])]);
    let handler = Handler::default();
    let turns = bench.turns.clone().watch(handler.clone());
    let draft = Draft::new("t-7").session("s-1").call(reads("flight_search"));
    let report = turns.run(draft.check(&Tools::any()).unwrap()).await;
    assert!(report.is_complete());
    assert_eq!(
        *handler.0.lock().unwrap(),
        [
            "t-7 of s-1: attempt 1 of flight_search: timeout: timeout: the tool may have run (Unknown)",
            "t-7 of s-1: attempt 2 of flight_search: connection_reset: ECONNRESET (Unknown)",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn eh_6_2_the_recovery_strategy_is_decided() {
    let bench = Bench::new([("flight_search", vec![timeout(), answers("ok")])]);
    let report = bench.run(Draft::new("t").call(reads("flight_search"))).await;
    let reason = "Transient error + circuit closed + retries available".to_owned();
    assert_eq!(decisions(&report), [("flight_search".to_owned(), "Retry", reason)]);
}

#[tokio::test(start_paused = true)]
async fn what_retries_per_agent_retries_for_the_plans() {
    for (agent, calls) in [(Some("planner"), 2), (Some("intern"), 1), (None, 1)] {
        let tool =
            Scripted::by(|nth, _: &ToolCall| if nth == 0 { timeout() } else { answers("ok") });
        let handle = tool.handle();
        let stack = ToolStack::builder()
            .retry(|retry| retry.config(RetryConfig::fixed_cadence()).opt_in_agents(["planner"]))
            .build()
            .unwrap();
        let mut draft = Draft::new("t").call(reads("flight_search"));
        if let Some(agent) = agent {
            draft = draft.agent(agent);
        }
        Turns::new(stack.service(tool)).run(draft.check(&Tools::any()).unwrap()).await;
        assert_eq!(handle.requests().len(), calls, "{agent:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn eh_6_3_a_retry_succeeds_after_a_transient_error() {
    let bench = Bench::new([("flight_search", vec![timeout(), answers("ok")])]);
    let report = bench.run(Draft::new("t").call(reads("flight_search"))).await;
    assert_eq!((report.calls[0].outcome, report.calls[0].attempts), (Outcome::Success, 2));
    assert!(has(&report, "flight_search", "Tool succeeded on retry 2"));
}

#[tokio::test(start_paused = true)]
async fn eh_6_4_an_alternative_tool_is_used_when_the_primary_fails() {
    let bench = Bench::new([
        ("flight_search", vec![says("Invalid airport code: XYZ")]),
        ("flight_search_backup", ok()),
    ]);
    let call = reads("flight_search").alternative("flight_search_backup");
    let report = bench.run(Draft::new("t").call(call)).await;
    assert_eq!(bench.calls("flight_search") + bench.calls("flight_search_backup"), 2);
    assert_eq!(decisions(&report)[0].1, "UseAlternative");
    assert!(has(&report, "flight_search_backup", "Used alternative tool"));
    assert!(has(&report, "flight_search_backup", "Tool succeeded"));
    let call = &report.calls[0];
    assert_eq!((call.outcome, &*call.tool), (Outcome::Success, "flight_search_backup"));
    assert_eq!(report.summary, "Completed flight search");
}

#[tokio::test(start_paused = true)]
async fn eh_6_5_permanent_errors_escalate() {
    let bench = Bench::new([("flight_search", vec![says("Invalid airport code: XYZ")])]);
    let report = bench.run(Draft::new("t").call(reads("flight_search"))).await;
    let decision = report.calls[0].decision.unwrap();
    assert_eq!(
        (decision.recovery, decision.reason),
        (Recovery::Escalate, "Permanent error (no retry)")
    );
    assert_eq!(bench.handle.calls(), 1);
    // It is escalated to the user.
    assert!(has(&report, "flight_search", "flight search failed: Invalid airport code: XYZ"));
    assert_eq!(report.escalated().count(), 1);
}

#[tokio::test(start_paused = true)]
async fn eh_6_6_the_trace_records_all_error_handling_decisions() {
    let bench = Bench::new([
        ("flight_search", vec![timeout(), answers("ok")]),
        ("hotel_search", vec![says("Invalid city")]),
        ("hotel_search_backup", vec![says("Authentication failed (401)")]),
        ("compare_prices", ok()),
        ("pay", vec![timeout()]),
    ]);
    let hotel = reads("hotel_search").alternative("hotel_search_backup");
    let pay = tr_turn::Call::new("pay").effect(Effect::Mutating).alternative("hotel_search");
    let draft = Draft::new("t")
        .call(reads("flight_search"))
        .call(hotel)
        .call(reads("compare_prices").after("hotel_search"))
        .call(pay);
    let report = bench.run(draft).await;
    let errors: Vec<_> = report
        .trace
        .entries()
        .iter()
        .filter_map(|entry| match &entry.fact {
            Fact::ToolError { verdict, reason, breaker, .. } => {
                Some((entry.tool.as_deref().unwrap(), *verdict, *reason, breaker.as_str()))
            }
            _ => None,
        })
        .collect();
    let (transient, permanent) = (Verdict::TRANSIENT, Verdict::Permanent);
    let invalid = "Invalid input won't change on retry";
    assert_eq!(
        errors,
        [
            ("flight_search", transient, "Timeout is temporary", "CLOSED"),
            ("hotel_search", permanent, invalid, "CLOSED"),
            ("pay", transient, "Timeout is temporary", "CLOSED"),
            ("hotel_search_backup", permanent, "Auth won't change on retry", "CLOSED"),
        ]
    );
    let decided: Vec<_> =
        decisions(&report).into_iter().map(|(tool, what, _)| format!("{tool}: {what}")).collect();
    assert_eq!(
        decided,
        [
            "flight_search: Retry",
            "hotel_search: UseAlternative",
            "pay: NoRetry",
            // Another tool could pay twice.
            "pay: Escalate",
            "hotel_search_backup: Escalate",
            "compare_prices: Skip",
        ]
    );
    let outcomes: Vec<_> =
        report.calls.iter().map(|call| (&*call.name, call.outcome, call.ran)).collect();
    assert_eq!(
        outcomes,
        [
            ("flight_search", Outcome::Success, Ran::Yes),
            ("hotel_search", Outcome::Failed, Ran::Yes),
            ("compare_prices", Outcome::Skipped, Ran::No),
            ("pay", Outcome::TimedOut, Ran::Unknown),
        ]
    );
    let told = "pay timed out: timeout: the tool may have run (it may have run)";
    assert!(
        sentences(&report).iter().any(|(_, sentence)| sentence == told),
        "{:#?}",
        sentences(&report)
    );
}

/// The payment may have been made, so the user is told.
#[tokio::test(start_paused = true)]
async fn a_default_value_does_not_hide_that_a_tool_may_have_run() {
    for own in [false, true] {
        for (effect, ran, told) in [
            (Effect::Mutating, Ran::Unknown, true),
            (Effect::Idempotent, Ran::Unknown, true),
            (Effect::ReadOnly, Ran::Unknown, false),
            (Effect::Mutating, Ran::No, false),
            (Effect::Mutating, Ran::Yes, false),
        ] {
            let lost = fails("connection_reset", Verdict::Permanent, ran);
            let bench = Bench::new([("pay", vec![lost]), ("note", ok())]);
            let value = serde_json::json!({ "paid": null });
            let (pay, note) =
                (tr_turn::Call::new("pay").effect(effect), reads("note").after("pay"));
            let (pay, note) = match own {
                false => (pay.default_value(value), note),
                true => (pay, note.or_default("pay", value)),
            };
            let report = bench.run(Draft::new("t").call(pay).call(note)).await;
            let (pay, note) = (report.call("pay").unwrap(), report.call("note").unwrap());
            let decided = pay.decision.unwrap().recovery;
            let expected = if told { Recovery::Escalate } else { Recovery::UseDefault };
            assert_eq!(
                (decided, pay.ran, report.escalated().count()),
                (expected, ran, told.into())
            );
            let sentence = "pay failed: connection_reset: the tool may have run (it may have run)";
            assert_eq!(has(&report, "pay", sentence), told, "{}", report.trace);
            // A default value lets the dependent run.
            assert_eq!(note.outcome, Outcome::Success);
            assert!(has(&report, "note", "Used default value for note"));
        }
    }
}

/// The key identifies the call, so an alternative tool gets the same key.
#[tokio::test(start_paused = true)]
async fn an_alternative_may_stand_in_for_a_call_with_a_key() {
    let bench = Bench::new([
        ("pay", vec![says("Authentication failed (401)")]),
        ("pay_backup", vec![answers("paid")]),
    ]);
    let call = tr_turn::Call::new("pay").idempotency_key("order-42").alternative("pay_backup");
    let report = bench.run(Draft::new("t").call(call)).await;
    assert!(report.is_complete(), "{}", report.trace);
    assert_eq!((bench.calls("pay"), bench.calls("pay_backup")), (1, 1));
}

/// Where the call's own tool is not there at all, the trace says what stands in, and for what.
#[tokio::test(start_paused = true)]
async fn an_alternative_that_comes_first_leaves_its_sentences_too() {
    let bench =
        Bench::new([("flight_search", vec![says("Invalid city code: LX")]), ("backup", ok())]);
    let draft = Draft::new("t")
        .call(reads("flight_search").default_value(serde_json::json!([])))
        .call(reads("compare_prices").after("flight_search").alternative("backup"));
    let tools = Tools::any().offered(["flight_search", "backup"]);
    let report = bench.turns.run(draft.check(&tools).unwrap()).await;
    assert!(has(&report, "backup", "Used default value for compare_prices"), "{}", report.trace);
    assert!(has(&report, "backup", "Used alternative tool"), "{}", report.trace);
    assert_eq!(bench.calls("backup"), 1);
}
