//! The service.
use crate::{
    bounds::{Answers, Detachable},
    codec::{Place, notes::RequestNote},
    config::{Config, ConflictPolicy, DerivedKeys},
    drive::{CellOf, Drive, DriverOf},
    error::{Conflict, InFlight, KeyRejected, OutcomeUnknown, StoreFull, TooManyWaiters},
    future::{FutureOf, IdempotencyFuture},
    lead::{Errand, Lead},
    local::{Refusal, Store, Task, apply::Wish, claim::Claim},
    remote::{
        Remote,
        inquiry::{Inquiry, inquire},
        obtain::Request,
    },
    store::ClaimRequest,
};
use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::time::Instant;
use tower_service::Service;
use tr_core::{
    BoxError, Codec, DedupeKey, DedupeMode, DefaultPolicy, Derive, Effect, Event, InvalidKey,
    MatchedOn, Observer, Scope, Sharded, ToolOutcome, code, stripe,
};

/// Said of a call with a key that would hold for all callers of a store.
const NO_SCOPE: &str = "the call names no session, and its record would lie where other services' do: name a session, or the service, by the layer's `instance`";

/// What the services of one layer share.
#[derive(Debug)]
pub(crate) struct Shared<V> {
    pub(crate) config: Config,
    pub(crate) store: Arc<Store<V>>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) remote: Option<Arc<Remote<V>>>,
    pub(crate) inquiry: Option<Inquiry<V>>,
}

/// Runs a call once per key and answers its duplicates from the record.
///
/// Always ready: a replay needs no capacity of the inner service. The future of a first call asks
/// for readiness, and is what calls.
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

    /// How long a call that begins to wait for another's run now may do so.
    pub(crate) fn waits_until(&self) -> Instant {
        Instant::now() + self.shared.config.max_wait
    }

    /// The service inside.
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
        let effect = answers.effect_of(&req);
        let mode = answers.mode_of(&req);
        if mode == DedupeMode::Disabled {
            return self.plain(req);
        }
        let mut cut_off = false;
        let mut found = answers.id_of(&req);
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
        let scope = answers.scope_of(&req);
        if effect != Effect::ReadOnly && scope == Scope::Global {
            let why = "scope `global` is only for tools that are declared read-only";
            return self.reject(&req, effect, InvalidKey::new(why));
        }
        // What joins a cut-off call stays in this process, where no other service's keys are.
        let in_process = cut_off || answers.stays_in_process(&req);
        if let Some(remote) = &self.shared.remote
            && !in_process
            && !answers.has_scope(&req)
        {
            match &remote.instance {
                Some(instance) => id.key = id.key.of_instance(instance),
                // It asked for no record.
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
        let wish = Wish {
            id,
            mutating,
            again: mode == DedupeMode::BestEffort,
            wait: mode == DedupeMode::Enforced,
            cut_off,
            in_process,
            now,
            ttls: self.shared.config.ttls(cut_off, answers.ttls_of(&req)),
        };
        let (info, record) = (answers.info_of(&req), answers.record_of(&req));
        match asked.open(&wish, |notes| notes.set(&info, &record, scope)) {
            Ok((claim, cell)) => self.lead(req, claim, cell, &wish, effect),
            Err(asked) => {
                let task = asked.claim(&wish, |notes| notes.set(&info, &record, scope));
                self.meet(req, task, &wish, effect)
            }
        }
    }
}

impl<S, A, V> Idempotency<S, A, V> {
    /// A call that is no other call's repeat, and no other will be its.
    fn plain<Req>(&self, req: Req) -> FutureOf<S, Req, A, V>
    where
        S: Detachable<Req>,
        Req: Send + 'static,
        A: Answers<Req, S::Response, V>,
        V: Clone + Send + 'static,
    {
        let home = self.shared.store.of_stripe(stripe());
        let cell = home.lock().spares.take();
        let drive = Drive::new(cell, &self.inner, req, None, None, false, self.answers);
        let drive = drive.plain(home.clone());
        IdempotencyFuture::drive(drive)
    }

    /// A call that runs under a claim, once a store has granted it too, if there is one.
    #[inline]
    fn lead<Req>(
        &self,
        mut req: Req,
        claim: Claim<V>,
        cell: Option<CellOf<S, Req, A, V>>,
        wish: &Wish<'_>,
        effect: Effect,
    ) -> FutureOf<S, Req, A, V>
    where
        S: Detachable<Req>,
        Req: Send + 'static,
        A: Answers<Req, S::Response, V>,
        V: Clone + Send + 'static,
    {
        let lead = self.errand(&req, wish, effect).map(|errand| Box::new(Lead::new(*errand)));
        if lead.is_some() {
            // By the time that the store has answered it will be stale.
            self.answers.set_stamp(&mut req, None);
        }
        let (claim, mutating, answers) = (Some(claim), wish.mutating, self.answers);
        let drive = Drive::new(cell, &self.inner, req, claim, lead, mutating, answers);
        IdempotencyFuture::drive(drive)
    }

