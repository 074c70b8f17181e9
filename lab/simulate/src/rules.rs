//! The policies of clients: ours, as they are, and others', as small state machines.
mod aws;
mod breaker;
mod grpc;
mod ours;
mod plain;
mod resilience4j;
mod tower_resilience;

pub(crate) use self::ours::{COOLDOWN, read};
use crate::{
    backend::Fault,
    plan::Plan,
    tape::Tape,
    world::{World, run},
};
use std::{cell::RefCell, rc::Rc, time::Duration};

/// The policy of the clients of one process.
pub(crate) trait Caller: 'static {
    fn new(world: &Rc<World>) -> Self;

    /// Makes one call, with its attempts. Says whether it ended well.
    async fn call(&self, world: &World) -> bool;
}

/// Rules with a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named {
    pub(crate) name: &'static str,
    pub(crate) whose: Whose,
    pub(crate) has_breaker: bool,
    pub(crate) run: fn(&Plan, u64) -> Tape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    Ours,
    Peers,
    /// The baseline: no policy.
    Bare,
}

/// All rules, ours first.
pub(crate) const ALL: &[Named] = &[
    named::<ours::Both>("tool-reliability", Whose::Ours, true),
    named::<ours::RetryWithBudget>("its retry alone, with a budget", Whose::Ours, false),
    named::<Peer<resilience4j::Rules>>("resilience4j", Whose::Peers, true),
    named::<Peer<tower_resilience::Rules>>("tower-resilience", Whose::Peers, true),
    named::<Peer<grpc::Rules>>("gRPC", Whose::Peers, false),
    named::<Peer<aws::Rules>>("AWS SDK", Whose::Peers, false),
    named::<Peer<plain::Rules>>("4 plain attempts", Whose::Bare, false),
    named::<Peer<plain::NoRetries>>("no retries", Whose::Bare, false),
];

const fn named<C: Caller>(name: &'static str, whose: Whose, has_breaker: bool) -> Named {
    Named { name, whose, has_breaker, run: run::<C> }
}

/// The policy of another library in one process. Pure: time and randomness are arguments.
trait PeerRules: Default + 'static {
    /// Whether an attempt may start.
    fn admit(&mut self, _now: Duration) -> bool {
        true
    }

    /// An attempt that was admitted has ended; `before` is what the call's previous one failed with.
    fn ended(&mut self, _now: Duration, _end: Result<(), Fault>, _before: Option<Failed>) {}

    /// How long to wait after this failed attempt, the first being 0; `None`: it was the last.
    fn again(&mut self, attempt: u32, failed: Failed, draw: f64) -> Option<Duration>;
}

/// What a caller sees of an attempt that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failed {
    At(Fault),
    /// The rules did not admit it.
    NotPermitted,
}

struct Peer<R>(RefCell<R>);

impl<R: PeerRules> Caller for Peer<R> {
    fn new(_: &Rc<World>) -> Self {
        Self(RefCell::default())
    }

    async fn call(&self, world: &World) -> bool {
        let (mut now, mut before) = (world.now(), None);
        for attempt in 0.. {
            let may_start = self.0.borrow_mut().admit(now);
            let failed = if may_start {
                let end = world.attempt(now).await;
                now = world.now();
                self.0.borrow_mut().ended(now, end, before);
                let Err(fault) = end else { return true };
                Failed::At(fault)
            } else {
                Failed::NotPermitted
            };
            before = Some(failed);
            let again = self.0.borrow_mut().again(attempt, failed, world.draw());
            let Some(delay) = again else { break };
            world.wait_until(now + delay).await;
            now = world.now();
        }
        false
    }
}

/// `base` doubled for each attempt, at most `cap`.
fn doubled(base: Duration, attempt: u32, cap: Duration) -> Duration {
    (base * 2_u32.pow(attempt)).min(cap)
}
