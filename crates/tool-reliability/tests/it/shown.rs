//! What `Debug` shows of a stack.
use std::time::Duration;
use tool_reliability::{ToolStack, retry::RetryConfig};

#[test]
fn a_stack_fits_a_screen_and_its_durations_have_units() {
    let stack = ToolStack::builder()
        .deadline(Duration::from_secs(45))
        .retry(|retry| retry.config(RetryConfig::default()))
        .breaker(|breaker| breaker.cooldown(Duration::from_secs(7)))
        .idempotency(|records| records.failed_ttl(Duration::from_secs(90)))
        .build()
        .unwrap();
    let shown = format!("{stack:#?}");
    assert!(shown.lines().count() <= 20, "{shown}");
    assert!(shown.lines().all(|line| line.len() <= 350), "{shown}");
    for told in [
        "after: Some(45s)",
        "identical: 2",
        "done: 86400s",
        "failed: 90s",
        "grace: 60s",
        "attempts: 4, base: 200ms",
        "max_elapsed: Some(30s)",
        "cooldown: 7s",
        "after: Some(10s)",
    ] {
        assert!(shown.contains(told), "`{told}` is missing: {shown}");
    }
}
