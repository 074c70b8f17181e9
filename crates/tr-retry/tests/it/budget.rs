//! The retry budget around real calls.
use crate::common::{Tool, exhausted, ms, ok, search, timeout};
use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::time::{Instant, sleep};
use tower::{Layer, Service, ServiceExt};
use tr_core::{ToolCall, code, failure_info};
use tr_retry::{Budget, RetryConfig, RetryLayer, RetryStop};
use tr_testkit::{
    drops, rounds,
    tool::{Scripted, Step},
};

fn budgeted(budget: &Budget) -> RetryLayer {
    RetryLayer::builder().config(RetryConfig::default()).budget(budget.clone()).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn tr_07_a_budget_that_is_used_up_ends_retrying() {
    let budget = Budget::builder().per_success(0.0).capacity(4).build().unwrap();
    let tool = Tool::script([timeout()]).then_repeat_last();
    let asked = tool.handle();
    let tool = budgeted(&budget).layer(tool);
    let mut ends = vec![];
    for _ in 0..3 {
        let error = tool.clone().oneshot(search()).await.unwrap_err();
        assert!(failure_info(&*error).unwrap().is_exhausted());
        assert_eq!(exhausted(&error).code(), code::RETRY_EXHAUSTED);
        ends.push((exhausted(&error).attempts(), exhausted(&error).why()));
    }
    assert_eq!(ends, [(4, RetryStop::Attempts), (2, RetryStop::Budget), (1, RetryStop::Budget)]);
    assert_eq!((asked.calls(), budget.available()), (7, 0));
}

#[tokio::test(start_paused = true)]
async fn success_funds_the_budget_of_the_whole_group() {
    let budget = Budget::builder().per_success(0.5).capacity(1).build().unwrap();
    budgeted(&budget).layer(Tool::script([timeout(), ok()])).oneshot(search()).await.unwrap();
    assert_eq!(budget.available(), 0, "spent one, earned a half");
    budgeted(&budget).layer(Tool::script([ok()])).oneshot(search()).await.unwrap();
    assert_eq!(budget.available(), 1);
}

#[tokio::test(start_paused = true)]
async fn in_an_outage_the_tool_sees_little_more_than_one_attempt_per_call() {
    let budget = Budget::builder().build().unwrap();
    let tool = Tool::script([timeout()]).then_repeat_last().unlogged();
    let asked = tool.handle();
    let inner = budgeted(&budget).layer(tool);
    let tool = budgeted(&budget).layer(budgeted(&budget).layer(inner));
    for _ in 0..1_000 {
        let _ = tool.clone().oneshot(search()).await;
    }
    assert_eq!(asked.calls(), 1_000 + 20);
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_gets_ready_too_late_gives_its_token_back_as_it_ends() {
    let budget = Budget::builder().per_success(0.0).capacity(1).build().unwrap();
    let tool = Tool::script([Step::after(ms(10), timeout())]).capacity(1);
    let mut rival = tool.clone();
    let mut retry = budgeted(&budget).layer(tool);
    let due = search().deadline((Instant::now() + ms(500)).into_std());
    let mut call = pin!(retry.ready().await.unwrap().call(due));
    drop(retry);
    let taken = tokio::spawn(async move {
        rival.ready().await.unwrap();
        sleep(ms(1_000)).await;
    });
    let error = call.as_mut().await.unwrap_err();
    taken.await.unwrap();
    assert_eq!(exhausted(&error).why(), RetryStop::Deadline);
    // The call is over, though its future is still there.
    assert_eq!(budget.available(), 1);
}

/// Drops so many calls at random points, and compares the tokens that are gone with the retries
/// that were made.
async fn drop_at_random(seed: u64, calls: u64) -> u64 {
    const CAPACITY: u32 = 1_000_000;
    let budget = Budget::builder().per_success(0.0).capacity(CAPACITY).build().unwrap();
    let retries = Arc::new(AtomicU64::new(0));
    let counted = retries.clone();
    let tool = Scripted::by(move |n, call: &ToolCall| {
        if call.attempt() > 0 {
            counted.fetch_add(1, Ordering::Relaxed);
        }
        if n % 5 == 0 { ok() } else { Step::after(ms(3), timeout()) }
    })
    .capacity(3)
    .unlogged();
    let asked = tool.handle();
    let tool = budgeted(&budget).layer(tool);
    let report = drops::at_random(seed, calls, || tool.clone().oneshot(search())).await;

    assert_eq!((report.finished + report.dropped, report.stuck), (calls, 0));
    assert_eq!(u64::from(CAPACITY) - budget.available(), retries.load(Ordering::Relaxed));
    assert_eq!((asked.in_flight(), asked.reserved(), asked.waiting()), (0, 0, 0));
    report.dropped
}

#[tokio::test(start_paused = true)]
async fn a_retry_dropped_before_it_starts_gives_its_token_back() {
    // Fewer in one batch than the budget has tokens for.
    const BATCH: u64 = 4_000;
    let (batches, mut dropped) = (rounds(BATCH, 10_000_000) / BATCH, 0);
    for seed in 0..batches {
        dropped += drop_at_random(seed, BATCH).await;
    }
    assert!(dropped > batches * BATCH / 8, "{dropped}");
}
