//! The decider in paused time: events in, answers out.
use super::*;
use crate::{
    decide::Options,
    doors::host::calls,
    engine::{guard::Guard, in_flight::MAX_CALLS},
};
use bytes::Bytes;
use clap::Parser;
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tokio::{task::yield_now, time::sleep_until};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    options: Options,
}

/// A decider whose clock is paused, and whose records are in memory.
struct Bench {
    decider: Decider,
    last: u64,
}

/// An id as providers draw them.
const STRONG: &str = "call_abcdEFGH1234567890ijKLmn";

impl Bench {
    async fn new(args: &[&str]) -> Self {
        let always = ["decide", "--records", "memory", "--log", "off"];
        let cli = Cli::parse_from([&always, args].concat());
        let within = cli.options.decide_within;
        let guard = Guard::new(&cli.options.guard(), false).await.unwrap();
        let client = guard.client("decide-test").of_host(calls::identity());
        Self { decider: Decider::new(guard.proxy(client), within), last: 0 }
    }

    /// Lets everything run that can, and returns the answers.
    async fn settle(&mut self) -> Vec<Value> {
        for _ in 0..50 {
            yield_now().await;
            if let Some(finished) = self.decider.proxy.calls.step().now_or_never() {
                self.decider.on_step(finished);
            }
        }
        let answers = std::iter::from_fn(|| self.decider.answers.pop_front());
        answers.map(|(_, answer)| serde_json::from_str(&answer.line()).unwrap()).collect()
    }

    async fn say(&mut self, line: Value) -> Vec<Value> {
        let line = Item::Line(Bytes::from(line.to_string()));
        self.decider.on_item(0, &line, Instant::now());
        self.settle().await
    }

    /// Announces a call; returns its id and the answers.
    async fn before(&mut self, mut line: Value) -> (u64, Vec<Value>) {
        self.last += 1;
        (line["id"], line["event"]) = (self.last.into(), "before".into());
        (self.last, self.say(line).await)
    }

    async fn after(&mut self, before: u64, mut line: Value) -> Value {
        self.last += 1;
        (line["id"], line["event"], line["before"]) =
            (self.last.into(), "after".into(), before.into());
        only(self.say(line).await)
    }

    /// A call that ends so.
    async fn call(&mut self, line: Value, end: Value) -> Value {
        let (id, answers) = self.before(line).await;
        assert_eq!(only(answers)["decision"], "allow");
        self.after(id, end).await
    }

    /// Lets this much time pass.
    async fn wait(&mut self, seconds: u64) -> Vec<Value> {
        let until = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < until {
            let next =
                self.decider.table.first_deadline().map_or(until, |deadline| deadline.min(until));
            tokio::select! {
                biased;
                finished = self.decider.proxy.calls.step() => self.decider.on_step(finished),
                () = self.decider.proxy.sweeper.round() => {}
                () = sleep_until(next) => self.decider.on_time(Instant::now()),
            }
        }
        self.settle().await
    }
}

fn only(mut answers: Vec<Value>) -> Value {
    assert_eq!(answers.len(), 1, "{answers:?}");
    answers.remove(0)
}

fn read() -> Value {
    json!({ "tool": "read", "params": {}, "session": "s", "turn": "t", "effect": "read_only" })
}

fn pay() -> Value {
    json!({ "tool": "pay", "params": { "cents": 5 }, "session": "s", "turn": "t", "call": STRONG })
}

const REFUSED: &str =
    "Validation failed for tool \"read\":\n  - path: must have required property 'path'";

#[tokio::test(start_paused = true)]
async fn tg_01_a_call_that_keeps_failing_is_noted_and_then_refused() {
    let mut bench = Bench::new(&[]).await;
    let first = bench.call(read(), json!({ "error": REFUSED })).await;
    assert_eq!(
        (&first["decision"], &first["notes"]),
        (&"note".into(), &json!(["[NON-RETRYABLE]"]))
    );
    let second = bench.call(read(), json!({ "error": REFUSED })).await;
    let said = second["notes"][1].as_str().unwrap();
    assert!(said.starts_with("[LOOP DETECTED] Tool \"read\" failed 2 times"), "{said}");
    let (_, third) = bench.before(read()).await;
    let third = only(third);
    assert_eq!((&third["decision"], &third["code"]), (&"block".into(), &"loop_detected".into()));
    assert_eq!(third["ran"], "no");
}

