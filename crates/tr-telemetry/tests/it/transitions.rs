//! Every change of a breaker's state is counted and told.
use crate::common::tell;
use crate::lines::Lines;
use crate::metered::Metered;
use serde_json::json;
use tr_core::{BreakerState, BreakerState::*, CallInfo, Event};
use tr_telemetry::Signals;

const EDGES: [(BreakerState, BreakerState); 10] = [
    (Closed, Open),
    (Open, HalfOpen),
    (HalfOpen, Open),
    (HalfOpen, Closed),
    (Open, ForcedOpen),
    (Closed, ForcedOpen),
    (HalfOpen, ForcedOpen),
    (ForcedOpen, Closed),
    (Open, Closed),
    (ForcedOpen, HalfOpen),
];

#[test]
fn tr_13_each_transition_is_one_count_and_one_event() {
    let (lines, _listening) = Lines::listen();
    let metered = Metered::new();
    let signals = Signals::builder().meter(metered.meter()).build().unwrap();
    let observer = signals.observer();
    for (n, (from, to)) in EDGES.into_iter().enumerate() {
        tell(&*observer, &CallInfo::of("pay"), Event::Breaker { breaker: "ns/pay", from, to });

        let (left, entered) = (from.as_str(), to.as_str());
        let metrics = metered.read();
        let series = "openclaw_tool_circuit_breaker_transitions";
        let edge = format!("{series}{{from_state={left},to_state={entered},tool=pay}}");
        assert_eq!(metrics[&edge], 1.0);
        let counted = metrics.keys().filter(|key| key.starts_with(series)).count();
        assert_eq!(counted, n + 1);

        // One state at a time.
        let state = |state: &str| {
            metrics[&format!("openclaw_tool_circuit_breaker_state{{state={state},tool=pay}}")]
        };
        assert_eq!((state(left), state(entered)), (0.0, 1.0));

        let events = lines.events();
        assert_eq!(events.len(), n + 1);
        let event = &events[n];
        assert_eq!(event["event"], "tool_call_circuit_state");
        assert_eq!((&event["toolName"], &event["breakerState"]), (&json!("pay"), &json!(entered)));
        assert_eq!((&event["fromState"], &event["state"]), (&json!(left), &json!(entered)));
        let level = if to == Closed { "info" } else { "warn" };
        assert_eq!(event["level"], level);
    }
}

#[test]
fn calls_without_a_breaker_are_counted_and_the_first_is_told() {
    let (lines, _listening) = Lines::listen();
    let metered = Metered::new();
    let signals = Signals::builder().meter(metered.meter()).build().unwrap();
    let observer = signals.observer();
    for _ in 0..3 {
        tell(&*observer, &CallInfo::of("fetch"), Event::BreakerUncounted);
    }
    assert_eq!(metered.read()["openclaw_tool_circuit_breaker_uncounted{tool=fetch}"], 3.0);
    let events = lines.events();
    assert_eq!(events.len(), 1);
    assert_eq!(
        (&events[0]["event"], &events[0]["level"]),
        (&json!("tool_call_uncounted"), &json!("warn"))
    );
}
