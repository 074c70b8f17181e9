//! Claims a call in the store, or gets its recorded end.
use super::{
    client::{Client, StoreCall},
    held::Held,
    probe::UnresolvedCall,
};
use crate::{
    codec::{Found, Place, Unreadable},
    end::{Refusal, Run, State, unknown},
    protocol::{self, Millis},
    store::{Before, Change, Claimed, Seen, StoreError, StoreErrorKind, Stored},
};
use std::{
    borrow::Cow,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tr_core::{Effect, Ran, Verdict, WhenStoreFails};

/// How long after the end of a lease a waiter looks again.
const MARGIN: Duration = Duration::from_millis(5);

/// The pause before a waiter watches again after a failure.
const PAUSE: Duration = Duration::from_millis(250);

/// The timeout for reading the record of a call whose claim could not be written.
const READ: Duration = Duration::from_millis(200);

/// The most probes that one caller starts.
const PROBES: usize = 2;

/// The result of a claim.
pub(crate) enum Obtained<V> {
    /// The call may run.
    Run(Box<Held<V>>),
    /// The call may run without a record: the store is unavailable, and the policy allows that.
    Open,
    /// The call has ended.
    Answer(RecordedEnd<V>),
    Refuse(Refusal),
}

/// The end of a call by its record.
pub(crate) struct RecordedEnd<V> {
    pub(crate) state: State<V>,
    /// How long ago it was, and how long the record lasts.
    pub(crate) age: Millis,
    pub(crate) left: Millis,
    /// Whether another process ran the call meanwhile.
    pub(crate) waited: bool,
}

impl<V: Clone + Send + 'static> StoreCall<V> {
    /// Claims; waits while another process runs the call, and claims again.
    pub(crate) async fn obtain(&self) -> Obtained<V> {
        let refused = match self.ask().await {
            Ok(obtained) => return obtained,
            Err(Refusal::Unavailable(error, Ran::No))
                if self.effect == Effect::Mutating
                    && error.kind() == StoreErrorKind::Unreachable =>
            {
                Refusal::Unavailable(error, self.recorded().await)
            }
            Err(refused) => refused,
        };
        // A record that cannot be read blocks a mutating call, and so does one that the store reported
        // before it became unavailable.
        let may_run = match refused {
            Refusal::Unavailable(_, Ran::No) => true,
            Refusal::Unavailable(..) | Refusal::Unreadable(..) => self.effect != Effect::Mutating,
            _ => false,
        };
        match self.remote.settings.policy[self.effect as usize] {
            WhenStoreFails::Run if may_run => Obtained::Open,
            _ => Obtained::Refuse(refused),
        }
    }

    async fn ask(&self) -> Result<Obtained<V>, Refusal> {
        let Self { remote, claim, wait, deadline, .. } = self;
        let mut held = Box::new(Held::new(remote.clone(), claim.clone()));
        let (mut waited, mut probes, mut until) = (false, 0, self.until);
        loop {
            let claimed = held.claim(*deadline).await;
            let claimed = claimed.map_err(|error| failed(error, self.ran()))?;
            let found = matches!(claimed, Claimed::Busy { .. } | Claimed::Unknown(_));
            self.found.store(found, Relaxed);
            match claimed {
                Claimed::Run(grant) => {
                    let Some(before) = &grant.before else { return Ok(Obtained::Run(held)) };
                    let found = Found::before(&claim.key, &claim.digest, &before.state);
                    held.earlier = earlier_runs(remote, &found, before);
                    // The record that allowed this call to run again may be forged.
                    return match remote.format.allows_again(&found, &before.state) {
                        Err(why) if claim.mutating => Err(self.bar(held, why).await),
                        _ => Ok(Obtained::Run(held)),
                    };
                }
                Claimed::Busy { .. } if !wait => return Err(Refusal::InFlight),
                Claimed::Busy { seen, lease_left } => {
                    waited = true;
                    let now = Instant::now();
                    let look = now + Duration::from_millis(lease_left) + MARGIN;
                    let until = *until.get_or_insert(now + self.max_wait);
                    self.watch(seen, look, until).await?;
                }
                Claimed::Settled(stored) => {
                    let kept = remote.format.read(&claim.key, &stored.record);
                    let state = kept.map_err(|why| unreadable(why, &stored.record.state))?;
                    let age = stored.now.saturating_sub(stored.record.changed_at);
                    let left = stored.record.until.saturating_sub(stored.now);
                    return Ok(Obtained::Answer(RecordedEnd { state, age, left, waited }));
                }
                Claimed::Unknown(stored) => {
                    probes += 1;
                    let settled = probes <= PROBES && self.probe(&stored).await?;
                    if !settled {
                        let found = Found::body(&claim.key, &stored.record);
                        let recorded = remote.format.history(&found);
                        return Err(Refusal::Unknown(
                            recorded.ok().and_then(|(_, recorded, _)| recorded),
                        ));
                    }
                }
                Claimed::Conflict => return Err(Refusal::Conflict),
                Claimed::Full => return Err(Refusal::Full(None)),
            }
        }
    }

    /// For a call that was granted and cannot start, since the store has become unavailable: the
    /// policy for its effect decides.
    pub(crate) fn without_store(&self, error: StoreError) -> Obtained<V> {
        match self.remote.settings.policy[self.effect as usize] {
            WhenStoreFails::Run => Obtained::Open,
            _ => Obtained::Refuse(Refusal::Unavailable(Arc::new(error), Ran::No)),
        }
    }

    /// Whether the tool ran, by a record that can still be read while no claim can be written: in a
    /// file that another process keeps locked.
    async fn recorded(&self) -> Ran {
        match timeout(READ, self.remote.gate.read(&self.claim.key)).await {
            Ok(Ok(Some(stored))) => match stored.record.state {
                protocol::State::Done(_) => Ran::Yes,
                protocol::State::Cancelled(_) => Ran::No,
                _ => Ran::Unknown,
            },
            _ => Ran::No,
        }
    }

    /// Waits until another process's call may have ended, the deadline, or the end of the longest wait.
    async fn watch(&self, seen: Seen, look: Instant, until: Instant) -> Result<(), Refusal> {
        let watching = async {
            if self.remote.gate.watch(&self.claim.key, seen).await.is_err() {
                sleep(PAUSE).await;
            }
        };
        let first = self.deadline.into_iter().chain([until]).fold(look, Instant::min);
        let _ = timeout_at(first, watching).await;
        let now = Instant::now();
        match self.deadline {
            Some(deadline) if now >= deadline => Err(Refusal::WaitTimedOut),
            _ if now >= until => Err(Refusal::InFlight),
            _ => Ok(()),
        }
    }

    /// Runs the probe, if there is one, and settles the record by its finding. Returns whether it did.
    async fn probe(&self, stored: &Stored) -> Result<bool, Refusal> {
        let Self { remote, claim, deadline, .. } = self;
        let Some(probe) = &remote.probe else { return Ok(false) };
        let record = remote.shown(stored);
        let unresolved = UnresolvedCall { key: claim.key, epoch: record.epoch, record };
        let Some(state) = probe.find(&unresolved, *deadline).await else { return Ok(false) };
        let ttl = claim.ttls.of(&state);
        // With the digest of this request: the one in the store may have been tampered with.
        let place = Place { digest: claim.digest, ..Place::by_hand(claim.key, &stored.record) };
        let (end, _) = remote.format.write(&place, &state, ttl, &[], None);
        let settle = Change::Settle(Some(stored.record.token), Cow::Owned(end));
        let settle = remote.gate.change(&claim.key, settle);
        // If another process settled it first, the next claim shows that.
        let settled = remote.gate.within(*deadline, settle).await;
        settled.map(|_| true).map_err(|error| failed(error, self.ran()))
    }

    /// Records the call as unknown, so that neither this caller nor another runs it: its record is not
    /// trusted.
    async fn bar(&self, held: Box<Held<V>>, why: Unreadable) -> Refusal {
        let state = unknown(Verdict::Permanent, format!("its record cannot be trusted: {why}"));
        held.finish(&state, self.claim.ttls.unknown).0.await;
        Refusal::Unreadable(Arc::new(StoreError::unreadable(why)), Ran::Unknown)
    }
}

