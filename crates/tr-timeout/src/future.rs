//! Future types.
use crate::{AttemptTimedOut, DeadlineExceeded, observer::TimeoutObserver, stream::StreamWatch};
use pin_project_lite::pin_project;
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    task::coop,
    time::{Instant, Sleep, sleep, sleep_until},
};
use tower_service::Service;
use tr_core::{BoxError, Ran, RequestPolicy, internal::ReadyOnCallFuture};

/// Until when something may take.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    None,
    /// Counted from the first poll that has to wait.
    After(Duration),
    /// At an instant, which was this far away.
    At(Instant, Duration),
    /// It is over already, after this long.
    Over(Duration),
}

impl Limit {
    fn timer(self) -> Option<Sleep> {
        match self {
            Self::None | Self::Over(_) => None,
            Self::After(after) => Some(sleep(after)),
            Self::At(at, _) => Some(sleep_until(at)),
        }
    }

    const fn after(self) -> Duration {
        match self {
            Self::None => Duration::MAX,
            Self::After(after) | Self::At(_, after) | Self::Over(after) => after,
        }
    }
}

pin_project! {
    /// A call under a timer, which is armed once the call has to wait.
    struct Bounded<S, F, Req> {
        // `None` once time ran out: what is in flight is dropped at that moment.
        #[pin]
        call: Option<ReadyOnCallFuture<S, F, Req>>,
        #[pin]
        timer: Option<Sleep>,
        limit: Limit,
        // The chunks of its answer, once there are any, prolong its time.
        stream: Option<Box<StreamWatch>>,
        observer: Option<Box<TimeoutObserver>>,
    }
}

impl<S, F, Req> Bounded<S, F, Req> {
    const fn new(
        call: Option<ReadyOnCallFuture<S, F, Req>>,
        limit: Limit,
        stream: Option<Box<StreamWatch>>,
        observer: Option<Box<TimeoutObserver>>,
    ) -> Self {
        Self { call, timer: None, limit, stream, observer }
    }

    /// Whether the inner service has been called: before, the tool cannot have run.
    fn is_called(&self) -> bool {
        self.call.as_ref().is_none_or(ReadyOnCallFuture::is_called)
    }

    /// The call's end, or whether the tool ran if time ran out.
    #[inline]
    fn poll<T, E>(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Result<T, E>, Ran>>
    where
        S: Service<Req, Response = T, Error = E, Future = F>,
        F: Future<Output = Result<T, E>>,
    {
        if let Limit::Over(after) = self.limit {
            self.give_up(after, Ran::No);
            return Poll::Ready(Err(Ran::No));
        }
        let mut this = self.as_mut().project();
        let Some(call) = this.call.as_mut().as_pin_mut() else { panic!("polled after completion") };
        if let Poll::Ready(end) = call.poll(cx) {
            return Poll::Ready(Ok(end));
        }
        if this.timer.is_none() {
            this.timer.set(this.limit.timer());
        }
        match this.stream {
            None => {
                let Some(timer) = this.timer.as_pin_mut() else { return Poll::Pending };
                // A call that uses up its task's budget at each poll must not keep the timer from firing.
                ready!(Pin::new(&mut coop::unconstrained(timer)).poll(cx));
            }
            Some(stream) => ready!(poll_stream(stream, this.timer.as_mut(), cx)),
        }

        let ran = if self.is_called() { Ran::Unknown } else { Ran::No };
        let idle = self.stream.as_ref().and_then(|stream| stream.idle());
        let after = idle.unwrap_or(self.limit.after());
        self.give_up(after, ran);
        Poll::Ready(Err(ran))
    }

    /// Drops the call, and tells that its time is over.
    fn give_up(self: Pin<&mut Self>, after: Duration, ran: Ran) {
        let mut this = self.project();
        this.call.set(None);
        if let Some(observer) = this.observer.take() {
            observer.tell(after, ran);
        }
    }
}

/// Whether the time of an attempt is over that may answer in chunks. Its timer holds until the first chunk,
/// and then until the next one is due.
#[cold]
fn poll_stream(
    stream: &mut StreamWatch,
    mut timer: Pin<&mut Option<Sleep>>,
    cx: &mut Context<'_>,
) -> Poll<()> {
    if stream.notice(cx) {
        timer.set(stream.idle().map(sleep));
    }
    loop {
        let Some(due) = timer.as_mut().as_pin_mut() else { return Poll::Pending };
        ready!(Pin::new(&mut coop::unconstrained(due)).poll(cx));
        if stream.idle().is_none() {
            return Poll::Ready(());
        }
        match stream.due(Instant::now()) {
            None => return Poll::Ready(()),
            Some(at) => timer.set(Some(sleep_until(at))),
        }
    }
}

pin_project! {
    /// The response of an [`AttemptTimeout`](crate::AttemptTimeout).
    #[must_use = "futures do nothing unless polled"]
    pub struct AttemptTimeoutFuture<S, F, Req, A> {
        #[pin]
        bounded: Bounded<S, F, Req>,
        policy: A,
        due: Option<Box<Due>>,
    }
}

/// The call's deadline, while its tool is not ready.
struct Due {
    since: Instant,
    timer: Pin<Box<Sleep>>,
}

impl<S, F, Req, A> AttemptTimeoutFuture<S, F, Req, A> {
    pub(crate) fn new(
        call: ReadyOnCallFuture<S, F, Req>,
        limit: Limit,
        stream: Option<Box<StreamWatch>>,
        observer: Option<Box<TimeoutObserver>>,
        policy: A,
    ) -> Self {
        Self { bounded: Bounded::new(Some(call), limit, stream, observer), policy, due: None }
    }

