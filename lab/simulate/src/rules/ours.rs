//! Our own retry and breaker: the real services, not a model of them.
use super::Caller;
use crate::{backend::Fault, world::World};
use std::{
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};
use tower::{Layer as _, Service, ServiceExt as _};
use tr_breaker::{Breaker, BreakerLayer};
use tr_core::{BoxError, Effect, Params, ToolCall, ToolOutcome};
use tr_retry::{Budget, Retry, RetryLayer};

/// How long the preset's breaker stays open for a tool that only reads.
pub(crate) const COOLDOWN: Duration = Duration::from_secs(20);

/// Both layers with their defaults.
#[derive(Debug)]
pub(crate) struct Both(Retry<Breaker<Leaf>>);

/// Retry with the preset, bounded by a budget with its defaults, and no breaker.
#[derive(Debug)]
pub(crate) struct RetryWithBudget(Retry<Leaf>);

/// A call of a tool that only reads, so that each of its failures may be retried.
pub(crate) fn read() -> ToolCall {
    ToolCall::new("search", Params::empty_object()).effect(Effect::ReadOnly)
}

impl Caller for Both {
    fn new(world: &Rc<World>) -> Self {
        let retry = RetryLayer::builder().seed(world.seed()).build().expect("the preset");
        Self(retry.layer(BreakerLayer::default().layer(Leaf(world.clone()))))
    }

    async fn call(&self, _: &World) -> bool {
        self.0.clone().oneshot(read()).await.is_ok()
    }
}

impl Caller for RetryWithBudget {
    fn new(world: &Rc<World>) -> Self {
        let budget = Budget::builder().build().expect("the defaults");
        let retry = RetryLayer::builder().seed(world.seed()).budget(budget);
        Self(retry.build().expect("the preset").layer(Leaf(world.clone())))
    }

    async fn call(&self, _: &World) -> bool {
        self.0.clone().oneshot(read()).await.is_ok()
    }
}

/// The backend as a tool.
#[derive(Clone, Debug)]
struct Leaf(Rc<World>);

impl Service<ToolCall> for Leaf {
    type Response = ToolOutcome;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<ToolOutcome, BoxError>>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: ToolCall) -> Self::Future {
        let world = self.0.clone();
        Box::pin(async move {
            world.attempt(world.now()).await.map(|()| ToolOutcome::default()).map_err(|fault| {
                BoxError::from(match fault {
                    Fault::Refused => "connection refused",
                    Fault::Busy => "503 Service Unavailable",
                    Fault::Timeout => "Tool timeout after 1s",
                })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{plan::Plan, world::run};

    struct BothWithBudget(Retry<Breaker<Leaf>>);

    impl Caller for BothWithBudget {
        fn new(world: &Rc<World>) -> Self {
            let budget = Budget::builder().build().unwrap();
            let retry = RetryLayer::builder().seed(world.seed()).budget(budget).build().unwrap();
            Self(retry.layer(BreakerLayer::default().layer(Leaf(world.clone()))))
        }

        async fn call(&self, _: &World) -> bool {
            self.0.clone().oneshot(read()).await.is_ok()
        }
    }

    #[test]
    fn a_budget_has_no_say_where_the_breaker_opens_first() {
        let plan = Plan::tiny();
        assert_eq!(run::<Both>(&plan, 5), run::<BothWithBudget>(&plan, 5));
        assert_ne!(run::<Both>(&plan, 5), run::<RetryWithBudget>(&plan, 5));
    }

    #[test]
    fn the_breaker_stays_open_for_the_cooldown_that_the_goal_names() {
        let plan = Plan::tiny().lasting(Duration::from_secs(1));
        let tape = run::<Both>(&plan, 5);
        let opened = plan.outage.start + Duration::from_secs(1);
        let reopens = opened + COOLDOWN;
        let served = |at: Duration| tape.seconds()[at.as_secs() as usize].served;
        assert_eq!(served(reopens - Duration::from_secs(2)), 0);
        assert!(served(reopens + Duration::from_secs(2)) > 0);
    }
}
