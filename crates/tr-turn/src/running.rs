//! [`Running`]: the future of one call of a turn, with its own timeout and cancellation. `turn.rs`
//! polls it.
use crate::{recorder::Listed, trace::Run};
use pin_project_lite::pin_project;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    task::coop,
    time::{Instant, Sleep, sleep_until},
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tower_service::Service;
use tr_core::{BoxError, Effect, Ran, ToolCall, ToolOutcome, internal::ReadyOnCallFuture};

pin_project! {
    /// A running call: resolves when it ends, times out or is cancelled.
    pub(crate) struct Running<S, F> {
        pub(crate) call: usize,
        #[pin]
        answer: ReadyOnCallFuture<S, F, ToolCall>,
        #[pin]
        timer: Option<Sleep>,
        #[pin]
        cancelled: WaitForCancellationFutureOwned,
        // Until the end.
        context: Option<RunContext>,
    }
}

/// What the turn needs to know of a call when it has ended.
pub(crate) struct RunContext {
    pub(crate) run: Arc<Run>,
    pub(crate) effect: Effect,
    /// The call's own deadline and timeout.
    pub(crate) until: Option<(Instant, Duration)>,
    /// Registers the run with the recorder.
    pub(crate) _listed: Option<Listed>,
}

/// How it ended.
#[derive(Debug)]
pub(crate) enum End {
    Answered(Result<ToolOutcome, BoxError>),
    TimedOut(Ran),
    Cancelled(Ran),
    Panicked,
}

impl<S, F> Running<S, F> {
    pub(crate) fn new(
        call: usize,
        answer: ReadyOnCallFuture<S, F, ToolCall>,
        token: CancellationToken,
        context: RunContext,
    ) -> Self {
        let timer = context.until.map(|(at, _)| sleep_until(at));
        Self { call, answer, timer, cancelled: token.cancelled_owned(), context: Some(context) }
    }

    pub(crate) fn context(&self) -> &RunContext {
        self.context.as_ref().expect("it has not ended")
    }

    /// Whether the tool may have run: not before it is called.
    pub(crate) fn ran(&self) -> Ran {
        if self.answer.is_called() { Ran::Unknown } else { Ran::No }
    }
}

impl<S, F, E> Future for Running<S, F>
where
    S: Service<ToolCall, Response = ToolOutcome, Error = E, Future = F>,
    F: Future<Output = Result<ToolOutcome, E>>,
    E: Into<BoxError>,
{
    type Output = (usize, RunContext, End);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut answer = this.answer;
        // A panic of a tool ends only its call: its future is not polled again.
        let polled = catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(cx)));
        let ran = if answer.is_called() { Ran::Unknown } else { Ran::No };
        // The call's own end is checked first: it says exactly whether the tool ran, and an inner
        // timeout names itself.
        let end = match polled {
            Ok(Poll::Ready(end)) => End::Answered(end.map_err(Into::into)),
            Err(_) => End::Panicked,
            // Unconstrained, so that a call which uses up the task's budget does not block its
            // timeout and cancellation.
            Ok(Poll::Pending)
                if Pin::new(&mut coop::unconstrained(this.cancelled)).poll(cx).is_ready() =>
            {
                End::Cancelled(ran)
            }
            Ok(Poll::Pending) => {
                let Some(timer) = this.timer.as_pin_mut() else { return Poll::Pending };
                ready!(Pin::new(&mut coop::unconstrained(timer)).poll(cx));
                End::TimedOut(ran)
            }
        };
        // The caller drops this future at its end, and the call with it.
        Poll::Ready((*this.call, this.context.take().expect("it ends once"), end))
    }
}
