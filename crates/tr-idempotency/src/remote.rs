//! Records in a store: what runs know of them, so that they know neither stores nor bytes.
//!
//! [`local`](crate::local) holds the records of this process in memory. A layer with a store also
//! has a [`Remote`]: a run claims there what it has claimed here, holds the [`Lease`] while it
//! runs, and records its end there first. All of it is I/O, and boxed. Each future may be dropped
//! at any await: a claim that may have been granted is then released in a task of its own.
mod claim_attempt;
pub(crate) mod client;
pub(crate) mod gate;
mod held;
pub(crate) mod local_probe;
mod obtain;
pub(crate) mod probe;
mod unrecorded;

use crate::{
    end::{Refusal, State},
    local::table::LocalClaim,
    protocol::Millis,
    store::{ClaimRequest, StoreError},
};
use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::Instant;
use tr_core::{BoxError, CallInfo, Effect, Observer, Ran, RecordRef};

/// A boxed future.
pub(crate) type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Boxes a future: beside I/O, a box costs nothing.
pub(crate) fn boxed<T>(future: impl Future<Output = T> + Send + 'static) -> Boxed<T> {
    Box::pin(future)
}

/// The records that a layer keeps in a store.
pub(crate) trait Remote<V>: Send + Sync {
    fn settings(&self) -> &Settings;

    /// A claim of this call, by an owner of its own.
    fn claim_of(
        &self,
        local: &LocalClaim<'_>,
        info: &CallInfo<'_>,
        record: &RecordRef<'_>,
    ) -> ClaimRequest;

    /// The same claim by another owner: the former was lost before the call started.
    fn by_another_owner(&self, claim: &ClaimRequest) -> ClaimRequest;

    /// Claims; waits while another process runs the call, and claims again.
    fn obtain(self: Arc<Self>, request: Request) -> Boxed<Obtained<V>>;
}

/// A claim that the store has granted.
///
/// Dropped before the call was started, it is released; after that, the call is recorded as
/// unknown. Each happens in a task of its own; without a runtime, the end of the lease does it.
pub(crate) trait Lease<V>: Send {
    fn epoch(&self) -> u64;

    /// Sets whether the tool may have started.
    fn set_started(&mut self, started: bool);

    /// Polls the renewal, so that the task wakes when the next one is due.
    fn keep(&mut self, cx: &mut Context<'_>);

    /// Whether the claim is still held, so that the call may start now. If the lease has ended
    /// meanwhile, it is renewed first, a few times.
    fn poll_lease(&mut self, cx: &mut Context<'_>) -> Poll<LeaseCheck>;

    /// Records the end. Also returns whether a duplicate will get the whole response.
    fn finish(self: Box<Self>, state: &State<V>, ttl: Millis) -> (Boxed<Recorded>, bool);

    /// Deletes the record of a call that has run: a repeat is safe, and there is no response to
    /// keep.
    fn forget(self: Box<Self>) -> Boxed<Recorded>;
}

/// What runs need of a layer's settings for its store.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) policy: Policy,
    /// How long a recorded success is replayed from memory, without a request.
    pub(crate) memory: Option<Duration>,
    /// Whether the store keeps responses and error texts, and not only states.
    pub(crate) keeps_answers: bool,
    /// The name of the service, for callers without a session.
    pub(crate) instance: Option<Box<str>>,
}

/// What to do with a call while the store is unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenStoreFails {
    /// Refuses it: [`StoreUnavailable`](crate::error::StoreUnavailable), the tool did not run.
    Refuse,
    /// Runs it without a record; only duplicates in this process join it. A mutating call that the store has
    /// reported as running, or as of unknown outcome, is refused nevertheless.
    Run,
}

/// By effect: what to do with a call while the store is unavailable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    pub(crate) read_only: WhenStoreFails,
    pub(crate) idempotent: WhenStoreFails,
    pub(crate) mutating: WhenStoreFails,
}

impl Default for Settings {
    fn default() -> Self {
        use WhenStoreFails::{Refuse, Run};
        let policy = Policy { read_only: Run, idempotent: Run, mutating: Refuse };
        Self { policy, memory: None, keeps_answers: true, instance: None }
    }
}

impl Policy {
    pub(crate) const fn of(&self, effect: Effect) -> WhenStoreFails {
        match effect {
            Effect::ReadOnly => self.read_only,
            Effect::Idempotent => self.idempotent,
            Effect::Mutating => self.mutating,
        }
    }
}

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
    Run(Box<dyn Lease<V>>),
    /// The call may run without a record: the store is unavailable, and the policy allows that.
    Open,
    /// The call has ended; this is its recorded end.
    Answer {
        state: State<V>,
        age: Millis,
        left: Millis,
        waited: bool,
    },
    Refuse(Refusal),
}

/// Whether a call may start.
pub(crate) enum LeaseCheck {
    /// The claim is ours.
    Held,
    /// Another process has the claim.
    Lost,
    /// The store is unavailable.
    Failed(StoreError),
}

/// Whether an end was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    Yes,
    /// Not yet: a task retries.
    Later,
    /// No: the claim was lost, or the store refuses.
    No,
}

/// How long recording is retried; the process keeps the response in memory meanwhile.
pub(crate) const TRIED: Duration = Duration::from_secs(600);

/// The claim that a call requests from a store.
pub(crate) struct StoreRequest<V> {
    pub(crate) remote: Arc<dyn Remote<V>>,
    pub(crate) request: Request,
    pub(crate) observer: Option<Arc<dyn Observer>>,
}

/// A run's requests to the store. `R` is the tool's response.
pub(crate) struct StoreCall<R, V> {
    pub(crate) store_request: StoreRequest<V>,
    pub(crate) stage: Stage<R, V>,
}

pub(crate) enum Stage<R, V> {
    /// Waits for the store to grant or refuse the claim.
    Claiming(Boxed<Obtained<V>>),
    /// The claim is granted.
    Held(Box<dyn Lease<V>>),
    /// The store is unavailable; the call runs without a record.
    Open,
    /// The tool has run; its end is being recorded.
    Ending(Ending<R, V>),
    Over,
}

pub(crate) struct Ending<R, V> {
    pub(crate) recording: Boxed<Recorded>,
    pub(crate) end: Result<R, BoxError>,
    pub(crate) state: Option<State<V>>,
    /// A duplicate will get the whole response.
    pub(crate) whole: bool,
}

impl<R, V: Clone + Send + 'static> StoreCall<R, V> {
    pub(crate) fn new(store_request: StoreRequest<V>) -> Self {
        let stage =
            Stage::Claiming(store_request.remote.clone().obtain(store_request.request.clone()));
        Self { store_request, stage }
    }

    /// Claims again as another owner: the first claim was lost before the call started.
    pub(crate) fn claim_again(&mut self) {
        let StoreRequest { remote, request, .. } = &mut self.store_request;
        request.claim = Arc::new(remote.by_another_owner(&request.claim));
        self.stage = Stage::Claiming(remote.clone().obtain(request.clone()));
    }
}
