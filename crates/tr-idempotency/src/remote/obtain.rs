//! Claims a call in the store, or gets its recorded end.
use super::{
    Boxed, Remote, WhenStoreFails,
    claim_attempt::ClaimAttempt,
    held::Held,
    probe::{Finding, UnresolvedCall},
};
use crate::{
    codec::{Found, Place, Unreadable},
    end::{Failure, RecordedFailure, State},
    local::entry::Run,
    protocol::{self, Again, Millis},
    record::DedupeRecord,
    store::{ClaimRequest, Claimed, End, Grant, Seen, StoreError, StoreErrorKind, Stored},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tr_core::{Classification, Effect, Ran, Verdict, code};

/// How long after the end of a lease a waiter looks again.
const MARGIN: Duration = Duration::from_millis(5);

/// The pause before a waiter watches again after a failure.
const PAUSE: Duration = Duration::from_millis(250);

/// The timeout for reading the record of a call whose claim could not be written.
const READ: Duration = Duration::from_millis(200);

/// The most probes that one caller starts.
const PROBES: usize = 2;

/// A caller's claim, and how long the caller can wait.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) claim: Arc<ClaimRequest>,
    pub(crate) effect: Effect,
    /// Whether to wait for another process's run.
    pub(crate) wait: bool,
    pub(crate) deadline: Option<Instant>,
    /// The longest wait, whatever the deadline; and its end, once the wait has begun.
    pub(crate) max_wait: Duration,
    pub(crate) until: Option<Instant>,
    /// Whether the store has reported that another process runs the call, or may have run it.
    pub(crate) found: Arc<AtomicBool>,
}

impl Request {
    /// Whether the tool may have run in another process.
    pub(crate) fn ran(&self) -> Ran {
        if self.found.load(Relaxed) { Ran::Unknown } else { Ran::No }
    }
}

/// The result of a claim.
pub(crate) enum Obtained<V> {
    /// The call may run.
    Run(Held<V>),
    /// The call may run without a record: the store is unavailable, and the policy allows that.
    Open,
    /// The call has ended; this is its recorded end.
    Answer {
        state: State<V>,
        age: Millis,
        left: Millis,
        waited: bool,
    },
    Refuse(Refused),
}

/// Why a call is not run.
#[derive(Clone, Debug)]
pub(crate) enum Refused {
    Conflict,
    InFlight,
    WaitTimedOut,
    Full,
    Unknown(Option<Arc<RecordedFailure>>),
    /// The store is unavailable: the tool did not run, except perhaps in another process.
    Unavailable(Arc<StoreError>, Ran),
    /// The record cannot be read.
    Unreadable(Arc<StoreError>, Ran),
}

/// Claims; waits while another process runs the call, and claims again.
pub(crate) fn obtain<V>(remote: Arc<Remote<V>>, request: Request) -> Boxed<Obtained<V>>
where
    V: Clone + Send + 'static,
{
    Box::pin(async move {
        match ask(&remote, &request).await {
            Ok(obtained) => obtained,
            Err(refused) => {
                let refused = match refused {
                    Refused::Unavailable(error, Ran::No)
                        if request.effect == Effect::Mutating
                            && error.kind() == StoreErrorKind::Unreachable =>
                    {
                        let ran = recorded(&remote, &request.claim).await;
                        Refused::Unavailable(error, ran)
                    }
                    refused => refused,
                };
                // A record that cannot be read blocks a mutating call, and so does one that the
                // store reported before it became unavailable.
                let may_run = match refused {
                    Refused::Unavailable(_, Ran::No) => true,
                    Refused::Unavailable(..) | Refused::Unreadable(..) => {
                        request.effect != Effect::Mutating
                    }
                    _ => false,
                };
                match remote.policy.of(request.effect) {
                    WhenStoreFails::Run if may_run => Obtained::Open,
                    _ => Obtained::Refuse(refused),
                }
            }
        }
    })
}

