//! Runs a call under a claim granted by a store: claims it there first, records it there last.
use super::{DetachedCall, Ended, Phase, StoredRun, noted};
use crate::{
    bounds::{Answers, Detachable},
    clock::millis,
    end::{Refusal, State, answer, ttl},
    error::Cancelled,
    local::claim::Claim,
    protocol::Millis,
    record::RecordState,
    remote::{
        Boxed, Recorded, TRIED, boxed,
        client::StoreCall,
        held::{Held, LeaseCheck},
        obtain::{Obtained, RecordedEnd},
    },
};
use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::{runtime::Handle, time::Instant};
use tr_core::{BoxError, Event, FencingToken, MatchedOn, Replay};

impl<S, Req, A, V> DetachedCall<S, S::Future, Req, A, V>
where
    S: Detachable<Req>,
    Req: Send + 'static,
    A: Answers<Req, S::Response, V>,
    V: Clone + Send + 'static,
{
    /// This call, once the store has granted it too.
    pub(crate) fn with_store(mut self, store: StoreCall<V>) -> Box<StoredRun<S::Response>> {
        if let Some(claim) = &mut self.claim {
            claim.fronts = true;
        }
        let (mutating, goes_on) = (self.mutating, Arc::new(AtomicBool::new(false)));
        let run = Some(boxed(self.run_stored(store, goes_on.clone())));
        let leave = |run: Boxed<_>| {
            // Without a runtime, nothing would poll it: it ends here, and leaves `unknown`.
            if let Ok(runtime) = Handle::try_current() {
                runtime.spawn(async { drop(run.await) });
            }
        };
        Box::new(StoredRun { run, goes_on, mutating, leave })
    }

    async fn run_stored(
        mut self,
        mut store: StoreCall<V>,
        goes_on: Arc<AtomicBool>,
    ) -> Ended<S::Response> {
        let mut failed = None;
        loop {
            let obtained = match failed.take() {
                Some(error) => store.without_store(error),
                None => match self.unless_cancelled(store.obtain()).await {
                    Some(obtained) => obtained,
                    None => return Err(self.give_up(&store)),
                },
            };
            let mut held = match obtained {
                Obtained::Run(held) => held,
                Obtained::Open => {
                    let end = poll_fn(|cx| self.poll_noted(&goes_on, cx)).await;
                    return self.end_open(end, &store);
                }
                Obtained::Answer(end) => return self.replay(end, &store),
                Obtained::Refuse(refused) => return Err(self.refuse(refused, &store)),
            };
            let fence = FencingToken { key: store.claim.key, epoch: held.token.epoch };
            let answers = self.answers;
            if let Some(req) = &mut self.req {
                answers.note_claim(req, fence);
            }
            match poll_fn(|cx| self.poll_held(&mut held, &goes_on, cx)).await {
                Ok(end) => {
                    goes_on.store(true, Relaxed);
                    return self.record(*held, end, &store).await;
                }
                Err(LeaseCheck::Failed(error)) => failed = Some(error),
                Err(_) => store.claim_again(),
            }
        }
    }

    /// The result of this work, unless the call is cancelled before.
    async fn unless_cancelled<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        let poll = |cx: &mut Context<'_>| match work.as_mut().poll(cx) {
            Poll::Pending if self.is_cancelled(cx) => Poll::Ready(None),
            poll => poll.map(Some),
        };
        poll_fn(poll).await
    }

    /// The call itself; notes whether the tool was called.
    fn poll_noted(
        &mut self,
        goes_on: &AtomicBool,
        cx: &mut Context<'_>,
    ) -> Poll<Ended<S::Response>> {
        let poll = self.poll_call(cx);
        goes_on.store(self.phase != Phase::Fresh, Relaxed);
        poll
    }

    /// The same under a lease. It is not called once that is lost, or cannot be renewed.
    fn poll_held(
        &mut self,
        held: &mut Held<V>,
        goes_on: &AtomicBool,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Ended<S::Response>, LeaseCheck>> {
        if self.phase == Phase::Fresh {
            match held.poll_lease(cx) {
                Poll::Ready(LeaseCheck::Held) => {}
                Poll::Ready(check) => return Poll::Ready(Err(check)),
                Poll::Pending if self.is_cancelled(cx) => {
                    return Poll::Ready(Ok(Err(self.withdraw())));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
        // If the call panics, it may have started.
        held.started = true;
        let poll = self.poll_noted(goes_on, cx);
        held.started = self.phase != Phase::Fresh;
        if poll.is_pending() {
            held.keep(cx);
        }
        poll.map(Ok)
    }

    /// Records the end in the store before any caller gets the response, then in this process, which
    /// keeps the response only while the store has not recorded it.
    async fn record(
        &mut self,
        held: Held<V>,
        end: Ended<S::Response>,
        store: &StoreCall<V>,
    ) -> Ended<S::Response> {
        let claim = self.take_claim();
        let (state, keeps, end) = self.judge(end, claim.mutating);
        self.drop_call();
        let bare = match &state {
            Some(state) if !store.remote.settings.keeps_answers => Some(state.bare()),
            _ => None,
        };
        let (recording, whole) = match bare.as_ref().or(state.as_ref()) {
            Some(state) => held.finish(state, ttl(&claim.ttls, state, self.mutating)),
            None => (held.forget(), false),
        };
        let whole = whole && keeps && bare.is_none();
        let recorded = recording.await;
        let ttl = state.as_ref().and_then(|state| {
            let most = match recorded {
                Recorded::Yes if matches!(state, State::Done(Some(_))) => store.memory(),
                Recorded::Yes | Recorded::No => None,
                Recorded::Later => Some(millis(TRIED)),
            };
            most.map(|most| most.min(claim.ttls.of(state)))
        });
        let answers = self.answers;
        let is_held = self.end_here(claim, state, ttl, 0);
        noted(answers, end, is_held && whole && recorded == Recorded::Yes)
    }

    /// Ends a run without a record: only the waiters in this process share its end.
    fn end_open(&mut self, end: Ended<S::Response>, store: &StoreCall<V>) -> Ended<S::Response> {
        let claim = self.take_claim();
        let (state, _, end) = self.judge(end, claim.mutating);
        let done = matches!(state, Some(State::Done(Some(_))));
        let answers = self.answers;
        self.end_here(claim, state, store.memory().filter(|_| done), 0);
        noted(answers, end, false)
    }

    /// Replays a recorded end to this caller and to all waiters in this process.
    fn replay(&mut self, end: RecordedEnd<V>, store: &StoreCall<V>) -> Ended<S::Response> {
        let RecordedEnd { state, age, left, waited } = end;
        let matched_on = if waited { MatchedOn::Inflight } else { MatchedOn::Completed };
        let name = RecordState::of(state.phase()).as_str();
        self.tell(&Event::Replayed { matched: matched_on, state: name }, store);
        let claim = self.take_claim();
        let fingerprint = claim.fingerprint(&store.claim.key);
        let replay = Replay { matched_on, age: Duration::from_millis(age), fingerprint };
        let mine = answer(&state, self.mutating);
        let done = matches!(state, State::Done(Some(_)));
        let memory = store.memory().filter(|_| done).map(|ttl| ttl.min(left));
        let answers = self.answers;
        self.end_here(claim, Some(state), memory, age);
        mine.into_result(replay).map(|kept| answers.load(kept, replay))
    }

    fn refuse(&mut self, refused: Refusal, store: &StoreCall<V>) -> BoxError {
        self.tell(&refused.event(store.effect), store);
        let is_due = store.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let (claim, cell) = (self.take_claim(), self.take_cell());
        match refused {
            // Other callers may wait for longer: the claim passes to the next of them.
            Refusal::InFlight | Refusal::WaitTimedOut => drop((cell, claim)),
            _ if is_due => drop((cell, claim)),
            _ => claim.refuse(&refused, cell),
        }
        refused.into_error(store.claim.mutating)
    }

    /// Cancelled before the store has replied: the waiters get the cancellation too.
    fn give_up(&mut self, store: &StoreCall<V>) -> BoxError {
        let ran = store.ran();
        let (state, _) = self.state_of_error(Cancelled::new(ran).into());
        let claim = self.take_claim();
        self.end_here(claim, Some(state), None, 0);
        Cancelled::new(ran).into()
    }

    /// Taken out, so that its drop wakes the waiters if something panics.
    fn take_claim(&mut self) -> Claim<V> {
        self.claim.take().expect("a store call holds a claim")
    }

    /// Ends the call in this process, which keeps the end for `ttl`, or not at all. `false` if the
    /// claim was lost.
    fn end_here(
        &mut self,
        claim: Claim<V>,
        state: Option<State<V>>,
        ttl: Option<Millis>,
        age: Millis,
    ) -> bool {
        let size = self.size_of(state.as_ref());
        claim.finish((state, size), ttl, age, self.take_cell()).0
    }

    fn tell(&self, event: &Event<'_>, store: &StoreCall<V>) {
        let observer = store.remote.observer.as_ref().filter(|it| it.enabled());
        if let (Some(observer), Some(req)) = (observer, &self.req) {
            observer.on_event(&self.answers.info(req), event);
        }
    }
}
