//! A tool that is down behind layers upon layers that each retry: attempts at the tool for each call from outside.
use crate::rules::read;
use std::{
    future::{Ready, ready},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{runtime, time::sleep};
use tower::{
    Layer as _, Service as _, ServiceExt as _,
    retry::{Policy, RetryLayer as TowerRetryLayer},
    service_fn,
    util::BoxCloneService,
};
use tr_breaker::BreakerLayer;
use tr_core::{BoxError, ToolCall, ToolOutcome};
use tr_retry::RetryLayer;

/// Levels, each of which guards the one below.
pub(crate) const DEEPEST: u32 = 6;

/// Calls from outside, one every 100 ms: as long as the simulated outage.
const CALLS: u32 = 600;

/// Of tower's retries fewer calls will do: each brings the same number of attempts.
const CALLS_OF_TOWER: u32 = 5;

type Tool = BoxCloneService<ToolCall, ToolOutcome, BoxError>;

/// Attempts at the tool for each call from outside, by depth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Attempts {
    pub(crate) depth: u32,
    /// Our retry and breaker at each level.
    pub(crate) guarded: f64,
    /// Our retry alone at each level.
    pub(crate) retried: f64,
    /// `tower::retry` with 4 attempts at each level.
    pub(crate) tower: f64,
}

/// Measures all depths; the services are the real ones, under a paused clock.
pub(crate) fn measure() -> Vec<Attempts> {
    let time = runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    time.expect("a clock needs nothing").block_on(async {
        let mut rows = Vec::new();
        for depth in 1..=DEEPEST {
            rows.push(Attempts {
                depth,
                guarded: count(depth, CALLS, guard).await,
                retried: count(depth, CALLS, retry).await,
                tower: count(depth, CALLS_OF_TOWER, tower_retry).await,
            });
        }
        rows
    })
}

async fn count(depth: u32, calls: u32, level: fn(Tool) -> Tool) -> f64 {
    let attempts = Arc::new(AtomicU64::new(0));
    let counted = attempts.clone();
    let down = service_fn(move |_: ToolCall| {
        counted.fetch_add(1, Relaxed);
        ready(Err::<ToolOutcome, BoxError>("connection refused".into()))
    });
    let mut tool = (0..depth).fold(Tool::new(down), |inner, _| level(inner));
    for _ in 0..calls {
        let end = tool.ready().await.expect("always ready").call(read()).await;
        end.expect_err("the tool is down");
        sleep(Duration::from_millis(100)).await;
    }
    attempts.load(Relaxed) as f64 / f64::from(calls)
}

fn guard(inner: Tool) -> Tool {
    retry(Tool::new(BreakerLayer::default().layer(inner)))
}

fn retry(inner: Tool) -> Tool {
    Tool::new(RetryLayer::default().layer(inner))
}

fn tower_retry(inner: Tool) -> Tool {
    Tool::new(TowerRetryLayer::new(Again { left: 3 }).layer(inner))
}

/// Tries again whatever failed, at once.
#[derive(Clone, Debug)]
struct Again {
    left: u32,
}

impl Policy<ToolCall, ToolOutcome, BoxError> for Again {
    type Future = Ready<()>;

    fn retry(
        &mut self,
        _: &mut ToolCall,
        end: &mut Result<ToolOutcome, BoxError>,
    ) -> Option<Self::Future> {
        self.left = self.left.checked_sub(u32::from(end.is_err()))?;
        end.is_err().then(|| ready(()))
    }

    fn clone_request(&mut self, call: &ToolCall) -> Option<ToolCall> {
        Some(call.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_level_retried_no_level_above_multiplies() {
        for row in measure() {
            assert_eq!(row.tower, 4_f64.powi(row.depth as i32));
            assert_eq!(row.retried, 4.0, "at depth {}", row.depth);
            assert!(row.guarded <= 1.10, "{row:?}");
        }
    }
}