async fn ask<V>(remote: &Arc<Remote<V>>, request: &Request) -> Result<Obtained<V>, Refused>
where
    V: Clone + Send + 'static,
{
    let Request { claim, wait, deadline, .. } = request;
    let mut asking = ClaimAttempt::new(remote.clone(), claim.clone());
    let (mut waited, mut probes, mut until) = (false, 0, request.until);
    loop {
        let claimed = asking.claim(*deadline).await;
        let (claimed, at) = claimed.map_err(|error| failed(error, request.ran()))?;
        let found = matches!(claimed, Claimed::Busy { .. } | Claimed::Unknown(_));
        request.found.store(found, Relaxed);
        match claimed {
            Claimed::Run(grant) => {
                let earlier = earlier_runs(remote, claim, &grant);
                asking.hand_over();
                let held = Held::new(remote.clone(), claim.clone(), &grant, at, earlier);
                return match forged(remote, claim, &grant) {
                    Some(why) if claim.mutating => Err(bar(held, claim, why).await),
                    _ => Ok(Obtained::Run(held)),
                };
            }
            Claimed::Busy { .. } if !wait => return Err(Refused::InFlight),
            Claimed::Busy { seen, lease_left } => {
                waited = true;
                let now = Instant::now();
                let look = now + Duration::from_millis(lease_left) + MARGIN;
                let until = *until.get_or_insert(now + request.max_wait);
                watch(remote, claim, seen, look, (*deadline, until)).await?;
            }
            Claimed::Settled(stored) => {
                let kept = remote.format.read(&claim.key, &stored.record);
                let state = kept.map_err(|why| unreadable(why, &stored.record.state))?;
                let age = stored.now.saturating_sub(stored.record.changed_at);
                let left = stored.record.until.saturating_sub(stored.now);
                return Ok(Obtained::Answer { state, age, left, waited });
            }
            Claimed::Unknown(stored) => {
                probes += 1;
                let settled = probes <= PROBES && probe(remote, request, &stored).await?;
                if !settled {
                    let found = Found::body(&claim.key, &stored.record);
                    let recorded = remote.format.history(&found, &stored.record.state);
                    return Err(Refused::Unknown(recorded.ok().and_then(|(_, recorded)| recorded)));
                }
            }
            Claimed::Conflict => return Err(Refused::Conflict),
            Claimed::Full => return Err(Refused::Full),
        }
    }
}

/// Whether the tool ran, by a record that can still be read while no claim can be written: in a
/// file that another process keeps locked.
async fn recorded<V>(remote: &Remote<V>, claim: &ClaimRequest) -> Ran {
    match timeout(READ, remote.store.read(&claim.key)).await {
        Ok(Ok(Some(stored))) => match stored.record.state {
            protocol::State::Done(_) => Ran::Yes,
            protocol::State::Cancelled(_) => Ran::No,
            _ => Ran::Unknown,
        },
        _ => Ran::No,
    }
}

/// Waits until another process's call may have ended, the deadline, or the end of the longest wait.
async fn watch<V>(
    remote: &Remote<V>,
    claim: &ClaimRequest,
    seen: Seen,
    look: Instant,
    (deadline, until): (Option<Instant>, Instant),
) -> Result<(), Refused> {
    let watching = async {
        if remote.store.watch(&claim.key, seen).await.is_err() {
            sleep(PAUSE).await;
        }
    };
    let first = deadline.into_iter().chain([until]).fold(look, Instant::min);
    let _ = timeout_at(first, watching).await;
    let now = Instant::now();
    match deadline {
        Some(deadline) if now >= deadline => Err(Refused::WaitTimedOut),
        _ if now >= until => Err(Refused::InFlight),
        _ => Ok(()),
    }
}