    /// How long the tool was not ready, once the call's deadline has passed for that.
    #[cold]
    fn poll_due(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Duration>
    where
        A: RequestPolicy<Req>,
    {
        let this = self.project();
        let mut bounded = this.bounded;
        let call = bounded.as_mut().project().call.as_pin_mut();
        let Some(req) = call.and_then(ReadyOnCallFuture::request) else { return Poll::Pending };
        let due = match this.due {
            Some(due) => due,
            None => {
                let Some(at) = this.policy.deadline(req) else { return Poll::Pending };
                let timer = Box::pin(sleep_until(Instant::from_std(at)));
                this.due.insert(Box::new(Due { since: Instant::now(), timer }))
            }
        };
        ready!(Pin::new(&mut coop::unconstrained(due.timer.as_mut())).poll(cx));
        let waited = due.since.elapsed();
        bounded.give_up(waited, Ran::No);
        Poll::Ready(waited)
    }
}

impl<S, F, Req, A, T, E> Future for AttemptTimeoutFuture<S, F, Req, A>
where
    S: Service<Req, Response = T, Error = E, Future = F>,
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
    A: RequestPolicy<Req>,
{
    type Output = Result<T, BoxError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match self.as_mut().project().bounded.poll(cx) {
            Poll::Ready(Ok(end)) => end.map_err(Into::into),
            Poll::Ready(Err(ran)) => {
                let Bounded { limit, stream, .. } = &self.bounded;
                let idle = stream.as_ref().and_then(|stream| stream.idle());
                Err(AttemptTimedOut::new(limit.after(), idle, ran).into())
            }
            Poll::Pending if self.bounded.is_called() => return Poll::Pending,
            Poll::Pending => {
                let waited = ready!(self.poll_due(cx));
                Err(DeadlineExceeded::not_ready(waited).into())
            }
        })
    }
}

pin_project! {
    /// The response of a [`Deadline`](crate::Deadline).
    #[must_use = "futures do nothing unless polled"]
    pub struct DeadlineFuture<S, F, Req> {
        #[pin]
        bounded: Bounded<S, F, Req>,
    }
}

impl<S, F, Req> DeadlineFuture<S, F, Req> {
    pub(crate) fn new(
        call: Option<ReadyOnCallFuture<S, F, Req>>,
        limit: Limit,
        observer: Option<Box<TimeoutObserver>>,
    ) -> Self {
        Self { bounded: Bounded::new(call, limit, None, observer) }
    }
}

impl<S, F, Req, T, E> Future for DeadlineFuture<S, F, Req>
where
    S: Service<Req, Response = T, Error = E, Future = F>,
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
{
    type Output = Result<T, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let bounded = self.project().bounded;
        let after = bounded.limit.after();
        Poll::Ready(match ready!(bounded.poll(cx)) {
            Ok(end) => end.map_err(Into::into),
            Err(Ran::No) if !after.is_zero() => Err(DeadlineExceeded::not_ready(after).into()),
            Err(ran) => Err(DeadlineExceeded::new(after, ran).into()),
        })
    }
}

tr_core::debug_parts! { Bounded<S, F, Req>, |it|
    call = it.call,
    limit = it.limit,
    armed = it.timer.is_some()
}

tr_core::debug_parts! { AttemptTimeoutFuture<S, F, Req, A>, |it| bounded = it.bounded }

tr_core::debug_parts! { DeadlineFuture<S, F, Req>, |it| bounded = it.bounded }
