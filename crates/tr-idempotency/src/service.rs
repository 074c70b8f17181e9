//! The service.
use crate::{
    bounds::{Answers, Detachable},
    codec::{Place, notes::RequestNote},
    config::{Config, ConflictPolicy, DerivedKeys},
    detached_call::{CellOf, DetachedCall, DriverOf},
    error::KeyRejected,
    future::{FutureOf, IdempotencyFuture},
    local::{Refusal, Store, Task, apply::LocalClaim, claim::Claim},
    remote::{
        Remote,
        local_probe::{LocalProbe, probe_local},
        obtain::Request,
    },
    store::ClaimRequest,
    store_call::{StoreCall, StoreRequest},
};
use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::time::Instant;
use tower_service::Service;
use tr_core::{
    BoxError, DedupeKey, DedupeMode, DefaultPolicy, Derive, Effect, Event, InvalidKey, MatchedOn,
    Observer, Scope, StoreResponse, ToolOutcome, code,
    internal::{Sharded, stripe},
};

/// The reason for refusing a keyed call whose record would hold for all callers of a store.
const NO_SCOPE: &str = "the call has no session, so its record could collide with another service's in the shared store: set a session, or the layer's `instance`";

/// What the services of one layer share.
#[derive(Debug)]
pub(crate) struct Shared<V> {
    pub(crate) config: Config,
    pub(crate) store: Arc<Store<V>>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) remote: Option<Arc<Remote<V>>>,
    pub(crate) probe: Option<LocalProbe<V>>,
}

/// Runs a call once per key and answers its duplicates from the record.
///
/// Always ready, since a replay needs no capacity of the inner service. The response future of a
/// first call polls the inner service's readiness and calls it.
pub struct Idempotency<S, A = DefaultPolicy, V = ToolOutcome> {
    inner: S,
    answers: A,
    shared: Sharded<Shared<V>>,
}

impl<S, A, V> Idempotency<S, A, V> {
    pub(crate) const fn new(inner: S, answers: A, shared: Sharded<Shared<V>>) -> Self {
        Self { inner, answers, shared }
    }

    pub(crate) const fn answers(&self) -> &A {
        &self.answers
    }

    /// Until when a caller that starts to wait now may wait for another's run.
    pub(crate) fn waits_until(&self) -> Instant {
        Instant::now() + self.shared.config.max_wait
    }

    /// The inner service.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }
}

impl<S: Clone, A: Copy, V> Clone for Idempotency<S, A, V> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), self.answers, self.shared.clone())
    }
}

impl<S: fmt::Debug, A, V> fmt::Debug for Idempotency<S, A, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idempotency")
            .field("inner", &self.inner)
            .field("config", &self.shared.config)
            .finish_non_exhaustive()
    }
}

impl<S, Req, A, V> Service<Req> for Idempotency<S, A, V>
where
    S: Detachable<Req>,
    Req: Send + 'static,
    A: Answers<Req, S::Response, V>,
    V: Clone + Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = IdempotencyFuture<S, S::Future, Req, S::Response, A, V>;

    #[inline]
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, mut req: Req) -> Self::Future {
        self.shared.settle();
        let answers = self.answers;
        let effect = answers.effect(&req);
        let mode = answers.dedupe_mode(&req);
        if mode == DedupeMode::Disabled {
            return self.plain(req);
        }
        let mut cut_off = false;
        let mut found = answers.idempotency_key(&req);
        let is_derived = matches!(found, Ok(None));
        if is_derived {
            found = Ok(self.derived::<Req, S::Response>(&req, &mut cut_off));
        }
        // By reference: 64 bytes of no alignment are slow to move.
        let id = match &mut found {
            Ok(Some(id)) => id,
            Ok(None) => return self.plain(req),
            Err(invalid) => return self.reject(&req, effect, invalid.clone()),
        };
        let scope = answers.scope(&req);
        if effect != Effect::ReadOnly && scope == Scope::Global {
            let why = "scope `global` is allowed only for tools that are declared read-only";
            return self.reject(&req, effect, InvalidKey::new(why));
        }
        // Keys that only join cut-off calls stay in this process, where no other service has keys.
        let in_process = cut_off || answers.stays_in_process(&req);
        if let Some(remote) = &self.shared.remote
            && !in_process
            && !answers.has_scope(&req)
        {
            match &remote.instance {
                Some(instance) => id.key = id.key.of_instance(instance),
                // The caller gave no key, so it needs no record.
                None if is_derived && effect != Effect::Mutating => return self.plain(req),
                None => return self.reject(&req, effect, InvalidKey::new(NO_SCOPE)),
            }
        }
        if self.shared.config.conflicts == ConflictPolicy::Independent {
            id.key = id.key.joined(&id.digest);
        }
        let id = &*id;
        let mutating = effect == Effect::Mutating;
        let now = self.shared.store.common.clock.now_for(&mut req, &answers);
        let mut asked = self.shared.store.ask(&id.key);
        if let Some((kept, replay)) = asked.hit(id, now) {
            drop(asked);
            let replayed = Event::Replayed { matched: replay.matched_on, state: "done" };
            self.tell::<Req, S::Response>(&req, || replayed);
            return IdempotencyFuture::known(Ok(answers.load(kept, replay)));
        }
        let local = LocalClaim {
            id,
            mutating,
            again: mode == DedupeMode::BestEffort,
            wait: mode == DedupeMode::Enforced,
            cut_off,
            in_process,
            now,
            ttls: self.shared.config.ttls(cut_off, answers.record_ttls(&req)),
        };
        let (info, record) = (answers.info(&req), answers.record(&req));
        match asked.open(&local, |notes| notes.set(&info, &record, scope)) {
            Ok((claim, cell)) => self.run_claimed(req, claim, cell, &local, effect),
            Err(asked) => {
                let task = asked.claim(&local, |notes| notes.set(&info, &record, scope));
                self.on_existing(req, task, &local, effect)
            }
        }
    }
}

