//! Runs a call under a claim granted by a store: claims it there first, records it there last.
use super::{CellOf, DetachedCall, Phase};
use crate::{
    bounds::{Answers, Detachable},
    clock::millis,
    end::{Refusal, State, answer},
    error::Cancelled,
    local::claim::Claim,
    protocol::Millis,
    record::RecordState,
    remote::{
        WhenStoreFails,
        call::{Stage, StoreCall},
        held::LeaseCheck,
        obtain::Obtained,
    },
    store::StoreError,
};
use std::{
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::Instant;
use tr_core::{BoxError, Event, FencingToken, MatchedOn, Ran, Replay};

impl<S, Req, A, V> DetachedCall<S, S::Future, Req, S::Response, A, V>
where
    S: Detachable<Req>,
    Req: Send + 'static,
    A: Answers<Req, S::Response, V>,
    V: Clone + Send + 'static,
{
    pub(super) fn poll_with_store(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<S::Response, BoxError>> {
        loop {
            let run = &mut **self;
            let store_call = run.store_call.as_mut().expect("it has a store call");
            match &mut store_call.stage {
                Stage::Due => store_call.claim(),
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
                                let obtained = self.without_store(error);
                                if let Some(end) = self.act_on(obtained) {
                                    return Poll::Ready(end);
                                }
                                continue;
                            }
                        }
                    }
                    // If the call panics, it may have started.
                    held.started = true;
                    let poll = self.poll_call(cx);
                    let called = self.phase != Phase::Fresh;
                    if let Stage::Held(held) = &mut self.store_call().stage {
                        held.started = called;
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

    pub(super) fn store_call(&mut self) -> &mut StoreCall<S::Response, V> {
        self.store_call.as_mut().expect("it has a store call")
    }

    /// How long this process replays a recorded success without a request.
    pub(super) fn memory(&mut self) -> Option<Millis> {
        self.store_call().remote.settings.memory.map(millis)
    }

    /// The result of an unavailable store before the start: the policy for the call's effect
    /// decides.
    fn without_store(&mut self, error: StoreError) -> Obtained<V> {
        let StoreCall { remote, request, .. } = self.store_call();
        match remote.settings.policy.of(request.effect) {
            WhenStoreFails::Run => Obtained::Open,
            WhenStoreFails::Refuse => {
                Obtained::Refuse(Refusal::Unavailable(Arc::new(error), Ran::No))
            }
        }
    }

    /// Acts on the store's reply: returns the call's result if there is one already.
    fn act_on(&mut self, obtained: Obtained<V>) -> Option<Result<S::Response, BoxError>> {
        match obtained {
            Obtained::Run(held) => {
                let key = self.store_call().request.claim.key;
                let fence = FencingToken { key, epoch: held.token.epoch };
                let answers = self.answers;
                if let Some(req) = &mut self.req {
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
        let name = RecordState::of(state.phase()).as_str();
        self.tell(&Event::Replayed { matched: matched_on, state: name });
        let key = self.store_call().request.claim.key;
        let claim = self.take_claim();
        let fingerprint = claim.fingerprint(&key);
        let replay = Replay { matched_on, age: Duration::from_millis(age), fingerprint };
        let mine = answer(&state, self.mutating);
        let done = matches!(state, State::Done(Some(_)));
        let memory = self.memory().filter(|_| done).map(|ttl| ttl.min(left));
        let answers = self.answers;
        self.end_here(claim, Some(state), memory, age);
        mine.into_result(replay).map(|kept| answers.load(kept, replay))
    }

    fn refuse(&mut self, refused: Refusal) -> BoxError {
        let effect = self.store_call().request.effect;
        self.tell(&refused.event(effect));
        let claim = self.take_claim();
        let deadline = self.store_call().request.deadline;
        let (mutating, cell) = (self.mutating, self.empty_cell());
        match refused {
            // Other callers may wait for longer: the claim passes to the next of them.
            Refusal::InFlight | Refusal::WaitTimedOut => drop((cell, claim)),
            _ if deadline.is_some_and(|deadline| Instant::now() >= deadline) => drop((cell, claim)),
            _ => claim.refuse(&refused, cell),
        }
        refused.into_error(mutating)
    }

    /// Cancelled before the store has replied: the waiters get the cancellation too.
    fn give_up(&mut self) -> BoxError {
        let ran = self.store_call().request.ran();
        let (state, _) = self.state_of_error(Cancelled::new(ran).into());
        let claim = self.take_claim();
        self.end_here(claim, Some(state), None, 0);
        Cancelled::new(ran).into()
    }

    /// Taken out, so that its drop wakes the waiters if something panics.
    pub(super) fn take_claim(&mut self) -> Claim<V> {
        self.claim.take().expect("a store call holds a claim")
    }

    /// Ends the call in this process, which keeps the end for `ttl`, or not at all. `false` if the
    /// claim was lost.
    pub(super) fn end_here(
        &mut self,
        claim: Claim<V>,
        state: Option<State<V>>,
        ttl: Option<Millis>,
        age: Millis,
    ) -> bool {
        let size = self.size_of(state.as_ref());
        claim.finish((state, size), ttl, age, self.empty_cell()).0
    }

    fn empty_cell(&mut self) -> CellOf<S, Req, A, V> {
        self.store_call = None;
        self.take_cell()
    }

    fn tell(&mut self, event: &Event<'_>) {
        let store_call = self.store_call.as_ref().expect("it has a store call");
        let observer = store_call.remote.observer.as_ref().filter(|it| it.enabled());
        if let (Some(observer), Some(req)) = (observer, &self.req) {
            observer.on_event(&self.answers.info(req), event);
        }
    }
}
