//! The actions of the model.
use super::{
    super::State,
    Lease,
    bugs::Bug,
    world::{Answer, CALLERS, Caller, End, LEASE, Late, NOON, Run, Step, World},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Claims, or claims again.
    Claim(usize, Fate),
    /// Claims with other params.
    ClaimOther(usize, Fate),
    /// Stops: its deadline has passed.
    GiveUp(usize),
    Renew(usize),
    Enter(usize),
    /// Releases its claim.
    Release(usize),
    /// Passes its claim to a waiter in the same process.
    Pass(usize, usize),
    End(usize, End),
    Finish(usize, Fate),
    /// The replica confirms the write that a caller waits for.
    Followed(usize),
    /// Too few replicas confirm it in time.
    NotFollowed(usize),
    Crash(usize),
    /// A message that was considered lost arrives.
    Arrive,
    /// Half a lease passes.
    Tick,
    /// The store's clock jumps by a lease.
    Jump(i8),
    /// An operator finds out how a lost call ended.
    Settle {
        done: bool,
    },
    /// The store evicts a record.
    Evict,
    /// A record expires, or an operator flushes a settled record.
    Forget,
    Follow,
    /// The replica is promoted; one caller may still reach the old primary.
    Failover(Option<usize>),
    /// The old primary comes back as a replica.
    Heal,
    /// A recovery writes the claim that it decided on before.
    Overwrite(usize),
}

/// What happens to a message and its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Answered,
    /// It does not arrive, or arrives much later.
    Lost,
    /// It arrives, and its reply does not.
    Unanswered,
}

const FATES: [Fate; 3] = [Fate::Answered, Fate::Lost, Fate::Unanswered];

impl Action {
    /// All actions; impossible ones return `None` in [`take`](Self::take).
    pub(super) fn all(callers: usize, into: &mut Vec<Self>) {
        for by in 0..callers {
            for fate in FATES {
                into.extend([Self::Claim(by, fate), Self::Finish(by, fate)]);
            }
            into.extend([Self::GiveUp(by), Self::Renew(by), Self::Enter(by), Self::Release(by)]);
            into.extend([End::Done, End::Failed, End::Unknown].map(|end| Self::End(by, end)));
            into.extend([Self::Followed(by), Self::NotFollowed(by), Self::Crash(by)]);
            into.extend((0..callers).map(|to| Self::Pass(by, to)));
            into.extend([Self::Failover(Some(by)), Self::Overwrite(by)]);
        }
        into.extend(FATES.map(|fate| Self::ClaimOther(callers - 1, fate)));
        into.extend([true, false].map(|done| Self::Settle { done }));
        into.extend([Self::Arrive, Self::Tick, Self::Jump(1), Self::Jump(-1), Self::Evict]);
        into.extend([Self::Forget, Self::Follow, Self::Failover(None), Self::Heal]);
    }

    /// Whether the action is a fault.
    const fn is_fault(self) -> bool {
        match self {
            Self::Claim(_, fate) | Self::ClaimOther(_, fate) | Self::Finish(_, fate) => {
                !matches!(fate, Fate::Answered)
            }
            Self::GiveUp(_) | Self::NotFollowed(_) | Self::Crash(_) | Self::Jump(_) => true,
            Self::Settle { .. } | Self::Evict | Self::Forget | Self::Failover(_) => true,
            _ => false,
        }
    }