#[tokio::test(start_paused = true)]
async fn tg_02_five_failures_end_what_a_turn_may_call_and_tg_06_the_next_turn_starts_anew() {
    let mut bench = Bench::new(&[]).await;
    let at = |number: u64, turn: &str| json!({ "tool": "read", "params": { "path": number }, "session": "s", "turn": turn });
    for number in 0..5 {
        bench.call(at(number, "t"), json!({ "error": format!("no file {number}") })).await;
    }
    let refused = only(bench.before(at(5, "t")).await.1);
    assert_eq!(refused["code"], "tool_error_limit");
    bench.call(at(5, "u"), json!({ "output": "found" })).await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_names_no_turns_tells_their_ends() {
    let mut bench = Bench::new(&[]).await;
    let at = |number: u64| json!({ "tool": "read", "params": { "path": number }, "session": "s" });
    let end = json!({ "id": "e", "event": "turn_end", "session": "s" });
    assert_eq!(only(bench.say(end.clone()).await)["decision"], "none");
    for number in 0..5 {
        bench.call(at(number), json!({ "error": format!("no file {number}") })).await;
    }
    assert_eq!(only(bench.before(at(5)).await.1)["code"], "tool_error_limit");
    bench.say(end).await;
    assert_eq!(only(bench.before(at(5)).await.1)["decision"], "allow");
}

#[tokio::test(start_paused = true)]
async fn tr_03_a_repeat_with_the_same_id_gets_the_recorded_answer() {
    let mut bench = Bench::new(&[]).await;
    bench.call(pay(), json!({ "output": "paid" })).await;
    let again = only(bench.before(pay()).await.1);
    assert_eq!((&again["decision"], &again["code"]), (&"block".into(), &"replayed".into()));
    assert_eq!((&again["reason"], &again["result"]["isError"]), (&"paid".into(), &false.into()));
    let mut other = pay();
    other["params"] = json!({ "cents": 6 });
    assert_eq!(only(bench.before(other).await.1)["code"], "idempotency_conflict");
    let mut elsewhere = pay();
    elsewhere["session"] = "another".into();
    assert_eq!(only(bench.before(elsewhere).await.1)["decision"], "allow");
}

#[tokio::test(start_paused = true)]
async fn tr_02_a_repeat_waits_for_the_first_but_not_for_ever() {
    let mut bench = Bench::new(&[]).await;
    let (first, allowed) = bench.before(pay()).await;
    assert_eq!(only(allowed)["decision"], "allow");
    assert!(bench.before(pay()).await.1.is_empty());
    assert!(bench.wait(9).await.is_empty());
    let given_up = only(bench.wait(1).await);
    assert_eq!(
        (&given_up["code"], &given_up["ran"]),
        (&"idempotency_in_flight".into(), &"no".into())
    );
    let (third, waits) = bench.before(pay()).await;
    assert!(waits.is_empty());
    // The end of the first answers the one that waits, and not the one that gave up.
    bench.last += 1;
    let end = json!({ "id": bench.last, "event": "after", "before": first, "output": "paid" });
    let mut answers = bench.say(end).await;
    answers.sort_by_key(|answer| answer["id"].as_u64());
    let [repeat, told] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!((&repeat["id"], &repeat["code"]), (&third.into(), &"replayed".into()));
    assert_eq!(told["decision"], "none");
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_end_never_comes_is_of_unknown_outcome_and_a_late_end_settles_it() {
    let mut bench = Bench::new(&["--timeout", "60s"]).await;
    let (first, _) = bench.before(pay()).await;
    assert!(bench.wait(61).await.is_empty());
    let refused = only(bench.before(pay()).await.1);
    assert_eq!((&refused["code"], &refused["ran"]), (&"outcome_unknown".into(), &"unknown".into()));
    assert_eq!(bench.after(first, json!({ "output": "paid" })).await["decision"], "none");
    assert_eq!(only(bench.before(pay()).await.1)["code"], "replayed");
}

#[tokio::test(start_paused = true)]
async fn when_the_host_goes_calls_that_were_allowed_may_have_run() {
    let mut bench = Bench::new(&[]).await;
    bench.before(pay()).await;
    let in_turn = |turn: &str| {
        let mut call = pay();
        call["turn"] = turn.into();
        call
    };
    assert!(bench.before(in_turn("u")).await.1.is_empty());
    bench.decider.on_hosts_gone();
    let waiting = only(bench.settle().await);
    assert_eq!((&waiting["decision"], &waiting["ran"]), (&"block".into(), &"no".into()));
    assert!(bench.decider.is_idle());
    let again = only(bench.before(in_turn("v")).await.1);
    assert_eq!(again["code"], "outcome_unknown");
    assert!(again["reason"].as_str().unwrap().contains("the host ended"), "{again}");
}

#[tokio::test(start_paused = true)]
async fn a_weak_id_recognizes_nothing_and_nothing_is_retried() {
    let mut bench = Bench::new(&[]).await;
    for _ in 0..2 {
        let mut call = pay();
        call["call"] = "call_1".into();
        call["effect"] = "read_only".into();
        let end =
            bench.call(call, json!({ "error": "503 Service Unavailable", "ran": "no" })).await;
        assert_eq!(end["recorded"], Value::Null);
    }
}

#[tokio::test(start_paused = true)]
async fn only_calls_of_tools_that_are_declared_mutating_block_equal_ones() {
    for (effect, decision) in [(Value::Null, "allow"), ("mutating".into(), "block")] {
        let mut bench = Bench::new(&["--timeout", "60s"]).await;
        let call = |id: &str| {
            let mut call = pay();
            (call["call"], call["effect"]) = (id.into(), effect.clone());
            call
        };
        bench.before(call(STRONG)).await;
        bench.wait(61).await;
        let other = only(bench.before(call("call_ZZcdEFGH1234567890ijKLmn")).await.1);
        assert_eq!(other["decision"], decision, "{effect}: {other}");
    }
}

#[tokio::test(start_paused = true)]
async fn events_that_fit_no_call_are_refused() {
    let mut bench = Bench::new(&[]).await;
    let (first, _) = bench.before(pay()).await;
    let mut again = pay();
    (again["id"], again["event"]) = (first.into(), "before".into());
    assert!(only(bench.say(again).await)["error"].as_str().unwrap().contains("id of its own"));
    let (second, _) = bench.before(pay()).await;
    let early = bench.after(second, json!({ "output": "x" })).await;
    assert!(early["error"].as_str().unwrap().contains("not decided yet"));
    assert!(bench.after(99, json!({})).await["error"].as_str().unwrap().contains("no such call"));
    let end = |id: &str| json!({ "id": id, "event": "after", "call": STRONG, "session": "s", "output": "x" });
    // By its name the newest call is meant, which is not decided.
    assert!(only(bench.say(end("n")).await)["error"].as_str().unwrap().contains("not decided yet"));
    let after = json!({ "id": "a", "event": "after", "before": first, "output": "x" });
    assert_eq!(bench.say(after.clone()).await.len(), 2);
    assert!(only(bench.say(after).await)["error"].as_str().unwrap().contains("no such call"));
}

#[tokio::test(start_paused = true)]
async fn modes_that_only_watch_refuse_nothing() {
    for mode in ["off", "observe", "shadow"] {
        let mut bench = Bench::new(&["--mode", mode]).await;
        for _ in 0..4 {
            let end = bench.call(read(), json!({ "error": REFUSED })).await;
            assert_eq!(end["decision"], "none", "{mode}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn observing_refuses_no_call_however_many_are_open() {
    for (mode, decision) in [("observe", "allow"), ("shadow", "allow"), ("enforce", "block")] {
        let mut bench = Bench::new(&["--mode", mode]).await;
        for id in 0..=MAX_CALLS {
            let line = json!({ "id": id, "event": "before", "tool": "read" }).to_string();
            bench.decider.on_item(0, &Item::Line(line.into()), Instant::now());
        }
        let answers = bench.settle().await;
        let last = answers.iter().find(|answer| answer["id"] == MAX_CALLS).unwrap();
        assert_eq!(last["decision"], decision, "{mode}: {last}");
    }
}
