//! What a trace says of breakers, and how it looks.
use super::*;
use tr_config::ToolCatalog;
use tr_core::{BreakerState, KeyRef, Ran, ToolError, Verdict};
use tr_testkit::calls::fails;
use tr_turn::{Fact, Limits, Outcome};

fn down() -> Step<ToolOutcome> {
    fails("http_503", Verdict::TRANSIENT, Ran::No)
}

#[tokio::test(start_paused = true)]
async fn eh_3_1_the_trace_records_that_the_breaker_opened() {
    let bench = Bench::new([("flight_search", vec![down()])]);
    let report = bench.run(Draft::new("t").call(reads("flight_search"))).await;
    assert!(has(&report, "flight_search", "Circuit breaker opened for flight_search"));
    // The fifth failure opened it, and its entry knows.
    let states: Vec<_> = report
        .trace
        .entries()
        .iter()
        .filter_map(|entry| match &entry.fact {
            Fact::ToolError { breaker, .. } => Some((entry.attempt, *breaker)),
            _ => None,
        })
        .collect();
    let closed = BreakerState::Closed;
    assert_eq!(
        states,
        [(1, closed), (2, closed), (3, closed), (4, closed), (5, BreakerState::Open)]
    );
    let breaker = bench.stack.breakers().get(KeyRef::new("flight_search")).unwrap();
    assert_eq!((bench.handle.calls(), breaker.state()), (5, BreakerState::Open));

    // Attempt 6: an error at once, and no retry.
    let report = bench.run(Draft::new("t").call(reads("flight_search"))).await;
    assert_eq!((bench.handle.calls(), report.took), (5, Duration::ZERO));
    let call = &report.calls[0];
    assert_eq!((call.outcome, call.ran), (Outcome::Failed, Ran::No));
    assert_eq!(&*call.failure.as_ref().unwrap().code, "circuit_open");
    let refused = report.trace.entries().iter().find_map(|entry| match &entry.fact {
        Fact::ToolError { code, breaker, .. } => Some((&**code, *breaker)),
        _ => None,
    });
    assert_eq!(refused, Some(("circuit_open", BreakerState::Open)));
    assert!(decisions(&report).iter().all(|(_, decision, _)| *decision != "Retry"));
}