impl<S, A, V> Idempotency<S, A, V> {
    /// Runs a call without a record: it has no key, and has no duplicates.
    fn plain<Req>(&self, req: Req) -> FutureOf<S, Req, A, V>
    where
        S: Detachable<Req>,
        Req: Send + 'static,
        A: Answers<Req, S::Response, V>,
        V: Clone + Send + 'static,
    {
        let home = self.shared.store.of_stripe(stripe());
        let cell = home.lock().pool.take();
        let call = DetachedCall::new(cell, &self.inner, req, None, None, false, self.answers);
        let call = call.plain(home.clone());
        IdempotencyFuture::detached(call)
    }

    /// A call that runs under a claim, once a store has granted it too, if there is one.
    #[inline]
    fn run_claimed<Req>(
        &self,
        mut req: Req,
        claim: Claim<V>,
        cell: Option<CellOf<S, Req, A, V>>,
        local: &LocalClaim<'_>,
        effect: Effect,
    ) -> FutureOf<S, Req, A, V>
    where
        S: Detachable<Req>,
        Req: Send + 'static,
        A: Answers<Req, S::Response, V>,
        V: Clone + Send + 'static,
    {
        let request = self.store_request(&req, local, effect);
        let store_call = request.map(|request| Box::new(StoreCall::new(*request)));
        if store_call.is_some() {
            // It is stale once the store has replied.
            self.answers.set_stamp(&mut req, None);
        }
        let (claim, mutating, answers) = (Some(claim), local.mutating, self.answers);
        let call = DetachedCall::new(cell, &self.inner, req, claim, store_call, mutating, answers);
        IdempotencyFuture::detached(call)
    }

    /// Handles a call whose key has a record already, or whose table is full.
    #[inline(never)]
    fn on_existing<Req>(
        &self,
        mut req: Req,
        task: Task<V, DriverOf<S, Req, A, V>>,
        local: &LocalClaim<'_>,
        effect: Effect,
    ) -> FutureOf<S, Req, A, V>
    where
        S: Detachable<Req>,
        Req: Send + 'static,
        A: Answers<Req, S::Response, V>,
        V: Clone + Send + 'static,
    {
        let (answers, mutating) = (self.answers, local.mutating);
        match task {
            Task::Run(claim, cell) => self.run_claimed(req, claim, cell, local, effect),
            Task::Alone => {
                let call = DetachedCall::new(None, &self.inner, req, None, None, mutating, answers);
                IdempotencyFuture::detached(call)
            }
            Task::Replay(answer, replay, state) => {
                let replayed = Event::Replayed { matched: replay.matched_on, state };
                self.tell::<Req, S::Response>(&req, || replayed);
                let end = answer.into_result(replay).map(|kept| answers.load(kept, replay));
                IdempotencyFuture::known(end)
            }
            Task::Wait(waiter, replay) => {
                let joined = Event::Replayed { matched: replay.matched_on, state: "inflight" };
                self.tell::<Req, S::Response>(&req, || joined);
                let deadline = answers.deadline(&req);
                let request = self.store_request(&req, local, effect);
                // It is stale once this caller may run the call.
                answers.set_stamp(&mut req, None);
                let call = (self.clone(), req);
                IdempotencyFuture::wait(waiter, replay, call, mutating, answers, deadline, request)
            }
            Task::Refuse(refusal @ Refusal::Unknown(_)) if self.can_probe(local) => {
                let deadline = answers.deadline(&req).map(Instant::from_std);
                let size_of = move |kept: &V| StoreResponse::<S::Response>::size_of(&answers, kept);
                let (shared, key) = (self.shared.clone(), local.id.key);
                let probe = probe_local(shared, key, local.ttls, deadline, size_of);
                IdempotencyFuture::probing(probe, self.clone(), req, refusal)
            }
            Task::Refuse(refusal) => IdempotencyFuture::known(Err(self.refuse(&req, refusal))),
        }
    }

