//! Future types.
use crate::{AttemptTimedOut, DeadlineExceeded, witness::Witness};
use pin_project_lite::pin_project;
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    task::coop,
    time::{Instant, Sleep, sleep, sleep_until},
};
use tower_service::Service;
use tr_core::{BoxError, DeferFuture, Ran};

/// Until when something may take.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    None,
    /// Counted from the first poll that has to wait.
    After(Duration),
    /// At an instant, which was this far away.
    At(Instant, Duration),
}

impl Limit {
    fn timer(self) -> Option<Sleep> {
        match self {
            Self::None => None,
            Self::After(after) => Some(sleep(after)),
            Self::At(at, _) => Some(sleep_until(at)),
        }
    }

    const fn after(self) -> Duration {
        match self {
            Self::None => Duration::MAX,
            Self::After(after) | Self::At(_, after) => after,
        }
    }
}

type Answer<S, Req> = Result<<S as Service<Req>>::Response, <S as Service<Req>>::Error>;

pin_project! {
    /// A call under a timer, which is armed once the call has to wait.
    struct Bounded<S, Req>
    where
        S: Service<Req>,
    {
        // `None` once time ran out: what is in flight is dropped at that moment.
        #[pin]
        call: Option<DeferFuture<S, Req>>,
        #[pin]
        timer: Option<Sleep>,
        limit: Limit,
        witness: Option<Box<Witness>>,
    }
}

impl<S: Service<Req>, Req> Bounded<S, Req> {
    const fn new(
        call: Option<DeferFuture<S, Req>>,
        limit: Limit,
        witness: Option<Box<Witness>>,
    ) -> Self {
        Self { call, timer: None, limit, witness }
    }

    /// The call's end, or whether the tool ran if time ran out.
    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Answer<S, Req>, Ran>> {
        let mut this = self.project();
        let Some(call) = this.call.as_mut().as_pin_mut() else { panic!("polled after completion") };
        if let Poll::Ready(end) = call.poll(cx) {
            return Poll::Ready(Ok(end));
        }
        if this.timer.is_none() {
            this.timer.set(this.limit.timer());
        }
        let Some(timer) = this.timer.as_pin_mut() else { return Poll::Pending };
        // A call that uses up its task's budget at each poll must not keep the timer from firing.
        ready!(Pin::new(&mut coop::unconstrained(timer)).poll(cx));

        let was_called = this.call.as_ref().as_pin_ref().is_some_and(|call| call.is_called());
        let ran = if was_called { Ran::Unknown } else { Ran::No };
        this.call.set(None);
        if let Some(witness) = this.witness.take() {
            witness.tell(this.limit.after(), ran);
        }
        Poll::Ready(Err(ran))
    }
}

pin_project! {
    /// The response of an [`AttemptTimeout`](crate::AttemptTimeout).
    pub struct AttemptTimeoutFuture<S, Req>
    where
        S: Service<Req>,
    {
        #[pin]
        bounded: Bounded<S, Req>,
    }
}

impl<S: Service<Req>, Req> AttemptTimeoutFuture<S, Req> {
    pub(crate) fn new(
        call: DeferFuture<S, Req>,
        after: Option<Duration>,
        witness: Option<Box<Witness>>,
    ) -> Self {
        let limit = after.map_or(Limit::None, Limit::After);
        Self { bounded: Bounded::new(Some(call), limit, witness) }
    }
}

impl<S, Req> Future for AttemptTimeoutFuture<S, Req>
where
    S: Service<Req>,
    S::Error: Into<BoxError>,
{
    type Output = Result<S::Response, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let after = this.bounded.limit.after();
        Poll::Ready(match ready!(this.bounded.poll(cx)) {
            Ok(end) => end.map_err(Into::into),
            Err(ran) => Err(AttemptTimedOut::new(after, ran).into()),
        })
    }
}

pin_project! {
    /// The response of a [`Deadline`](crate::Deadline).
    pub struct DeadlineFuture<S, Req>
    where
        S: Service<Req>,
    {
        #[pin]
        state: State<Bounded<S, Req>>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<B> {
        Bounded { #[pin] bounded: B },
        TooLate { witness: Option<Box<Witness>> },
    }
}

impl<S: Service<Req>, Req> DeadlineFuture<S, Req> {
    pub(crate) fn new(
        call: DeferFuture<S, Req>,
        limit: Limit,
        witness: Option<Box<Witness>>,
    ) -> Self {
        Self { state: State::Bounded { bounded: Bounded::new(Some(call), limit, witness) } }
    }

    /// A call that came after its deadline.
    pub(crate) const fn too_late(witness: Option<Box<Witness>>) -> Self {
        Self { state: State::TooLate { witness } }
    }
}

impl<S, Req> Future for DeadlineFuture<S, Req>
where
    S: Service<Req>,
    S::Error: Into<BoxError>,
{
    type Output = Result<S::Response, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (after, ran) = match self.project().state.project() {
            StateProj::Bounded { bounded } => {
                let after = bounded.limit.after();
                match ready!(bounded.poll(cx)) {
                    Ok(end) => return Poll::Ready(end.map_err(Into::into)),
                    Err(ran) => (after, ran),
                }
            }
            StateProj::TooLate { witness } => {
                if let Some(witness) = witness.take() {
                    witness.tell(Duration::ZERO, Ran::No);
                }
                (Duration::ZERO, Ran::No)
            }
        };
        Poll::Ready(Err(DeadlineExceeded::new(after, ran).into()))
    }
}

impl<S: Service<Req>, Req> fmt::Debug for Bounded<S, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bounded")
            .field("call", &self.call)
            .field("limit", &self.limit)
            .field("armed", &self.timer.is_some())
            .finish_non_exhaustive()
    }
}

impl<S: Service<Req>, Req> fmt::Debug for AttemptTimeoutFuture<S, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AttemptTimeoutFuture").field(&self.bounded).finish()
    }
}

impl<S: Service<Req>, Req> fmt::Debug for DeadlineFuture<S, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tuple = f.debug_tuple("DeadlineFuture");
        match &self.state {
            State::Bounded { bounded } => tuple.field(bounded),
            State::TooLate { .. } => tuple.field(&"too late"),
        };
        tuple.finish()
    }
}
