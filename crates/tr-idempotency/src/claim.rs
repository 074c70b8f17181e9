//! Claims a call under its key: it runs, waits, is replayed or is refused.
use crate::{
    bounds::{Answers, Detachable},
    config::{Config, ConflictPolicy, DerivedKeys},
    end::Refusal,
    error::KeyRejected,
    local::{
        CallTask, Store,
        claim::{Claim, Delivery, Waiter},
        notes::Notes,
        table::{LocalClaim, Task},
    },
    protocol::Ttls,
    record::RecordState,
    remote::{
        Boxed, boxed,
        client::{Client, StoreCall},
        probe::{Prober, UnresolvedCall},
    },
    run::{Attended, CellOf, DetachedCall, DriverOf, Ended, Place, StoredRun},
};
use std::sync::Arc;
use tokio::{
    runtime::Handle,
    sync::Semaphore,
    time::{Instant, timeout_at},
};
use tr_core::{
    BoxError, DedupeKey, DedupeMode, DedupeScope, Derive, Effect, Event, InvalidKey, Observer,
    Replay,
    canonical::Key,
    code,
    internal::{Shard, stripe},
};

/// The reason for refusing a keyed call whose record would hold for all callers of a store.
const NO_SCOPE: &str = "the call has no session, so its record could collide with another service's in the shared store: set a session, or the layer's `instance`";

/// What the services of one layer share.
pub(crate) struct Shared<V> {
    pub(crate) config: Config,
    pub(crate) store: Arc<Store<V>>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) remote: Option<Arc<Client<V>>>,
    pub(crate) probe: Option<Arc<Prober<V>>>,
    /// The places of calls in flight, if they are bounded.
    pub(crate) places: Option<Arc<Semaphore>>,
}

/// What claims the calls of one service.
pub(crate) struct Claims<S, A, V> {
    pub(crate) inner: S,
    pub(crate) answers: A,
    pub(crate) shared: Shard<Shared<V>>,
    /// That of the next call, where places are bounded.
    pub(crate) place: Option<Place>,
}

/// The state of a response future.
///
/// Small, since every outer layer moves it: large states are boxed.
pub(crate) enum State<S, F, Req, R, A, V> {
    Known(Option<Ended<R>>),
    Running(Attended<S, F, Req, A, V>),
    /// The same under a claim of the store.
    Stored(Box<StoredRun<R>>),
    /// Waits for another caller's run, or for the probe.
    Waiting(Boxed<Self>),
}

impl<S: Clone, A: Copy, V> Clone for Claims<S, A, V> {
    fn clone(&self) -> Self {
        let Self { inner, answers, shared, place } = self;
        let (inner, answers, shared) = (inner.clone(), *answers, shared.clone());
        Self { inner, answers, shared, place: place.clone() }
    }
}

