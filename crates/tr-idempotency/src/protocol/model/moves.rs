//! The moves of callers and operators, and the replies of servers.
use super::{
    super::{Millis, Reply, State, Token},
    Lease,
    action::Fate,
    bugs::Bug,
    world::{Answer, CALLERS, LEASE, Late, Rec, Run, Step, TTLS, World, caller, owner},
};

impl World {
    /// Sends a claim and handles its reply.
    pub(super) fn send_claim(&mut self, lease: &Lease, by: usize, fate: Fate) -> Option<()> {
        let step = self.callers[by].step;
        matches!(step, Step::Fresh | Step::Unsure | Step::Waits | Step::Peeked).then_some(())?;
        if lease.bug == Some(Bug::RecoveryOverwrites) && step == Step::Waits && self.is_free() {
            self.callers[by].step = Step::Peeked;
            return Some(());
        }
        if fate == Fate::Lost {
            self.late = self.late.or(Some(Late::Claim(by)));
            self.callers[by].step = Step::Unsure;
            return Some(());
        }
        let reply = self.claim(lease, by);
        self.callers[by].step = match reply {
            _ if fate == Fate::Unanswered => Step::Unsure,
            Reply::Claimed(_) => return self.granted(lease, by),
            // The caller with best effort does not wait.
            Reply::Busy if by == 1 => Step::Told(Answer::InFlight),
            Reply::Busy => Step::Waits,
            Reply::Unknown => Step::Told(Answer::Unknown),
            Reply::Settled => Step::Told(Answer::Replay(self.owner(by))),
            Reply::Conflict => Step::Told(Answer::Conflict(self.owner(by))),
        };
        if lease.bug == Some(Bug::DuplicateDeletes) && reply == Reply::Busy {
            self.server(by).record = None;
        }
        Some(())
    }

    /// Whether a reader sees a record that may be claimed.
    fn is_free(&self) -> bool {
        let failed = |record: &Rec| matches!(record.state, State::Failed(..) | State::Cancelled(_));
        self.primary.record.as_ref().is_none_or(failed)
    }

    fn owner(&self, by: usize) -> Option<usize> {
        caller(self.record_for(by)?.token)
    }

    /// How a caller handles the reply: by its own clock the lease began when it sent the claim.
    fn granted(&mut self, lease: &Lease, by: usize) -> Option<()> {
        let record = self.record_for(by)?;
        let left = record.until.saturating_sub(self.store_now());
        let (token, until) = (record.token, self.now + left);
        if lease.waits_for_replica {
            self.callers[by].step = Step::Claims { token, until };
        } else {
            self.hold(by, token, until);
        }
        Some(())
    }

    /// From here on a caller believes that it has the claim.
    pub(super) fn hold(&mut self, by: usize, token: Token, until: Millis) {
        self.callers[by].step = Step::Holds { token, until };
        let others = self.callers.iter_mut().filter_map(|caller| caller.step.token_mut());
        self.stalled |= others.filter(|other| other.epoch == token.epoch).count() > 1;
        self.top = self.top.max(token.epoch);
    }

    /// The replica's content can no longer matter.
    pub(super) fn disconnect(&mut self) {
        for caller in &mut self.callers {
            caller.step = match caller.step {
                Step::Claims { .. } => Step::Unsure,
                Step::Records { token, end } => Step::Ended { token, end },
                step => step,
            };
        }
    }

    /// Whether the replica has all writes of the primary, and this caller gets that confirmation.
    pub(super) fn is_followed(&self, by: usize) -> bool {
        let is_cut = self.deposed.as_ref().is_some_and(|(_, cut)| *cut == by);
        !is_cut && self.replica.as_ref() == Some(&self.primary)
    }

    /// A claim reaches its server.
    pub(super) fn claim(&mut self, lease: &Lease, by: usize) -> Reply<(), ()> {
        let epoch = self.next_epoch(lease, by);
        let ask = self.ask(by, lease.mutating, epoch);
        let reply = self.server(by).claim(&ask, lease.bug);
        if self.record_for(by).is_some_and(|record| record.token == ask.token) {
            self.count(by, epoch);
        }
        reply
    }

    /// By the server's own counter, or by the servers' roughly synchronized clock.
    fn next_epoch(&mut self, lease: &Lease, by: usize) -> u64 {
        let last = self.record_for(by).map_or(0, |record| record.token.epoch);
        let counted = if lease.counted_epochs { self.server(by).claims } else { self.claims };
        last.max(counted) + 1
    }