    /// A call whose key has a record, or no room for one.
    #[inline(never)]
    fn meet<Req>(
        &self,
        mut req: Req,
        task: Task<V, DriverOf<S, Req, A, V>>,
        wish: &Wish<'_>,
        effect: Effect,
    ) -> FutureOf<S, Req, A, V>
    where
        S: Detachable<Req>,
        Req: Send + 'static,
        A: Answers<Req, S::Response, V>,
        V: Clone + Send + 'static,
    {
        let (answers, mutating) = (self.answers, wish.mutating);
        match task {
            Task::Run(claim, cell) => self.lead(req, claim, cell, wish, effect),
            Task::Alone => {
                let drive = Drive::new(None, &self.inner, req, None, None, mutating, answers);
                IdempotencyFuture::drive(drive)
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
                let errand = self.errand(&req, wish, effect);
                // By the time that the call may be run here it will be stale.
                answers.set_stamp(&mut req, None);
                let call = (self.clone(), req);
                IdempotencyFuture::wait(waiter, replay, call, mutating, answers, deadline, errand)
            }
            Task::Refuse(refusal @ Refusal::Unknown(_)) if self.can_inquire(wish) => {
                let deadline = answers.deadline(&req).map(Instant::from_std);
                let size_of = move |kept: &V| Codec::<S::Response>::size_of(&answers, kept);
                let (shared, key) = (self.shared.clone(), wish.id.key);
                let inquiry = inquire(shared, key, wish.ttls, deadline, size_of);
                IdempotencyFuture::inquire(inquiry, self.clone(), req, refusal)
            }
            Task::Refuse(refusal) => IdempotencyFuture::known(Err(self.refuse(&req, refusal))),
        }
    }

    /// Where a store has the record, it is the one that is asked.
    fn can_inquire(&self, wish: &Wish<'_>) -> bool {
        self.shared.inquiry.is_some() && (wish.in_process || self.shared.remote.is_none())
    }

    #[cold]
    pub(crate) fn refuse<Req>(&self, req: &Req, refusal: Refusal) -> BoxError
    where
        S: Detachable<Req>,
        A: Answers<Req, S::Response, V>,
    {
        let effect = self.answers.effect_of(req);
        self.tell::<Req, S::Response>(req, || refusal.event(effect));
        refusal.into_error(effect == Effect::Mutating)
    }

    /// What is to be asked of a store before this call may run, if there is one.
    #[inline]
    fn errand<Req>(&self, req: &Req, wish: &Wish<'_>, effect: Effect) -> Option<Box<Errand<V>>>
    where
        S: Detachable<Req>,
        A: Answers<Req, S::Response, V>,
    {
        let remote = self.shared.remote.as_ref().filter(|_| !wish.in_process)?;
        Some(Box::new(self.errand_to::<Req, S::Response>(req, remote, wish, effect)))
    }

    /// By what a call without a key is recognised, if it is, and whether only a cut-off call is.
    /// Params without a canonical form have no key, which is no reason to refuse a call that asked
    /// for none.
    fn derived<Req, Res>(&self, req: &Req, cut_off: &mut bool) -> Option<DedupeKey>
    where
        A: Answers<Req, Res, V>,
    {
        let from = self.shared.config.derived;
        if from == DerivedKeys::Off {
            return None;
        }
        let derive = |from| self.answers.derived_of(req, from).ok().flatten();
        if from == DerivedKeys::Step
            && let Some(id) = derive(Derive::Step)
        {
            return Some(id);
        }
        *cut_off = from != DerivedKeys::Session;
        derive(Derive::Session)
    }

    #[cold]
    fn errand_to<Req, Res>(
        &self,
        req: &Req,
        remote: &Arc<Remote<V>>,
        wish: &Wish<'_>,
        effect: Effect,
    ) -> Errand<V>
    where
        A: Answers<Req, Res, V>,
    {
        let (info, frames) = (self.answers.info_of(req), &remote.format.frames);
        let note = RequestNote::of(&info, &self.answers.record_of(req));
        let place = Place {
            key: wish.id.key,
            digest: wish.id.digest,
            mutating: wish.mutating,
            epoch: 0,
            by_hand: false,
        };
        let claim = ClaimRequest {
            key: wish.id.key,
            digest: wish.id.digest,
            mutating: wish.mutating,
            again: wish.again,
            owner: remote.owner(),
            ttls: wish.ttls,
            tool: info.tool.to_owned(),
            session: info.session.map(|session| frames.session(session)),
            notes: note.write(&place, frames),
        };
        let deadline = self.answers.deadline(req).map(Instant::from_std);
        let (claim, wait, found) = (Arc::new(claim), wish.wait, Arc::default());
        let (max_wait, until) = (self.shared.config.max_wait, None);
        let request = Request { claim, effect, wait, deadline, max_wait, until, found };
        Errand { remote: remote.clone(), request, observer: self.shared.observer.clone() }
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
            observer.on_event(&self.answers.info_of(req), &event());
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

    fn into_error(self, mutating: bool) -> BoxError {
        match self {
            Self::Conflict => Conflict::new().into(),
            Self::InFlight => InFlight::new().into(),
            Self::TooManyWaiters => TooManyWaiters::new().into(),
            Self::Unknown(cause) => OutcomeUnknown::new(mutating, cause).into(),
            Self::Full => StoreFull::new().into(),
        }
    }
}