impl<S, Req, A, V> State<S, S::Future, Req, S::Response, A, V>
where
    S: Detachable<Req>,
    Req: Send + 'static,
    A: Answers<Req, S::Response, V>,
    V: Clone + Send + 'static,
{
    /// Claims the call, or finds what its record says.
    #[inline]
    pub(crate) fn start(claims: &Claims<S, A, V>, mut req: Req) -> Self {
        let answers = claims.answers;
        let effect = answers.effect(&req);
        let mode = answers.dedupe_mode(&req);
        if mode == DedupeMode::Disabled {
            return Self::plain(claims, req);
        }
        let mut cut_off = false;
        let mut found = answers.idempotency_key(&req);
        let is_derived = matches!(found, Ok(None));
        if is_derived {
            found = Ok(Self::derived(claims, &req, &mut cut_off));
        }
        // By reference: 64 bytes of no alignment are slow to move.
        let id = match &mut found {
            Ok(Some(id)) => id,
            Ok(None) => return Self::plain(claims, req),
            Err(invalid) => return Self::reject(claims, &req, effect, invalid.clone()),
        };
        let scope = answers.scope(&req);
        if effect != Effect::ReadOnly && scope == DedupeScope::Global {
            let why = "scope `global` is allowed only for tools that are declared read-only";
            return Self::reject(claims, &req, effect, InvalidKey::new(why));
        }
        // Keys that only join cut-off calls stay in this process, where no other service has keys.
        let in_process = cut_off || answers.stays_in_process(&req);
        if let Some(remote) = &claims.shared.remote
            && !in_process
            && !answers.has_scope(&req)
        {
            match &remote.settings.instance {
                Some(instance) => id.key = id.key.of_instance(instance),
                // The caller gave no key, so it needs no record.
                None if is_derived && effect != Effect::Mutating => {
                    return Self::plain(claims, req);
                }
                None => return Self::reject(claims, &req, effect, InvalidKey::new(NO_SCOPE)),
            }
        }
        if claims.shared.config.conflicts == ConflictPolicy::Independent {
            id.key = id.key.joined(&id.digest);
        }
        let id = &*id;
        let mutating = effect == Effect::Mutating;
        let now = claims.shared.store.common.clock.now_for(&mut req, &answers);
        let mut asked = claims.shared.store.ask(&id.key);
        if let Some((kept, replay)) = asked.hit(id, now) {
            drop(asked);
            let replayed = Event::Replayed { matched: replay.matched_on, state: "done" };
            Self::tell(claims, &req, || replayed);
            return Self::Known(Some(Ok(answers.load(kept, replay))));
        }
        let local = LocalClaim {
            id,
            mutating,
            again: mode == DedupeMode::BestEffort,
            corrects: answers.corrects(&req),
            wait: mode == DedupeMode::Enforced,
            cut_off,
            in_process,
            now,
            ttls: claims.shared.config.ttls(cut_off, answers.record_ttls(&req)),
        };
        let (info, record) = (answers.info(&req), answers.record(&req));
        let note = |notes: &mut Notes| notes.set(&info, &record, scope);
        match asked.open(&local, note) {
            Ok((claim, cell)) => Self::run_claimed(claims, req, claim, cell, &local, effect),
            Err(asked) => {
                let task = asked.claim(&local, note);
                Self::on_existing(claims, req, task, &local, effect)
            }
        }
    }

    /// Runs a call without a record: it has no key, and has no duplicates.
    fn plain(claims: &Claims<S, A, V>, req: Req) -> Self {
        let home = claims.shared.store.of_stripe(stripe());
        let cell = home.lock().pool.take();
        let (answers, place) = (claims.answers, claims.place.clone());
        let mut call = DetachedCall::new(cell, &claims.inner, req, None, false, answers, place);
        call.home = Some(home.clone());
        Self::Running(Attended(call))
    }

    /// A call that runs under a claim, once a store has granted it too, if there is one.
    #[inline]
    fn run_claimed(
        claims: &Claims<S, A, V>,
        mut req: Req,
        claim: Claim<V>,
        cell: Option<CellOf<S, Req, A, V>>,
        local: &LocalClaim<'_>,
        effect: Effect,
    ) -> Self {
        let store_call = Self::store_call(claims, &req, local, effect);
        if store_call.is_some() {
            // It is stale once the store has replied.
            claims.answers.set_stamp(&mut req, None);
        }
        Self::run(claims, req, Some(claim), cell, local.mutating, store_call)
    }

    #[inline]
    fn run(
        claims: &Claims<S, A, V>,
        req: Req,
        claim: Option<Claim<V>>,
        cell: Option<CellOf<S, Req, A, V>>,
        mutating: bool,
        store_call: Option<Box<StoreCall<V>>>,
    ) -> Self {
        let (answers, place) = (claims.answers, claims.place.clone());
        let call = DetachedCall::new(cell, &claims.inner, req, claim, mutating, answers, place);
        match store_call {
            None => Self::Running(Attended(call)),
            Some(store_call) => Self::Stored(call.with_store(*store_call)),
        }
    }

    /// Handles a call whose key has a record already, or whose table is full.
    #[inline(never)]
    fn on_existing(
        claims: &Claims<S, A, V>,
        mut req: Req,
        task: CallTask<V, DriverOf<S, Req, A, V>>,
        local: &LocalClaim<'_>,
        effect: Effect,
    ) -> Self {
        let (answers, mutating) = (claims.answers, local.mutating);
        match task {
            Task::Run((claim, cell)) => Self::run_claimed(claims, req, claim, cell, local, effect),
            Task::Unrecorded => Self::run(claims, req, None, None, mutating, None),
            Task::Replay(answer, replay, state) => {
                let replayed = Event::Replayed { matched: replay.matched_on, state };
                Self::tell(claims, &req, || replayed);
                let end = answer.into_result(replay).map(|kept| answers.load(kept, replay));
                Self::Known(Some(end))
            }
            Task::Wait(waiter, replay) => {
                let joined = Event::Replayed { matched: replay.matched_on, state: "inflight" };
                Self::tell(claims, &req, || joined);
                let store_call = Self::store_call(claims, &req, local, effect);
                // It is stale once this caller may run the call.
                answers.set_stamp(&mut req, None);
                let claims = claims.clone();
                let waiting = Self::wait(claims, req, mutating, store_call, replay, waiter);
                Self::Waiting(boxed(waiting))
            }
            Task::Refuse(refusal @ Refusal::Unknown(_)) if Self::can_probe(claims, local) => {
                let (key, ttls) = (local.id.key, local.ttls);
                Self::Waiting(boxed(Self::probe(claims.clone(), req, refusal, key, ttls)))
            }
            Task::Refuse(refusal) => Self::Known(Some(Err(Self::refuse(claims, &req, refusal)))),
        }
    }

    /// Whether the local probe applies: records in a store are probed where they are claimed.
    fn can_probe(claims: &Claims<S, A, V>, local: &LocalClaim<'_>) -> bool {
        claims.shared.probe.is_some() && (local.in_process || claims.shared.remote.is_none())
    }

    #[cold]
    pub(crate) fn refuse(claims: &Claims<S, A, V>, req: &Req, refusal: Refusal) -> BoxError {
        let effect = claims.answers.effect(req);
        Self::tell(claims, req, || refusal.event(effect));
        refusal.into_error(effect == Effect::Mutating)
    }

    /// The requests to the store, if there is one, that has to claim the call before it may run.
    #[inline]
    fn store_call(
        claims: &Claims<S, A, V>,
        req: &Req,
        local: &LocalClaim<'_>,
        effect: Effect,
    ) -> Option<Box<StoreCall<V>>> {
        let remote = claims.shared.remote.as_ref().filter(|_| !local.in_process)?;
        let (info, record) = (claims.answers.info(req), claims.answers.record(req));
        let times = (Self::deadline(claims, req), claims.shared.config.max_wait);
        Some(StoreCall::new(remote, local, effect, (&info, &record), times))
    }

    fn deadline(claims: &Claims<S, A, V>, req: &Req) -> Option<Instant> {
        claims.answers.deadline(req).map(Instant::from_std)
    }

    /// Waits for another caller's run, and runs the call itself if that run never started.
    async fn wait(
        claims: Claims<S, A, V>,
        req: Req,
        mutating: bool,
        store_call: Option<Box<StoreCall<V>>>,
        replay: Replay,
        mut waiter: Waiter<V>,
    ) -> Self {
        let (answers, deadline) = (claims.answers, Self::deadline(&claims, &req));
        let longest = Instant::now() + claims.shared.config.max_wait;
        let until = deadline.map_or(longest, |deadline| deadline.min(longest));
        let served = waiter.delivery();
        let delivery = match Handle::try_current() {
            Ok(_) => timeout_at(until, served).await.ok(),
            // Without a tokio runtime there is no timer.
            Err(_) => Some(served.await),
        };
        let claim = match delivery {
            Some(Delivery::Answer(answer)) => {
                let end = answer.into_result(replay).map(|kept| answers.load(kept, replay));
                return Self::Known(Some(end));
            }
            Some(Delivery::Claim(claim)) => Some(claim),
            Some(Delivery::Alone) => None,
            None => {
                let is_due = deadline.is_some_and(|deadline| Instant::now() >= deadline);
                let error = match is_due {
                    true => Refusal::WaitTimedOut.into_error(mutating),
                    false => Self::refuse(&claims, &req, Refusal::InFlight),
                };
                return Self::Known(Some(Err(error)));
            }
        };
        let mut store_call = store_call.filter(|_| claim.is_some());
        if let Some(store_call) = &mut store_call {
            store_call.until = Some(longest); // The time that it has waited counts.
        }
        Self::run(&claims, req, claim, None, mutating, store_call)
    }

    /// Asks the probe how the call of unknown outcome ended; then claims again, or refuses.
    async fn probe(
        claims: Claims<S, A, V>,
        mut req: Req,
        refusal: Refusal,
        key: Key,
        ttls: Ttls,
    ) -> Self {
        let (answers, deadline) = (claims.answers, Self::deadline(&claims, &req));
        let Shared { store, probe, .. } = &*claims.shared;
        let Some(probe) = probe else {
            return Self::Known(Some(Err(Self::refuse(&claims, &req, refusal))));
        };
        let ask = async move {
            let Some(record) = store.record(&key) else { return true };
            if record.state != RecordState::Unknown {
                return true;
            }
            let call = UnresolvedCall { key, epoch: record.epoch, record };
            let Some(state) = probe.find(&call, None).await else { return false };
            let size = state.kept().map_or(0, |kept| answers.size_of(kept));
            // If another process settled it first, the next claim shows that.
            store.settle(&key, Some(call.epoch), state, size, &ttls);
            true
        };
        if !probe.once(key, deadline, ask).await {
            return Self::Known(Some(Err(Self::refuse(&claims, &req, refusal))));
        }
        // The time stamp is stale after the probe.
        answers.set_stamp(&mut req, None);
        Self::start(&claims, req)
    }

    /// The derived key of a call that gave none. Sets `cut_off` where the key only joins cut-off
    /// calls. Params without a canonical form have no derived key; the call then runs without a
    /// record.
    fn derived(claims: &Claims<S, A, V>, req: &Req, cut_off: &mut bool) -> Option<DedupeKey> {
        let from = claims.shared.config.derived;
        if from == DerivedKeys::Off {
            return None;
        }
        let derive = |from| claims.answers.derived_key(req, from).ok().flatten();
        if from == DerivedKeys::Step
            && let Some(id) = derive(Derive::Step)
        {
            return Some(id);
        }
        *cut_off = from != DerivedKeys::Session;
        derive(Derive::Session)
    }

    #[cold]
    fn reject(claims: &Claims<S, A, V>, req: &Req, effect: Effect, why: InvalidKey) -> Self {
        let refused = Event::Refused { code: code::INVALID_ENVELOPE, effect };
        Self::tell(claims, req, || refused);
        Self::Known(Some(Err(KeyRejected::new(why).into())))
    }

    #[inline]
    fn tell<'r>(claims: &Claims<S, A, V>, req: &'r Req, event: impl FnOnce() -> Event<'r>) {
        if let Some(observer) = claims.shared.observer.as_ref().filter(|it| it.enabled()) {
            observer.on_event(&claims.answers.info(req), &event());
        }
    }
}