    /// Takes the action; `None` if it is impossible.
    pub(super) fn take(self, lease: &Lease, mut world: World) -> Option<World> {
        world.callers.iter_mut().for_each(Caller::leave);
        if self.is_fault() {
            world.faults = world.faults.checked_sub(1)?;
        }
        match self {
            Self::Claim(by, fate) => world.send_claim(lease, by, fate)?,
            Self::ClaimOther(by, fate) => {
                (world.callers[by].step == Step::Fresh).then_some(())?;
                world.callers[by].other = true;
                world.send_claim(lease, by, fate)?;
            }
            Self::GiveUp(by) => {
                matches!(world.callers[by].step, Step::Unsure | Step::Waits).then_some(())?;
                world.callers[by].step = Step::Told(Answer::Refused);
            }
            Self::Renew(by) => world.renew(lease, by)?,
            Self::Enter(by) => {
                let Step::Holds { token, until } = world.callers[by].step else { return None };
                let awake = world.now < until || lease.bug == Some(Bug::SleptThrough);
                awake.then_some(())?;
                world.callers[by].step = Step::Runs { token, until };
                world.callers[by].run = Run::Under;
            }
            Self::Release(by) => {
                let Step::Holds { token, .. } = world.callers[by].step else { return None };
                world.callers[by].step = Step::Told(Answer::Refused);
                world.withdraw(by, token);
            }
            Self::Pass(by, to) => world.pass(lease, by, to)?,
            Self::End(by, end) => {
                let Step::Runs { token, .. } = world.callers[by].step else { return None };
                world.callers[by].step = Step::Ended { token, end };
                if world.callers[by].run == Run::Under {
                    world.callers[by].run = end.run();
                }
            }
            Self::Finish(by, fate) => world.send_end(lease, by, fate)?,
            Self::Followed(by) => {
                world.is_followed(by).then_some(())?;
                match world.callers[by].step {
                    Step::Claims { token, until } => world.hold(by, token, until),
                    Step::Records { .. } => {
                        world.callers[by].step = Step::Told(Answer::Own { recorded: true });
                    }
                    _ => return None,
                }
            }
            Self::NotFollowed(by) => match world.callers[by].step {
                Step::Claims { token, .. } => {
                    world.callers[by].step = Step::Told(Answer::Refused);
                    world.withdraw(by, token);
                }
                Step::Records { .. } => {
                    world.callers[by].step = Step::Told(Answer::Own { recorded: false });
                }
                _ => return None,
            },
            Self::Crash(by) => world.crash(by)?,
            Self::Arrive => match world.late.take()? {
                Late::Claim(by) => drop(world.claim(lease, by)),
                Late::Finish { token, end } => {
                    let now = world.store_now();
                    world.primary.finish(token, end, now, lease.bug);
                }
            },
            Self::Tick => {
                world.now += 1;
            }
            Self::Jump(way) => {
                lease.clock_jumps.then_some(())?;
                world.ahead += way * LEASE as i8;
            }
            Self::Settle { done } => world.settle(lease, done)?,
            Self::Evict => {
                let live = lease.bug == Some(Bug::LiveEvicted);
                let record = world.primary.record.as_ref()?;
                (live || !record.is_pinned()).then_some(())?;
                if record.is_pinned() { world.primary.record = None } else { world.forget() }
            }
            Self::Forget => {
                let mut record = world.primary.record.clone()?;
                let settled = !matches!(record.state, State::Inflight);
                let end = record.until;
                (settled && record.expire(end)).then_some(())?;
                // Records last far longer than leases.
                let leases = world.callers.iter_mut().filter_map(|caller| caller.step.until_mut());
                leases.for_each(|until| *until = NOON);
                world.forget();
            }
            Self::Follow => {
                let replica = world.replica.as_mut()?;
                (*replica != world.primary).then_some(())?;
                replica.clone_from(&world.primary);
            }
            Self::Failover(cut) => {
                let next = world.replica.take()?;
                let old = std::mem::replace(&mut world.primary, next);
                world.deposed = Some((old, cut.unwrap_or(CALLERS)));
                world.disconnect();
            }
            Self::Heal => {
                world.deposed.take()?;
                world.replica = Some(world.primary.clone());
                world.disconnect();
            }
            Self::Overwrite(by) => {
                (world.callers[by].step == Step::Peeked).then_some(())?;
                world.primary.record = None;
                world.send_claim(lease, by, Fate::Answered)?;
            }
        }
        world.level(lease);
        Some(world)
    }
}