/// Runs the probe, if there is one, and settles the record by its finding. Returns whether it did.
async fn probe<V>(remote: &Remote<V>, request: &Request, stored: &Stored) -> Result<bool, Refused> {
    let Some(probe) = &remote.probe else { return Ok(false) };
    let Request { claim, deadline, .. } = request;
    let call = UnresolvedCall {
        key: claim.key,
        epoch: stored.record.token.epoch,
        record: DedupeRecord::of_stored(stored, &remote.format),
    };
    let patience = Instant::now() + remote.probe_patience;
    let until = deadline.map_or(patience, |deadline| deadline.min(patience));
    let Ok(finding) = timeout_at(until, probe.probe(&call)).await else { return Ok(false) };
    let state = match finding {
        Finding::Done(value) => State::Done(Some(value)),
        Finding::NotRun => State::Cancelled(None),
        Finding::StillUnknown => return Ok(false),
    };
    let ttl = claim.ttls.of(&state);
    // With the digest of this request: the one in the store may have been tampered with.
    let place = Place { digest: claim.digest, ..Place::by_hand(claim.key, &stored.record) };
    let end = End { state: remote.format.write(&place, &state, ttl, &[]).state, ttl };
    let settle = remote.store.settle(&claim.key, Some(stored.record.token), &end);
    // If another process settled it first, the next claim shows that.
    let settled = remote.within(*deadline, settle).await;
    settled.map(|_| true).map_err(|error| failed(error, request.ran()))
}

/// Why the record that allowed this call to run again is not trusted, if it is not.
fn forged<V>(remote: &Remote<V>, claim: &ClaimRequest, grant: &Grant) -> Option<Unreadable> {
    let before = grant.before.as_ref()?;
    let found = Found::before(&claim.key, &claim.digest, &before.state);
    remote.format.allows_again(&found, &before.state).err()
}

/// Records the call as unknown, so that neither this caller nor another runs it: its record is not
/// trusted.
async fn bar<V: Send + 'static>(held: Held<V>, claim: &ClaimRequest, why: Unreadable) -> Refused {
    let end = Classification::new(Verdict::Permanent, Ran::Unknown, code::OUTCOME_UNKNOWN);
    let recorded = Arc::new(RecordedFailure::new(
        end,
        Some(format!("its record cannot be trusted: {why}").into()),
    ));
    let state = State::Unknown(Some(Failure::of_error(recorded)));
    held.finish(&state, claim.ttls.unknown).0.await;
    Refused::Unreadable(Arc::new(StoreError::unreadable(why)), Ran::Unknown)
}

/// The runs before this one, for operators; none if they cannot be read.
fn earlier_runs<V>(remote: &Remote<V>, claim: &ClaimRequest, grant: &Grant) -> Vec<Run> {
    let Some(before) = &grant.before else { return Vec::new() };
    let found = Found::before(&claim.key, &claim.digest, &before.state);
    let read = remote.format.history(&found, &before.state);
    let (mut runs, recorded) = read.unwrap_or_default();
    runs.push(Run {
        started_at: before.claimed_at,
        finished_at: before.changed_at,
        success: matches!(before.state, protocol::State::Done(_)),
        retriable: matches!(
            before.state,
            protocol::State::Failed(_, Again::WhenAsked | Again::Freely)
        ),
        code: recorded.map(|recorded| recorded.code.clone()),
    });
    runs
}

/// The refusal after a failed request: the tool did not run here, or its record cannot be read.
fn failed(error: StoreError, ran: Ran) -> Refused {
    match error.kind() {
        StoreErrorKind::Unreadable => Refused::Unreadable(Arc::new(error), Ran::Unknown),
        _ => Refused::Unavailable(Arc::new(error), ran),
    }
}

/// A record whose response cannot be read still says whether the call ran.
fn unreadable<D, F>(why: Unreadable, state: &protocol::State<D, F>) -> Refused {
    let ran = match state {
        protocol::State::Done(_) => Ran::Yes,
        _ => Ran::Unknown,
    };
    Refused::Unreadable(Arc::new(StoreError::unreadable(why)), ran)
}
