//! One run of a call, which can outlive its caller.
mod record;
mod stored;

use crate::{
    bounds::{Answers, Detachable},
    end::ttl,
    error::{Cancelled, OutcomeUnknown},
    local::{
        claim::{Claim, Shard},
        slot_pool::Cell,
    },
    remote::Boxed,
};
use pin_project_lite::pin_project;
use std::{
    future::{Future, poll_fn},
    mem,
    ops::{Deref, DerefMut},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
};
use tokio::{runtime::Handle, sync::OwnedSemaphorePermit};
use tower_service::Service;
use tr_core::{BoxError, Ran, debug_parts};

/// Runs a call in a pinned allocation of its own and records how it ends. It is one word, however
/// large the call's future is, so that outer layers move little.
///
/// Dropped during the run, it drops the call; the drop of the claim then records the state.
pub(crate) struct DetachedCall<S, F, Req, A, V>(Option<InCell<S, F, Req, A, V>>);

type InCell<S, F, Req, A, V> = Cell<Driver<S, F, Req, A, V>>;

pin_project! {
    /// The contents of the cell. Fields are dropped in order: the call's future is dropped before
    /// another caller can claim the call.
    pub(crate) struct Driver<S, F, Req, A, V> {
        // `None` until the tool is called, and once it has ended.
        #[pin]
        called: Option<F>,
        run: Run<S, Req, A, V>,
        // What to do with the run when its caller drops the future. A function pointer, since
        // `Drop` cannot have these bounds.
        leave: fn(InCell<S, F, Req, A, V>),
    }
}

/// How a call ended.
pub(crate) type Ended<R> = Result<R, BoxError>;

/// The place of a call in flight, which its caller and its run share.
pub(crate) type Place = Arc<OwnedSemaphorePermit>;

/// The driver of calls of `S`.
pub(crate) type DriverOf<S, Req, A, V> = Driver<S, <S as Service<Req>>::Future, Req, A, V>;

/// The cell that holds it.
pub(crate) type CellOf<S, Req, A, V> = Cell<DriverOf<S, Req, A, V>>;

/// All of a run except the tool's future.
pub(crate) struct Run<S, Req, A, V> {
    /// The service and the request; `None` once the service is called.
    service: Option<S>,
    pub(crate) req: Option<Req>,
    /// The claim; without one, nothing is recorded.
    pub(crate) claim: Option<Claim<V>>,
    /// The shard that takes the cell back, for a run without a claim, which ends with its caller.
    pub(crate) home: Option<Arc<Shard<V>>>,
    pub(crate) mutating: bool,
    place: Option<Place>,
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
}

