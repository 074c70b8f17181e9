//! Runs a call under a claim granted by a store: claims it there first, records it there last.
use crate::{
    bounds::{Answers, Detachable},
    detached_call::{CellOf, DetachedCall, Phase},
    end::{Failure, State, answer, failed, ttl},
    error::{Cancelled, SharedFailure},
    remote::{
        Boxed, Remote, WhenStoreFails,
        held::{Held, LeaseCheck},
        obtain::{Obtained, Refused, Request, obtain},
        record::{Recorded, TRIED},
    },
    store::StoreError,
};
use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::Instant;
use tr_core::{BoxError, Event, FencingToken, MatchedOn, Observer, Ran, Replay, code};

/// The claim that a call requests from a store.
pub(crate) struct StoreRequest<V> {
    pub(crate) remote: Arc<Remote<V>>,
    pub(crate) request: Request,
    pub(crate) observer: Option<Arc<dyn Observer>>,
}

/// A run's requests to the store. `R` is the tool's response.
pub(crate) struct StoreCall<R, V> {
    store_request: StoreRequest<V>,
    stage: Stage<R, V>,
}

enum Stage<R, V> {
    /// Waits for the store to grant or refuse the claim.
    Claiming(Boxed<Obtained<V>>),
    /// The claim is granted.
    Held(Held<V>),
    /// The store is unavailable; the call runs without a record.
    Open,
    /// The tool has run; its end is being recorded.
    Ending(Ending<R, V>),
    Over,
}

struct Ending<R, V> {
    recording: Boxed<Recorded>,
    end: Result<R, BoxError>,
    state: Option<State<V>>,
    /// A duplicate will get the whole response.
    whole: bool,
}

impl<R, V: Clone + Send + 'static> StoreCall<R, V> {
    pub(crate) fn new(store_request: StoreRequest<V>) -> Self {
        let stage =
            Stage::Claiming(obtain(store_request.remote.clone(), store_request.request.clone()));
        Self { store_request, stage }
    }

    /// Claims again as another owner: the first claim was lost before the call started.
    fn claim_again(&mut self) {
        let mut claim = (*self.store_request.request.claim).clone();
        claim.owner = self.store_request.remote.owner();
        self.store_request.request.claim = Arc::new(claim);
        let asking = obtain(self.store_request.remote.clone(), self.store_request.request.clone());
        self.stage = Stage::Claiming(asking);
    }
}

