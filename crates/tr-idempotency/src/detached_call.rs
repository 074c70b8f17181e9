//! One run of a call, which can outlive its caller.
mod attended;

pub(crate) use self::attended::Attended;

use crate::{
    bounds::{Answers, Detachable},
    end::{Failure, RecordedFailure, SMALL_FAILURE, State, failed},
    error::{Cancelled, OutcomeUnknown, SharedFailure},
    local::{claim::Claim, shard::Shard, slot_pool::Cell},
    store_call::StoreCall,
};
use pin_project_lite::pin_project;
use std::{
    future::Future,
    mem,
    ops::{Deref, DerefMut},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tower_service::Service;
use tr_core::{BoxError, Ran, Verdict};

/// Runs a call in a pinned allocation of its own and records how it ends. It is one word, however
/// large the call's future is, so that outer layers move little.
///
/// Dropped during the run, it drops the call; the drop of the claim then records the state.
pub(crate) struct DetachedCall<S, F, Req, R, A, V>(Option<InCell<S, F, Req, R, A, V>>);

type InCell<S, F, Req, R, A, V> = Cell<Driver<S, F, Req, R, A, V>>;

pin_project! {
    /// The contents of the cell. Fields are dropped in order: the call's future is dropped before
    /// another caller can claim the call.
    pub(crate) struct Driver<S, F, Req, R, A, V> {
        // `None` until the tool is called, and once it has ended.
        #[pin]
        called: Option<F>,
        run: Run<S, Req, R, A, V>,
        // What to do with the run when its caller drops the future. A function pointer, since
        // `Drop` cannot have these bounds.
        leave: fn(InCell<S, F, Req, R, A, V>),
    }
}

/// The driver of calls of `S`.
pub(crate) type DriverOf<S, Req, A, V> =
    Driver<S, <S as Service<Req>>::Future, Req, <S as Service<Req>>::Response, A, V>;

/// The cell that holds it.
pub(crate) type CellOf<S, Req, A, V> = Cell<DriverOf<S, Req, A, V>>;

/// All of a run except the tool's future.
pub(crate) struct Run<S, Req, R, A, V> {
    /// The service and the request; `None` once the service is called.
    service: Option<S>,
    pub(crate) req: Option<Req>,
    /// The requests to the store, where a store has the record.
    pub(crate) store_call: Option<Box<StoreCall<R, V>>>,
    /// The claim; without one, nothing is recorded.
    pub(crate) claim: Option<Claim<V>>,
    /// The shard that takes the cell back, for a run without a claim, which ends with its caller.
    pub(crate) home: Option<Arc<Shard<V>>>,
    pub(crate) mutating: bool,
    pub(crate) answers: A,
    pub(crate) phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The tool was not called.
    Fresh,
    /// The tool was called and has not ended.
    Called,
    /// A poll is running, or the tool's end is being processed. Found at the start of a poll: an
    /// earlier poll has panicked.
    Polled,
    /// The tool has ended, and the end is being recorded.
    Ending,
}

impl<S, Req, R, A, V> Run<S, Req, R, A, V> {
    /// The request, until the tool is called.
    pub(crate) fn request(&mut self) -> Option<&mut Req> {
        self.req.as_mut()
    }

    /// The state to record for a response, and whether a duplicate will get that response.
    #[inline]
    pub(crate) fn state_of(&self, response: &R, mutating: bool) -> (Option<State<V>>, bool)
    where
        A: Answers<Req, R, V>,
    {
        let end = self.answers.classify(Ok(response));
        let kept = self.answers.store(response);
        let keeps_answer = kept.is_some();
        let state = match end.verdict {
            Verdict::Success if kept.is_none() && !mutating => None,
            Verdict::Success => Some(State::Done(kept)),
            _ => {
                let recorded = Arc::new(RecordedFailure::new(end, None));
                let large =
                    kept.as_ref().filter(|kept| self.answers.size_of(kept) >= SMALL_FAILURE);
                let brief = large.and_then(|kept| self.answers.shorten(kept));
                Some(failed(mutating, Failure::new(recorded, kept, brief)))
            }
        };
        (state, keeps_answer)
    }

    /// The size in bytes of the response, or of the long failure text, that this state keeps.
    #[inline]
    pub(crate) fn size_of(&self, state: Option<&State<V>>) -> usize
    where
        A: Answers<Req, R, V>,
    {
        let Some(state) = state else { return 0 };
        match (state.kept(), state.failure()) {
            (Some(kept), _) => self.answers.size_of(kept),
            (None, Some(Failure { recorded, brief: Some(_), .. })) => recorded.size(),
            (None, _) => 0,
        }
    }

    pub(crate) fn failure_of_error(&self, error: BoxError) -> RecordedFailure
    where
        A: Answers<Req, R, V>,
    {
        let end = self.answers.classify(Err(&*error));
        let known = RecordedFailure::new(end, None);
        RecordedFailure { error: Some(error), ..known }
    }
}

impl<S, Req, A, V> DetachedCall<S, S::Future, Req, S::Response, A, V>
where
    S: Detachable<Req>,
    Req: Send + 'static,
    A: Answers<Req, S::Response, V>,
    V: Clone + Send + 'static,
{
    /// A run of `req` by a clone of `service`, in `cell` or a new one. With a claim its end is
    /// recorded; with a store call, the call is claimed in the store first.
    #[inline]
    pub(crate) fn new(
        cell: Option<CellOf<S, Req, A, V>>,
        service: &S,
        req: Req,
        claim: Option<Claim<V>>,
        store_call: Option<Box<StoreCall<S::Response, V>>>,
        mutating: bool,
        answers: A,
    ) -> Self {
        let mut cell = cell.unwrap_or_else(|| Self::new_cell(answers));
        // Field by field, in place, to avoid a move.
        let run = cell.as_mut().project().run;
        run.service = Some(service.clone());
        run.req = Some(req);
        run.claim = claim;
        run.store_call = store_call;
        run.mutating = mutating;
        run.answers = answers;
        run.phase = Phase::Fresh;
        if let (Some(_), Some(claim)) = (&run.store_call, &mut run.claim) {
            claim.set_fronting();
        }
        Self(Some(cell))
    }

    #[cold]
    fn new_cell(answers: A) -> CellOf<S, Req, A, V> {
        let run = Run {
            service: None,
            req: None,
            store_call: None,
            claim: None,
            home: None,
            mutating: false,
            answers,
            phase: Phase::Fresh,
        };
        Box::pin(Driver { called: None, run, leave: attended::leave })
    }

    /// Marks a run without a record, which ends with its caller.
    #[inline]
    pub(crate) fn plain(mut self, home: Arc<Shard<V>>) -> Self {
        self.home = Some(home);
        self
    }

    #[inline]
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<S::Response, BoxError>> {
        if self.phase == Phase::Polled {
            // An earlier poll has panicked: the future is not polled again.
            return Poll::Ready(Err(OutcomeUnknown::new(self.mutating, None).into()));
        }
        if self.store_call.is_some() {
            return self.poll_with_store(cx);
        }
        let end = ready!(self.poll_call(cx));
        Poll::Ready(self.finish(end))
    }

    /// Whether the call was cancelled; if not, a cancellation will wake this task.
    pub(crate) fn is_cancelled(&mut self, cx: &mut Context<'_>) -> bool {
        self.claim.as_mut().is_some_and(|claim| claim.attend(cx.waker()))
    }

    /// The call itself, up to its end or its cancellation.
    #[inline]
    pub(crate) fn poll_call(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<S::Response, BoxError>> {
        let attended = self.claim.as_ref().is_some_and(Claim::is_attended);
        if attended && self.is_cancelled(cx) {
            return Poll::Ready(Err(self.withdraw()));
        }
        let driver = self.driver().project();
        let run = driver.run;
        run.phase = Phase::Polled;
        // If the poll or the classification panics, the tool may have started.
        if let Some(claim) = &mut run.claim {
            claim.set_started(true);
        }
        let panicked = LoseClaimOnUnwind(&mut run.claim);
        let poll = poll_called(driver.called, &mut run.service, &mut run.req, cx);
        mem::forget(panicked);
        let Poll::Ready(end) = poll else {
            run.phase = if run.req.is_none() { Phase::Called } else { Phase::Fresh };
            if let Some(claim) = &mut run.claim {
                claim.set_started(run.phase == Phase::Called);
            }
            let answers = run.answers;
            if let Some(req) = run.request() {
                // The time stamp is stale once the tool is ready.
                answers.set_stamp(req, None);
            }
            if !attended && self.is_cancelled(cx) {
                return Poll::Ready(Err(self.withdraw()));
            }
            return Poll::Pending;
        };
        Poll::Ready(end.map_err(Into::into))
    }

    /// Drops the call in whatever phase it is.
    #[cold]
    pub(crate) fn withdraw(&mut self) -> BoxError {
        let ran = if self.phase == Phase::Fresh { Ran::No } else { Ran::Unknown };
        self.drop_call();
        Cancelled::new(ran).into()
    }

    pub(crate) fn drop_call(&mut self) {
        if let Some(cell) = &mut self.0 {
            empty(cell);
        }
    }

    /// Takes the cell of a finished run, empty except for the claim.
    #[inline]
    pub(crate) fn take_cell(&mut self) -> CellOf<S, Req, A, V> {
        let mut cell = self.0.take().expect("ends once");
        empty(&mut cell);
        cell
    }

    fn finish(&mut self, end: Result<S::Response, BoxError>) -> Result<S::Response, BoxError> {
        let mut cell = self.take_cell();
        let run = cell.as_mut().project().run;
        let Some(mut claim) = run.claim.take() else {
            return_cell(cell);
            return end;
        };
        match end {
            Ok(mut response) => {
                let (state, keeps_answer) = run.state_of(&response, claim.is_mutating());
                claim.set_size(run.size_of(state.as_ref()));
                let answers = run.answers;
                if !(claim.finish(state, cell) && keeps_answer) {
                    answers.note_unrecorded(&mut response);
                }
                Ok(response)
            }
            Err(error) => {
                let recorded = Arc::new(run.failure_of_error(error));
                let state = failed(run.mutating, Failure::of_error(recorded.clone()));
                claim.set_size(run.size_of(Some(&state)));
                claim.finish(Some(state), cell);
                Err(SharedFailure::new(recorded).into())
            }
        }
    }

    #[inline]
    fn driver(&mut self) -> Pin<&mut DriverOf<S, Req, A, V>> {
        self.0.as_mut().expect("polled after completion").as_mut()
    }
}

/// Calls the tool once it is ready, and polls its future.
#[inline]
fn poll_called<S: Service<Req>, Req>(
    mut called: Pin<&mut Option<S::Future>>,
    service: &mut Option<S>,
    req: &mut Option<Req>,
    cx: &mut Context<'_>,
) -> Poll<Result<S::Response, S::Error>> {
    // In place: moving them out first would move them twice.
    if let Some(ready) = service {
        ready!(ready.poll_ready(cx))?;
        let req = req.take().expect("called once");
        called.set(Some(ready.call(req)));
        *service = None;
    }
    called.as_pin_mut().expect("called").poll(cx)
}

#[inline]
fn empty<S, F, Req, R, A, V>(cell: &mut Cell<Driver<S, F, Req, R, A, V>>) {
    let mut driver = cell.as_mut().project();
    driver.called.set(None);
    (driver.run.service, driver.run.req) = (None, None);
}

/// Returns the cell of a run without a claim to its pool.
fn return_cell<S, Req, A, V>(mut cell: CellOf<S, Req, A, V>)
where
    S: Detachable<Req>,
    Req: Send + 'static,
    A: Answers<Req, S::Response, V>,
    V: Clone + Send + 'static,
{
    if let Some(home) = cell.as_mut().project().run.home.take() {
        home.lock().pool.give(cell);
    }
}

impl<S, F, Req, R, A, V> Deref for DetachedCall<S, F, Req, R, A, V> {
    type Target = Run<S, Req, R, A, V>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.0.as_ref().expect("polled after completion").run
    }
}

impl<S, F, Req, R, A, V> DerefMut for DetachedCall<S, F, Req, R, A, V> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.0.as_mut().expect("polled after completion").as_mut().project().run
    }
}

/// Drops the claim when a poll unwinds, so that waiters wake at once, even if the panicked future
/// is kept.
struct LoseClaimOnUnwind<'d, V>(&'d mut Option<Claim<V>>);

impl<V> Drop for LoseClaimOnUnwind<'_, V> {
    fn drop(&mut self) {
        drop(self.0.take());
    }
}