    /// Grants an epoch.
    fn count(&mut self, by: usize, epoch: u64) {
        self.stalled |= epoch <= self.top;
        self.claims = self.claims.max(epoch);
        self.server(by).claims = epoch;
    }

    pub(super) fn renew(&mut self, lease: &Lease, by: usize) -> Option<()> {
        let now = self.store_now();
        let local = self.now;
        let step = self.callers[by].step;
        let (Step::Holds { token, .. } | Step::Runs { token, .. }) = step else { return None };
        let record = self.server(by).record.as_mut();
        let mut renewed = record.is_some_and(|record| record.renew(token, now, LEASE));
        if lease.waits_for_replica && renewed {
            let is_cut = self.deposed.as_ref().is_some_and(|(_, cut)| *cut == by);
            renewed = !is_cut && self.replica.is_some();
            if renewed {
                self.replica = Some(self.primary.clone());
            }
        }
        let until = local + LEASE;
        self.callers[by].step = match step {
            Step::Holds { .. } if renewed => Step::Holds { token, until },
            Step::Holds { .. } => Step::Told(Answer::Refused),
            _ if renewed => Step::Runs { token, until },
            // It goes on: a started run cannot be stopped.
            _ => step,
        };
        Some(())
    }

    /// Releases a claim under which the call was not started.
    pub(super) fn withdraw(&mut self, by: usize, token: Token) {
        let server = self.server(by);
        if server.record.as_ref().is_some_and(|record| record.is_held_by(token)) {
            server.record = None;
        }
    }

    pub(super) fn pass(&mut self, lease: &Lease, by: usize, to: usize) -> Option<()> {
        let Step::Holds { token, until } = self.callers[by].step else { return None };
        let waits = self.callers[to].step == Step::Waits;
        (waits && !self.callers[to].other && !lease.waits_for_replica).then_some(())?;
        (self.now < until).then_some(())?;
        let epoch = self.next_epoch(lease, by);
        let (successor, now) = (Token { epoch, owner: owner(to) }, self.store_now());
        self.callers[by].step = Step::Told(Answer::Refused);
        let record = self.server(by).record.as_mut();
        if record.is_some_and(|record| record.pass(token, successor, now, LEASE)) {
            self.count(by, epoch);
            self.hold(to, successor, self.now + LEASE);
        }
        Some(())
    }

    pub(super) fn send_end(&mut self, lease: &Lease, by: usize, fate: Fate) -> Option<()> {
        let Step::Ended { token, end } = self.callers[by].step else { return None };
        if fate == Fate::Lost {
            self.late = self.late.or(Some(Late::Finish { token, end }));
            return Some(());
        }
        let now = self.store_now();
        let recorded = self.server(by).finish(token, end, now, lease.bug);
        if fate == Fate::Answered {
            let waits = recorded && lease.waits_for_replica;
            let told = Step::Told(Answer::Own { recorded });
            self.callers[by].step = if waits { Step::Records { token, end } } else { told };
        }
        Some(())
    }

    pub(super) fn crash(&mut self, by: usize) -> Option<()> {
        let caller = &mut self.callers[by];
        (!matches!(caller.step, Step::Fresh | Step::Told(_) | Step::Over)).then_some(())?;
        caller.step = Step::Over;
        if caller.run == Run::Under {
            caller.run = Run::Lost;
        }
        Some(())
    }

    /// A truthful operator: reads the target's state, not the record.
    pub(super) fn settle(&mut self, lease: &Lease, done: bool) -> Option<()> {
        // A caller's clock decides whether it will still start, unless that clock has jumped.
        (!lease.clock_jumps && self.deposed.is_none()).then_some(())?;
        let (now, epoch) = (self.store_now(), self.next_epoch(lease, CALLERS));
        let record = self.primary.record.as_mut()?;
        if record.expire(now) || !matches!(record.state, State::Unknown(_)) {
            return None;
        }
        let owner = &mut self.callers[caller(record.token)?];
        let truth = match owner.run {
            Run::Succeeded => done,
            Run::Never => !done,
            // The run had no effect.
            Run::Lost if !done => {
                owner.run = Run::Failed;
                true
            }
            _ => false,
        };
        truth.then_some(())?;
        let to = if done { State::Done(()) } else { State::Cancelled(None) };
        let by = Token { epoch, owner: Token::BY_HAND };
        record.settle(by, to, now, TTLS.done).ok()?;
        self.count(CALLERS, epoch);
        Some(())
    }
}