impl<S, Req, A, V> DetachedCall<S, S::Future, Req, S::Response, A, V>
where
    S: Detachable<Req>,
    Req: Send + 'static,
    A: Answers<Req, S::Response, V>,
    V: Clone + Send + 'static,
{
    pub(crate) fn poll_with_store(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<S::Response, BoxError>> {
        loop {
            let run = &mut **self;
            let store_call = run.store_call.as_mut().expect("it has a store call");
            match &mut store_call.stage {
                Stage::Claiming(asking) => {
                    let obtained = asking.as_mut().poll(cx);
                    let Poll::Ready(obtained) = obtained else {
                        return if self.is_cancelled(cx) {
                            Poll::Ready(Err(self.give_up()))
                        } else {
                            Poll::Pending
                        };
                    };
                    if let Some(end) = self.act_on(obtained) {
                        return Poll::Ready(end);
                    }
                }
                Stage::Held(held) => {
                    if run.phase == Phase::Fresh {
                        let Poll::Ready(sure) = held.poll_lease(cx) else {
                            if !self.is_cancelled(cx) {
                                return Poll::Pending;
                            }
                            let end = Err(self.withdraw());
                            self.begin_end(end);
                            continue;
                        };
                        match sure {
                            LeaseCheck::Held => {}
                            LeaseCheck::Lost => {
                                store_call.claim_again();
                                continue;
                            }
                            LeaseCheck::Failed(error) => {
                                if let Some(end) = self.act_on(self.without_store(error)) {
                                    return Poll::Ready(end);
                                }
                                continue;
                            }
                        }
                    }
                    // If the call panics, it may have started.
                    held.set_started(true);
                    let poll = self.poll_call(cx);
                    let called = self.phase != Phase::Fresh;
                    if let Some(held) = self.held() {
                        held.set_started(called);
                        if poll.is_pending() {
                            held.keep(cx);
                        }
                    }
                    let end = ready!(poll);
                    self.begin_end(end);
                }
                Stage::Open => {
                    let end = ready!(self.poll_call(cx));
                    return Poll::Ready(self.end_open(end));
                }
                Stage::Ending(ending) => {
                    let recorded = ready!(ending.recording.as_mut().poll(cx));
                    return Poll::Ready(self.end_recorded(recorded));
                }
                Stage::Over => panic!("polled after completion"),
            }
        }
    }

    fn held(&mut self) -> Option<&mut Held<V>> {
        match &mut self.store_call.as_mut()?.stage {
            Stage::Held(held) => Some(held),
            _ => None,
        }
    }

    fn store_call(&mut self) -> &mut StoreCall<S::Response, V> {
        self.store_call.as_mut().expect("it has a store call")
    }

    /// The result of an unavailable store before the start: the policy for the call's effect
    /// decides.
    fn without_store(&self, error: StoreError) -> Obtained<V> {
        let StoreRequest { remote, request, .. } =
            &self.store_call.as_ref().expect("it has a store call").store_request;
        match remote.policy.of(request.effect) {
            WhenStoreFails::Run => Obtained::Open,
            WhenStoreFails::Refuse => {
                Obtained::Refuse(Refused::Unavailable(Arc::new(error), Ran::No))
            }
        }
    }

    /// Acts on the store's reply: returns the call's result if there is one already.
    fn act_on(&mut self, obtained: Obtained<V>) -> Option<Result<S::Response, BoxError>> {
        match obtained {
            Obtained::Run(held) => {
                let key = self.store_call().store_request.request.claim.key;
                let fence = FencingToken { key, epoch: held.epoch() };
                let answers = self.answers;
                if let Some(req) = self.request() {
                    answers.note_claim(req, fence);
                }
                self.store_call().stage = Stage::Held(held);
                None
            }
            Obtained::Open => {
                self.store_call().stage = Stage::Open;
                None
            }
            Obtained::Answer { state, age, left, waited } => {
                Some(self.replay(state, age, left, waited))
            }
            Obtained::Refuse(refused) => Some(Err(self.refuse(refused))),
        }
    }

    /// Replays a recorded end to this caller and to all waiters in this process.
    fn replay(
        &mut self,
        state: State<V>,
        age: u64,
        left: u64,
        waited: bool,
    ) -> Result<S::Response, BoxError> {
        let matched_on = if waited { MatchedOn::Inflight } else { MatchedOn::Completed };
        self.tell(&Event::Replayed { matched: matched_on, state: state.name() });
        let key = self.store_call().store_request.request.claim.key;
        let mut claim = self.claim.take().expect("a store call holds a claim");
        claim.set_size(self.size_of(Some(&state)));
        let fingerprint = claim.fingerprint(&key);
        let replay = Replay { matched_on, age: Duration::from_millis(age), fingerprint };
        let mine = answer(&state, self.mutating);
        let done = matches!(state, State::Done(Some(_)));
        let memory =
            self.store_call().store_request.remote.memory.filter(|_| done).map(|ttl| ttl.min(left));
        let answers = self.answers;
        claim.finish_for(Some(state), memory, age, self.empty_cell());
        mine.into_result(replay).map(|kept| answers.load(kept, replay))
    }

    fn refuse(&mut self, refused: Refused) -> BoxError {
        let effect = self.store_call().store_request.request.effect;
        self.tell(&match &refused {
            Refused::Conflict => Event::KeyConflict,
            Refused::Unknown(_) | Refused::Unreadable(..) => {
                Event::Replayed { matched: MatchedOn::Completed, state: "unknown" }
            }
            Refused::InFlight => Event::Refused { code: code::IDEMPOTENCY_IN_FLIGHT, effect },
            Refused::WaitTimedOut => {
                Event::Replayed { matched: MatchedOn::Inflight, state: "inflight" }
            }
            Refused::Full => Event::Refused { code: code::STORE_FULL, effect },
            Refused::Unavailable(..) => Event::Refused { code: code::STORE_UNAVAILABLE, effect },
        });
        let claim = self.claim.take().expect("a store call holds a claim");
        let deadline = self.store_call().store_request.request.deadline;
        let (mutating, cell) = (self.mutating, self.empty_cell());
        match refused {
            // Other callers may wait for longer: the claim passes to the next of them.
            Refused::InFlight | Refused::WaitTimedOut => drop((cell, claim)),
            _ if deadline.is_some_and(|deadline| Instant::now() >= deadline) => drop((cell, claim)),
            _ => claim.refuse(&refused, cell),
        }
        refused.into_error(mutating)
    }

    /// Cancelled before the store has replied: the waiters get the cancellation too.
    fn give_up(&mut self) -> BoxError {
        let ran = self.store_call().store_request.request.ran();
        let recorded = Arc::new(self.failure_of_error(Cancelled::new(ran).into()));
        let state = failed(self.mutating, Failure::of_error(recorded));
        let claim = self.claim.take().expect("a store call holds a claim");
        claim.finish_for(Some(state), None, 0, self.empty_cell());
        Cancelled::new(ran).into()
    }

    /// Records the end in the store before any caller gets the response.
    fn begin_end(&mut self, end: Result<S::Response, BoxError>) {
        // Taken out, so that its drop wakes the waiters if something panics here.
        let claim = self.claim.take().expect("a store call holds a claim");
        let (state, keeps, end) = match end {
            Ok(response) => {
                let (state, keeps) = self.state_of(&response, claim.is_mutating());
                (state, keeps, Ok(response))
            }
            Err(error) => {
                let recorded = Arc::new(self.failure_of_error(error));
                let failure = Failure::of_error(recorded.clone());
                let end = SharedFailure::new(recorded).into();
                (Some(failed(self.mutating, failure)), true, Err(end))
            }
        };
        let (ttls, mutating) = (*claim.ttls(), self.mutating);
        self.drop_call();
        let stage = std::mem::replace(&mut self.store_call().stage, Stage::Over);
        let Stage::Held(held) = stage else { return };
        let bare = match &state {
            Some(state) if !self.store_call().store_request.remote.keeps_answers => {
                Some(state.bare())
            }
            _ => None,
        };
        let (recording, whole) = match bare.as_ref().or(state.as_ref()) {
            Some(state) => held.finish(state, ttl(&ttls, state, mutating)),
            None => (held.forget(), false),
        };
        let whole = whole && keeps && bare.is_none();
        self.store_call().stage = Stage::Ending(Ending { recording, end, state, whole });
        (self.claim, self.phase) = (Some(claim), Phase::Ending);
    }

    /// Finishes the claim in this process. It keeps the response only while the store has not
    /// recorded it.
    fn end_recorded(&mut self, recorded: Recorded) -> Result<S::Response, BoxError> {
        self.phase = Phase::Polled;
        let store_call = self.store_call();
        let stage = std::mem::replace(&mut store_call.stage, Stage::Over);
        let Stage::Ending(Ending { end, state, whole, .. }) = stage else {
            panic!("polled after completion")
        };
        let memory = store_call.store_request.remote.memory;
        let mut claim = self.claim.take().expect("a store call holds a claim");
        claim.set_size(self.size_of(state.as_ref()));
        let ttl = state.as_ref().and_then(|state| {
            let most = match recorded {
                Recorded::Yes if matches!(state, State::Done(Some(_))) => memory,
                Recorded::Yes | Recorded::No => None,
                Recorded::Later => Some(crate::clock::millis(TRIED)),
            };
            most.map(|most| most.min(claim.ttls().of(state)))
        });
        let answers = self.answers;
        let held = claim.finish_for(state, ttl, 0, self.empty_cell());
        end.map(|mut response| {
            if !(held && whole && recorded == Recorded::Yes) {
                answers.note_unrecorded(&mut response);
            }
            response
        })
    }

    /// Finishes a run without a record: only the waiters in this process share its end.
    fn end_open(&mut self, end: Result<S::Response, BoxError>) -> Result<S::Response, BoxError> {
        let memory = self.store_call().store_request.remote.memory;
        let mut claim = self.claim.take().expect("a store call holds a claim");
        match end {
            Ok(mut response) => {
                let (state, _) = self.state_of(&response, claim.is_mutating());
                claim.set_size(self.size_of(state.as_ref()));
                let done = matches!(state, Some(State::Done(Some(_))));
                let answers = self.answers;
                claim.finish_for(state, memory.filter(|_| done), 0, self.empty_cell());
                answers.note_unrecorded(&mut response);
                Ok(response)
            }
            Err(error) => {
                let recorded = Arc::new(self.failure_of_error(error));
                let state = failed(self.mutating, Failure::of_error(recorded.clone()));
                claim.finish_for(Some(state), None, 0, self.empty_cell());
                Err(SharedFailure::new(recorded).into())
            }
        }
    }

    fn empty_cell(&mut self) -> CellOf<S, Req, A, V> {
        self.store_call = None;
        self.take_cell()
    }

    fn tell(&mut self, event: &Event<'_>) {
        let store_call = self.store_call.as_ref().expect("it has a store call");
        let observer = store_call.store_request.observer.as_ref().filter(|it| it.enabled());
        if let (Some(observer), Some(req)) = (observer, &self.req) {
            observer.on_event(&self.answers.info(req), event);
        }
    }
}

impl<R, V> fmt::Debug for StoreCall<R, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &self.stage {
            Stage::Claiming(_) => "claiming",
            Stage::Held(_) => "held",
            Stage::Open => "open",
            Stage::Ending(_) => "ending",
            Stage::Over => "over",
        };
        f.debug_struct("StoreCall").field("stage", &stage).finish_non_exhaustive()
    }
}
