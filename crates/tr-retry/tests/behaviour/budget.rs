//! The retry budget around real calls.
use crate::common::{Tool, exhausted, ms, ok, search, timeout};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tower::{Layer, ServiceExt};
use tr_core::{ToolCall, code, facts};
use tr_retry::{Budget, Policy, RetryLayer, Why};
use tr_testkit::{
    drops,
    tool::{Scripted, Step},
};

fn budgeted(budget: &Budget) -> RetryLayer {
    RetryLayer::builder().policy(Policy::tool_reliability()).budget(budget.clone()).build().unwrap()
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
        assert!(facts(&*error).unwrap().is_exhausted());
        assert_eq!(exhausted(&error).code(), code::RETRY_EXHAUSTED);
        ends.push((exhausted(&error).attempts(), exhausted(&error).why()));
    }
    assert_eq!(ends, [(4, Why::Attempts), (2, Why::Budget), (1, Why::Budget)]);
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
async fn a_retry_dropped_before_it_starts_gives_its_token_back() {
    const CAPACITY: u64 = 100_000;
    #[expect(clippy::cast_possible_truncation)]
    let budget = Budget::builder().per_success(0.0).capacity(CAPACITY as u32).build().unwrap();
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
    let report = drops::at_random(11, 4_000, || tool.clone().oneshot(search())).await;

    assert_eq!((report.finished + report.dropped, report.stuck), (4_000, 0));
    assert!(report.dropped > 500, "{report:?}");
    assert_eq!(CAPACITY - budget.available(), retries.load(Ordering::Relaxed));
    assert_eq!((asked.in_flight(), asked.reserved(), asked.waiting()), (0, 0, 0));
}