/// The runs before this one, for operators; none if they cannot be read.
fn earlier_runs<V>(remote: &Client<V>, found: &Found<'_>, before: &Before) -> Vec<Run> {
    let read = remote.format.history(found);
    let (mut runs, recorded, settled) = read.unwrap_or_default();
    let last = Run::of(&before.state, recorded.as_deref(), before.claimed_at, before.changed_at);
    runs.extend(last.map(|run| Run { settled, ..run }));
    runs
}

/// The refusal after a failed request: the tool did not run here, or its record cannot be read.
fn failed(error: StoreError, ran: Ran) -> Refusal {
    match error.kind() {
        StoreErrorKind::Unreadable => Refusal::Unreadable(Arc::new(error), Ran::Unknown),
        StoreErrorKind::Full => Refusal::Full(Some(Arc::new(error))),
        _ => Refusal::Unavailable(Arc::new(error), ran),
    }
}

/// A record whose response cannot be read still says whether the call ran.
fn unreadable<D, F>(why: Unreadable, state: &protocol::State<D, F>) -> Refusal {
    let ran = match state {
        protocol::State::Done(_) => Ran::Yes,
        _ => Ran::Unknown,
    };
    Refusal::Unreadable(Arc::new(StoreError::unreadable(why)), ran)
}
