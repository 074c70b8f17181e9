//! The overhead of a stack: what is counted, in a time that only the services spend.
use std::{cell::Cell, convert::Infallible, time::Duration};

use tower::service_fn;
use tr_testkit::{
    BoxError,
    overhead::{self, Plan},
};

thread_local! {
    static SPENT: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

fn spend(nanoseconds: u64) {
    SPENT.set(SPENT.get() + Duration::from_nanos(nanoseconds));
}

/// Half a round of single calls takes 10 µs longer than the other.
async fn bare(n: u64) -> Result<u64, Infallible> {
    spend(if n.is_multiple_of(2) { 1_000 } else { 11_000 });
    Ok(n)
}

async fn stacked(n: u64) -> Result<u64, Infallible> {
    spend(n);
    bare(n).await
}

fn plan() -> Plan {
    Plan::new().clock(|| SPENT.get())
}

#[tokio::test]
async fn requests_cost_both_and_what_is_added_is_the_difference_of_a_round() {
    let request = |n| {
        spend(500);
        n
    };
    let plan = plan().calls(1).rounds(100);
    let found = plan.measure(service_fn(bare), service_fn(stacked), request).await.unwrap();
    // Number 0 is the call before the first round.
    let percentiles = [0.0, 1.0, 50.0, 95.0, 99.5, 100.0];
    assert_eq!(
        percentiles.map(|it| found.added.percentile(it)),
        [1.0, 1.0, 50.0, 95.0, 100.0, 100.0]
    );
    assert_eq!([50.0, 51.0].map(|it| found.bare.percentile(it)), [1_500.0, 11_500.0]);
    assert_eq!(found.stacked.percentile(0.0), 1_502.0);
    assert_eq!(found.to_string(), "50 ns added to 1500 ns per call (9 of 10 rounds: 5 to 95 ns)");
}

#[tokio::test]
async fn a_round_has_as_many_calls_as_take_a_hundred_microseconds() {
    let count = Cell::new(0);
    let request = |n| {
        count.set(count.get() + 1);
        n
    };
    let sixteen = async |_: u64| {
        spend(7_000);
        Ok::<_, Infallible>(())
    };
    let found = plan().rounds(10).measure(service_fn(sixteen), service_fn(sixteen), request).await;
    // 1, 2, 4, 8 and 16 calls to find the number, and ten rounds, of both.
    assert_eq!(count.get(), 2 * (31 + 10 * 16));
    assert_eq!(
        found.unwrap().to_string(),
        "0 ns added to 7000 ns per call (9 of 10 rounds: 0 to 0 ns)"
    );
}

#[tokio::test]
async fn long_times_are_microseconds_and_a_faster_stack_adds_less_than_nothing() {
    let slow = async |_: u64| {
        spend(125_500);
        Ok::<_, Infallible>(())
    };
    let fast = async |_: u64| {
        spend(100_000);
        Ok::<_, Infallible>(())
    };
    let found = plan().measure(service_fn(slow), service_fn(fast), |n| n).await.unwrap();
    assert_eq!(found.added.median(), -25_500.0);
    let shown = "-25.5 µs added to 126 µs per call (9 of 10 rounds: -25.5 to -25.5 µs)";
    assert_eq!(found.to_string(), shown);
}

#[tokio::test]
async fn no_figure_is_made_of_a_refusal() {
    let refuses = async |n: u64| {
        spend(50_000);
        if n < 5 { Ok(n) } else { Err(BoxError::from("breaker open")) }
    };
    let found = plan().measure(service_fn(bare), service_fn(refuses), |n| n).await;
    assert_eq!(found.unwrap_err().to_string(), "breaker open");
}

#[tokio::test(start_paused = true)]
async fn the_default_clock_is_real_though_tokio_s_is_paused() {
    let works = async |_: u64| std::fs::metadata(".").map(drop);
    let found = overhead::measure(service_fn(works), service_fn(works), |n| n).await.unwrap();
    assert!(found.bare.percentile(0.0) > 0.0);
}