impl<S, Req, A, V> DetachedCall<S, S::Future, Req, A, V>
where
    S: Detachable<Req>,
    Req: Send + 'static,
    A: Answers<Req, S::Response, V>,
    V: Clone + Send + 'static,
{
    /// A run of `req` by a clone of `service`, in `cell` or a new one. With a claim its end is
    /// recorded.
    #[inline]
    pub(crate) fn new(
        cell: Option<CellOf<S, Req, A, V>>,
        service: &S,
        req: Req,
        claim: Option<Claim<V>>,
        mutating: bool,
        answers: A,
        place: Option<Place>,
    ) -> Self {
        let mut cell = cell.unwrap_or_else(|| Self::new_cell(answers));
        // Field by field, in place, to avoid a move.
        let run = cell.as_mut().project().run;
        run.service = Some(service.clone());
        run.req = Some(req);
        run.place = place;
        run.claim = claim;
        run.mutating = mutating;
        run.answers = answers;
        run.phase = Phase::Fresh;
        Self(Some(cell))
    }

    #[cold]
    fn new_cell(answers: A) -> CellOf<S, Req, A, V> {
        let run = Run {
            service: None,
            req: None,
            claim: None,
            home: None,
            mutating: false,
            place: None,
            answers,
            phase: Phase::Fresh,
        };
        Box::pin(Driver { called: None, run, leave: Self::leave })
    }

    #[inline]
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Ended<S::Response>> {
        if self.phase == Phase::Polled {
            // An earlier poll has panicked: the future is not polled again.
            return Poll::Ready(Err(OutcomeUnknown::new(self.mutating, None).into()));
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
    pub(crate) fn poll_call(&mut self, cx: &mut Context<'_>) -> Poll<Ended<S::Response>> {
        let attended = self.claim.as_ref().is_some_and(|claim| claim.attended);
        if attended && self.is_cancelled(cx) {
            return Poll::Ready(Err(self.withdraw()));
        }
        let driver = self.driver().project();
        let run = driver.run;
        run.phase = Phase::Polled;
        // If the poll or the classification panics, the tool may have started.
        if let Some(claim) = &mut run.claim {
            claim.started = true;
        }
        let panicked = LoseClaimOnUnwind(&mut run.claim);
        let poll = poll_called(driver.called, &mut run.service, &mut run.req, cx);
        mem::forget(panicked);
        let Poll::Ready(end) = poll else {
            run.phase = if run.req.is_none() { Phase::Called } else { Phase::Fresh };
            if let Some(claim) = &mut run.claim {
                claim.started = run.phase == Phase::Called;
            }
            let answers = run.answers;
            if let Some(req) = run.req.as_mut() {
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

    /// Records the end in this process.
    fn finish(&mut self, end: Ended<S::Response>) -> Ended<S::Response> {
        let mut cell = self.take_cell();
        let run = cell.as_mut().project().run;
        let Some(claim) = run.claim.take() else {
            Self::return_cell(cell);
            return end;
        };
        let (state, keeps, end) = run.judge(end, claim.mutating);
        let (size, answers) = (run.size_of(state.as_ref()), run.answers);
        // Without a time to live it ends with its call, however coarse the clock is.
        let lasts = state.as_ref().map(|state| ttl(&claim.ttls, state, claim.mutating));
        let (held, stays) = claim.finish((state, size), lasts.filter(|ttl| *ttl > 0), 0, cell);
        noted(answers, end, held && stays && keeps)
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

    #[inline]
    fn driver(&mut self) -> Pin<&mut DriverOf<S, Req, A, V>> {
        self.0.as_mut().expect("polled after completion").as_mut()
    }

    /// Returns the cell of a run without a claim to its pool.
    pub(super) fn return_cell(mut cell: CellOf<S, Req, A, V>) {
        if let Some(home) = cell.as_mut().project().run.home.take() {
            home.lock().pool.give(cell);
        }
    }

    /// The caller dropped the future before the end.
    fn leave(mut cell: CellOf<S, Req, A, V>) {
        if cell.run.home.is_some() {
            empty(&mut cell);
            return Self::return_cell(cell);
        }
        if cell.run.phase != Phase::Called {
            return; // It did not start, or has panicked.
        }
        if let Some(claim) = &cell.run.claim {
            claim.detach();
        }
        // Without a runtime, nothing would poll it: it ends here, and leaves `unknown`.
        if let Ok(runtime) = Handle::try_current() {
            let mut call = Self(Some(cell));
            // The response has no receiver; the waiters get theirs.
            runtime.spawn(async move { drop(poll_fn(|cx| call.poll(cx)).await) });
        }
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

/// The end for the caller, with a note where a duplicate will not get the whole response.
#[inline]
fn noted<Req, R, V>(
    answers: impl Answers<Req, R, V>,
    end: Ended<R>,
    is_recorded: bool,
) -> Ended<R> {
    end.map(|mut response| {
        if !is_recorded {
            answers.note_unrecorded(&mut response);
        }
        response
    })
}

#[inline]
fn empty<S, F, Req, A, V>(cell: &mut Cell<Driver<S, F, Req, A, V>>) {
    let mut driver = cell.as_mut().project();
    driver.called.set(None);
    (driver.run.service, driver.run.req, driver.run.place) = (None, None, None);
}

impl<S, F, Req, A, V> Deref for DetachedCall<S, F, Req, A, V> {
    type Target = Run<S, Req, A, V>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.0.as_ref().expect("polled after completion").run
    }
}

impl<S, F, Req, A, V> DerefMut for DetachedCall<S, F, Req, A, V> {
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

/// A run under a claim of the store.
pub(crate) struct StoredRun<R> {
    /// `None` once it has ended or panicked.
    run: Option<Boxed<Ended<R>>>,
    /// Whether the tool was called: then the run goes on without its caller.
    goes_on: Arc<AtomicBool>,
    mutating: bool,
    /// A function pointer, since `Drop` cannot have its bounds.
    leave: fn(Boxed<Ended<R>>),
}

impl<R> StoredRun<R> {
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Ended<R>> {
        // Taken out: one that panics is dropped, and not polled again.
        let Some(mut run) = self.run.take() else {
            return Poll::Ready(Err(OutcomeUnknown::new(self.mutating, None).into()));
        };
        let poll = run.as_mut().poll(cx);
        if poll.is_pending() {
            self.run = Some(run);
        }
        poll
    }
}

impl<R> Drop for StoredRun<R> {
    fn drop(&mut self) {
        if let Some(run) = self.run.take()
            && self.goes_on.load(Relaxed)
        {
            (self.leave)(run);
        }
    }
}

/// A run whose caller still polls it. When the caller drops it, the run goes on in a task, unless
/// it has no claim: then it ends with its caller.
pub(crate) struct Attended<S, F, Req, A, V>(pub(crate) DetachedCall<S, F, Req, A, V>);

impl<S, F, Req, A, V> Drop for Attended<S, F, Req, A, V> {
    #[inline]
    fn drop(&mut self) {
        if let Some(cell) = self.0.0.take() {
            (cell.leave)(cell);
        }
    }
}

debug_parts! { Attended<S, F, Req, A, V>, |it|
    phase = it.0.0.as_ref().map(|cell| cell.run.phase),
    claim = it.0.0.as_ref().and_then(|cell| cell.run.claim.as_ref()),
}
