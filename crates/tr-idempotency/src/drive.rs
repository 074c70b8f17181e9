//! One run of a call, which can outlive its caller.
use crate::{
    bounds::{Answers, Detachable},
    end::{Failure, Flaw, State, failed},
    error::{OutcomeUnknown, SharedFailure, Withdrawn},
    lead::Lead,
    local::{claim::Claim, spares::Cell},
};
use std::{
    fmt,
    future::Future,
    marker::PhantomData,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::runtime::Handle;
use tr_core::{BoxError, DeferFuture, Ran, Verdict};

/// Runs a call in a cell of its own and records how it ends.
///
/// Dropped in mid-run it drops the call, and its claim says what that leaves. Fields are dropped
/// in order: the call is gone before somebody else can claim it.
pub(crate) struct Drive<S, Req, A, V>
where
    S: Detachable<Req>,
{
    pub(crate) cell: Option<Cell<DeferFuture<S, Req>>>,
    /// Where a store has the record: the dealings with it.
    pub(crate) lead: Option<Box<Lead<S::Response, V>>>,
    pub(crate) claim: Option<Claim<V>>,
    pub(crate) mutating: bool,
    pub(crate) answers: A,
    pub(crate) phase: Phase,
    of: PhantomData<fn() -> Req>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The tool was not called.
    Fresh,
    /// The tool was called and has not ended.
    Called,
    /// A poll is under way, or the tool has ended and that is being looked at; found at any other
    /// time, it has panicked.
    Polled,
    /// The tool has ended, and that is being recorded.
    Ending,
    Ended,
}

impl<S, Req, A, V> Drive<S, Req, A, V>
where
    S: Detachable<Req>,
    Req: Send + 'static,
    A: Answers<Req, S::Response, V>,
    V: Clone + Send + 'static,
{
    /// Puts the call into `cell`, or a new one. Without a claim nothing is recorded; with a lead, a
    /// store is asked first.
    #[inline]
    pub(crate) fn new(
        call: DeferFuture<S, Req>,
        cell: Option<Cell<DeferFuture<S, Req>>>,
        mut claim: Option<Claim<V>>,
        mutating: bool,
        answers: A,
        lead: Option<Box<Lead<S::Response, V>>>,
    ) -> Self {
        if let (Some(_), Some(claim)) = (&lead, &mut claim) {
            claim.set_fronting();
        }
        let cell = match cell {
            Some(mut cell) => {
                cell.as_mut().set(Some(call));
                cell
            }
            None => Box::pin(Some(call)),
        };
        Self {
            cell: Some(cell),
            lead,
            claim,
            mutating,
            answers,
            phase: Phase::Fresh,
            of: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<S::Response, BoxError>> {
        if self.phase == Phase::Polled {
            // What has panicked is not touched again.
            return Poll::Ready(Err(OutcomeUnknown::new(self.mutating, None).into()));
        }
        if self.lead.is_some() {
            return self.poll_led(cx);
        }
        let end = ready!(self.poll_call(cx));
        Poll::Ready(self.finish(end))
    }

    /// Whether the call was cancelled; if not, that wakes this task.
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
        let Some(cell) = &mut self.cell else { panic!("polled after completion") };
        self.phase = Phase::Polled;
        let mut call = cell.as_mut().as_pin_mut().expect("the cell is full until the end");
        // Should it panic, or what looks at its end, it may have started.
        if let Some(claim) = &mut self.claim {
            claim.set_started(true);
        }
        let panicked = LosesClaim(&mut self.claim);
        let poll = call.as_mut().poll(cx);
        mem::forget(panicked);
        let Poll::Ready(end) = poll else {
            self.phase = if call.is_called() { Phase::Called } else { Phase::Fresh };
            if let Some(claim) = &mut self.claim {
                claim.set_started(self.phase == Phase::Called);
            }
            if !attended && self.is_cancelled(cx) {
                return Poll::Ready(Err(self.withdraw()));
            }
            return Poll::Pending;
        };
        Poll::Ready(end.map_err(Into::into))
    }

    /// Drops the call, wherever it is.
    #[cold]
    pub(crate) fn withdraw(&mut self) -> BoxError {
        let ran = if self.phase == Phase::Fresh { Ran::No } else { Ran::Unknown };
        if let Some(cell) = &mut self.cell {
            cell.as_mut().set(None);
        }
        Withdrawn::new(ran).into()
    }

    fn finish(&mut self, end: Result<S::Response, BoxError>) -> Result<S::Response, BoxError> {
        let mut cell = self.cell.take().expect("ends once");
        cell.as_mut().set(None);
        self.phase = Phase::Ended;
        let Some(claim) = self.claim.take() else { return end };
        match end {
            Ok(mut response) => {
                let (state, keeps_answer) = self.state_of(&response, claim.is_mutating());
                if !(claim.finish(state, cell) && keeps_answer) {
                    self.answers.note_unrecorded(&mut response);
                }
                Ok(response)
            }
            Err(error) => {
                let flaw = Arc::new(self.flaw_of(error));
                let failure = Failure { flaw: flaw.clone(), response: None };
                claim.finish(Some(failed(self.mutating, failure)), cell);
                Err(SharedFailure::new(flaw).into())
            }
        }
    }

    /// The state that a response leaves, and whether a duplicate will get that response.
    pub(crate) fn state_of(
        &self,
        response: &S::Response,
        mutating: bool,
    ) -> (Option<State<V>>, bool) {
        let end = self.answers.classify(Ok(response));
        let kept = self.answers.store(response);
        let keeps_answer = kept.is_some();
        let state = match end.verdict {
            Verdict::Success if kept.is_none() && !mutating => None,
            Verdict::Success => Some(State::Done(kept)),
            _ => {
                let flaw = Arc::new(Flaw::new(end, None));
                Some(failed(mutating, Failure { flaw, response: kept }))
            }
        };
        (state, keeps_answer)
    }

    pub(crate) fn flaw_of(&self, error: BoxError) -> Flaw {
        let end = self.answers.classify(Err(&*error));
        let (verdict, ran, exhausted) = (end.verdict, end.ran, end.exhausted);
        Flaw { code: end.code.into(), verdict, ran, exhausted, error: Some(error) }
    }
}

/// Dropped while a poll unwinds: those who wait learn it now, whoever keeps the wreck.
struct LosesClaim<'d, V>(&'d mut Option<Claim<V>>);

impl<V> Drop for LosesClaim<'_, V> {
    fn drop(&mut self) {
        drop(self.0.take());
    }
}