    /// Whether the local probe applies: records in a store are probed by `remote::obtain`.
    fn can_probe(&self, local: &LocalClaim<'_>) -> bool {
        self.shared.probe.is_some() && (local.in_process || self.shared.remote.is_none())
    }

    #[cold]
    pub(crate) fn refuse<Req>(&self, req: &Req, refusal: Refusal) -> BoxError
    where
        S: Detachable<Req>,
        A: Answers<Req, S::Response, V>,
    {
        let effect = self.answers.effect(req);
        self.tell::<Req, S::Response>(req, || refusal.event(effect));
        refusal.into_error(effect == Effect::Mutating)
    }

    /// The request to the store, if there is one, that has to succeed before this call may run.
    #[inline]
    fn store_request<Req>(
        &self,
        req: &Req,
        local: &LocalClaim<'_>,
        effect: Effect,
    ) -> Option<Box<StoreRequest<V>>>
    where
        S: Detachable<Req>,
        A: Answers<Req, S::Response, V>,
    {
        let remote = self.shared.remote.as_ref().filter(|_| !local.in_process)?;
        Some(Box::new(self.build_store_request::<Req, S::Response>(req, remote, local, effect)))
    }

    /// The derived key of a call that gave none. Sets `cut_off` where the key only joins cut-off
    /// calls. Params without a canonical form have no derived key; the call then runs without a
    /// record.
    fn derived<Req, Res>(&self, req: &Req, cut_off: &mut bool) -> Option<DedupeKey>
    where
        A: Answers<Req, Res, V>,
    {
        let from = self.shared.config.derived;
        if from == DerivedKeys::Off {
            return None;
        }
        let derive = |from| self.answers.derived_key(req, from).ok().flatten();
        if from == DerivedKeys::Step
            && let Some(id) = derive(Derive::Step)
        {
            return Some(id);
        }
        *cut_off = from != DerivedKeys::Session;
        derive(Derive::Session)
    }

    #[cold]
    fn build_store_request<Req, Res>(
        &self,
        req: &Req,
        remote: &Arc<Remote<V>>,
        local: &LocalClaim<'_>,
        effect: Effect,
    ) -> StoreRequest<V>
    where
        A: Answers<Req, Res, V>,
    {
        let (info, frames) = (self.answers.info(req), &remote.format.frames);
        let note = RequestNote::of(&info, &self.answers.record(req));
        let place = Place {
            key: local.id.key,
            digest: local.id.digest,
            mutating: local.mutating,
            epoch: 0,
            by_hand: false,
        };
        let claim = ClaimRequest {
            key: local.id.key,
            digest: local.id.digest,
            mutating: local.mutating,
            again: local.again,
            owner: remote.owner(),
            ttls: local.ttls,
            tool: info.tool.to_owned(),
            session: info.session.map(|session| frames.session(session)),
            notes: note.write(&place, frames),
        };
        let deadline = self.answers.deadline(req).map(Instant::from_std);
        let (claim, wait, found) = (Arc::new(claim), local.wait, Arc::default());
        let (max_wait, until) = (self.shared.config.max_wait, None);
        let request = Request { claim, effect, wait, deadline, max_wait, until, found };
        StoreRequest { remote: remote.clone(), request, observer: self.shared.observer.clone() }
    }

    #[cold]
    fn reject<S2, Req>(&self, req: &Req, effect: Effect, why: InvalidKey) -> FutureOf<S2, Req, A, V>
    where
        S2: Detachable<Req>,
        Req: Send + 'static,
        A: Answers<Req, S2::Response, V>,
        V: Clone + Send + 'static,
    {
        let refused = Event::Refused { code: code::INVALID_ENVELOPE, effect };
        self.tell::<Req, S2::Response>(req, || refused);
        IdempotencyFuture::known(Err(KeyRejected::new(why).into()))
    }

    #[inline]
    fn tell<'r, Req, Res>(&self, req: &'r Req, event: impl FnOnce() -> Event<'r>)
    where
        A: Answers<Req, Res, V>,
    {
        if let Some(observer) = self.shared.observer.as_ref().filter(|it| it.enabled()) {
            observer.on_event(&self.answers.info(req), &event());
        }
    }
}

impl Refusal {
    fn event<'r>(&self, effect: Effect) -> Event<'r> {
        match self {
            Self::Conflict => Event::KeyConflict,
            Self::Unknown(_) => Event::Replayed { matched: MatchedOn::Completed, state: "unknown" },
            Self::InFlight | Self::TooManyWaiters => {
                Event::Refused { code: code::IDEMPOTENCY_IN_FLIGHT, effect }
            }
            Self::Full => Event::Refused { code: code::STORE_FULL, effect },
        }
    }
}