/// Two calls under one breaker: it opens while both retry.
#[tokio::test(start_paused = true)]
async fn what_a_breaker_refuses_is_no_attempt() {
    let bench = Bench::new([("flight_search", vec![says("Service unavailable (503)")])]);
    let draft = Draft::new("t")
        .call(reads("flight_search").named("one"))
        .call(reads("flight_search").named("two"));
    let report = bench.run(draft).await;
    let refused = report.trace.entries().iter().filter(
        |entry| matches!(&entry.fact, Fact::ToolError { code, .. } if &**code == "circuit_open"),
    );
    assert!(refused.count() > 0);
    let attempts: u32 = report.calls.iter().map(|call| call.attempts).sum();
    assert_eq!(attempts as usize, bench.calls("flight_search"));
    let shown = report.trace.to_string();
    for call in &report.calls {
        let text = format!("{} attempts", call.attempts);
        assert!(shown.contains(&text), "{text}\n{shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_person_can_read_the_waterfall() {
    let bench = Bench::new([
        (
            "flight_search",
            vec![after(3, says("Service unavailable (503)")), after(9, answers("LH 1"))],
        ),
        ("hotel_search", vec![after(2, says("Invalid city code: LX"))]),
        ("hotel_search_backup", vec![after(4, answers("Ritz"))]),
        ("car_search", vec![after(1, says("Authentication failed (401)"))]),
        ("compare_prices", vec![after(2, answers("cheap"))]),
        ("insure", ok()),
        ("activity_search", vec![Step::Hang]),
    ]);
    let draft = Draft::new("trip-1")
        .limits(Limits { timeout: seconds(20), ..Limits::default() })
        .call(reads("flight_search").named("flights"))
        .call(reads("hotel_search").named("hotels").alternative("hotel_search_backup"))
        .call(reads("car_search").named("cars").default_value(serde_json::json!([])))
        .call(reads("compare_prices").named("compare").after("flights").after("cars"))
        .call(reads("activity_search").named("activities"))
        .call(reads("insure").named("insurance").after("bookings"))
        .call(reads("car_search").named("bookings"));
    let report = bench.run(draft).await;
    let shown = report.trace.to_string();
    assert_eq!(format!("\n{shown}"), WATERFALL, "\n{shown}");
}

#[tokio::test(start_paused = true)]
async fn what_tools_say_does_nothing_to_a_terminal() {
    let attack = "no\u{1b}[2J\n  1 s  all  Success\u{9b}2J\u{202e}";
    let bench = Bench::new([("car_search", vec![says(attack)])]);
    let draft = Draft::new(attack).call(reads("car_search").named(attack));
    let report = bench.run(draft).await;
    let shown = report.trace.to_string();
    let acts = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!shown.contains(acts), "{shown}");
    assert!(shown.contains(r"no\u{1b}[2J\n  1 s  all  Success\u{9b}2J\u{202e}"), "{shown}");
    assert!(!shown.lines().any(|line| line.starts_with("  1 s")), "{shown}");
    let lines = report.trace.to_json_lines();
    assert!(lines.contains(r"\u009b2J\u202e") && !lines.contains(acts), "{lines}");
}

const WATERFALL: &str = "
trip-1 · 20 s · Completed flights, hotels and compare, but activities timed out, cars and bookings failed, insurance was skipped

flights    │██████░█████████████████                │   12 s  Success, 2 attempts
hotels     │████████████                            │    6 s  Success, by hotel_search_backup
cars       │██                                      │    1 s  Failed
activities │████████████████████████████████████████│   20 s  TimedOut
bookings   │██                                      │    1 s  Failed
insurance  │                                        │      –  Skipped (dependency failed)
compare    │                        ████            │    2 s  Success

   1 s  cars        attempt 1: Authentication failed (401) [Permanent: Auth won't change on retry]
   1 s  cars        → UseDefault: Permanent error + default value available
   1 s  bookings    attempt 1: Authentication failed (401) [Permanent: Auth won't change on retry]
   1 s  bookings    → Escalate: Permanent error (no retry)
   1 s  bookings    ! bookings failed: Authentication failed (401)
   1 s  insurance   → Skip: optional
   2 s  hotels      attempt 1: Invalid city code: LX [Permanent: Invalid input won't change on retry]
   2 s  hotels      → UseAlternative: Permanent error + alternative available
   2 s  hotels      Used alternative tool
   3 s  flights     attempt 1: Service unavailable (503) [Transient: Unavailable services come back]
   3 s  flights     → Retry at once: Transient error + circuit closed + retries available
  12 s  flights     Tool succeeded on retry 2
  12 s  compare     Used default value for compare
  20 s  activities  timeout after 20 s
  20 s  activities  → Skip: The turn timed out
";

/// Neither from the params nor from the result does a trace quote what a sensitive field holds.
#[tokio::test(start_paused = true)]
async fn a_trace_shows_nothing_that_sensitive_fields_hold() {
    const CATALOG: [&str; 2] =
        ["{}", r#"{"tools": {"visa": {"sensitive": ["passport_no", "block"]}}}"#];
    for (catalog, hides) in CATALOG.into_iter().zip([false, true]) {
        let mut outcome =
            ToolOutcome::failure(ToolError::new("no-X17-Ada", "no visa for X17-Ada in block B 12"));
        outcome.parts_mut().content = Some(serde_json::json!({"block": "B 12"}).into());
        let fails = [says("no visa for X17-Ada: 0.2500"), Step::Ok(outcome)];
        let bench = Bench::new([("visa", fails.to_vec())]);
        let params = serde_json::json!({"who": {"passportNo": "X17-Ada"}});
        let tools = Tools::any().catalog(ToolCatalog::from_json(catalog).unwrap());
        let draft = Draft::new("t").call(reads("visa").params(params));
        let report = bench.turns.run(draft.check(&tools).unwrap()).await;
        assert!(bench.calls("visa") >= 2, "both ways of failing");
        let all = format!(
            "{}{}{:?}{}",
            report.trace,
            report.trace.to_json_lines(),
            report.calls.iter().map(|call| &call.failure).collect::<Vec<_>>(),
            report.summary
        );
        assert_eq!(all.contains("X17-Ada"), !hides, "{all}");
        assert_eq!(all.contains("B 12"), !hides, "{all}");
        assert_eq!(all.contains("no visa for [redacted]"), hides, "{all}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_trace_shows_no_secrets_and_no_params() {
    let bench =
        Bench::new([("login", vec![says("login refused: password=hunter2, user unknown")])]);
    let params = serde_json::json!({ "canary": "c4n4ry" });
    let report = bench.run(Draft::new("t").call(reads("login").params(params))).await;
    let all = format!("{}{}{report:?}", report.trace, report.trace.to_json_lines());
    assert!(all.contains("login refused: password=[redacted]"), "{all}");
    assert!(!all.contains("hunter2") && !all.contains("c4n4ry"), "{all}");
}