/// A run whose caller is still there. When the caller goes, the run goes on in a task.
pub(crate) struct Attended<S, Req, A, V>(pub(crate) Option<Drive<S, Req, A, V>>)
where
    S: Detachable<Req>,
    Req: Send + 'static,
    A: Answers<Req, S::Response, V>,
    V: Clone + Send + 'static;

impl<S, Req, A, V> Drop for Attended<S, Req, A, V>
where
    S: Detachable<Req>,
    Req: Send + 'static,
    A: Answers<Req, S::Response, V>,
    V: Clone + Send + 'static,
{
    fn drop(&mut self) {
        let Some(drive) = self.0.take() else { return };
        if !matches!(drive.phase, Phase::Called | Phase::Ending) {
            return; // It did not start, has ended, or has panicked.
        }
        if let Some(claim) = &drive.claim {
            claim.detach();
        }
        // Without a runtime nobody will ever poll it: it ends here, and leaves `unknown`.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(Unattended(drive));
        }
    }
}

/// A run whose caller is gone.
struct Unattended<S, Req, A, V>(Drive<S, Req, A, V>)
where
    S: Detachable<Req>;

// The call is pinned in its cell, which moves with everything else.
impl<S, Req, A, V> Unpin for Unattended<S, Req, A, V> where S: Detachable<Req> {}

impl<S, Req, A, V> Future for Unattended<S, Req, A, V>
where
    S: Detachable<Req>,
    Req: Send + 'static,
    A: Answers<Req, S::Response, V>,
    V: Clone + Send + 'static,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Nobody is there to see the answer; who waits has been served.
        let _ = ready!(self.0.poll(cx));
        Poll::Ready(())
    }
}

impl<S, Req, A, V> fmt::Debug for Attended<S, Req, A, V>
where
    S: Detachable<Req>,
    Req: Send + 'static,
    A: Answers<Req, S::Response, V>,
    V: Clone + Send + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let drive = self.0.as_ref();
        f.debug_struct("Attended")
            .field("phase", &drive.map(|drive| drive.phase))
            .field("claim", &drive.and_then(|drive| drive.claim.as_ref()))
            .finish_non_exhaustive()
    }
}
