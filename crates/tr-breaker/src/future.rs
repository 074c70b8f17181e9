//! Future types.
use crate::{
    circuit::{End, Ticket},
    clock,
    keyed::KeyedCircuit,
    shortened::shortened,
};
use pin_project_lite::pin_project;
use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tr_policy::{
    BoxError, Classification, DefaultPolicy, Ran, ResponsePolicy, Verdict,
    code::{NOT_READY, RATE_LIMITED},
    internal::CoarseInstant,
};

pin_project! {
    /// The response of a [`Breaker`](crate::Breaker). If it is dropped, its call does not count, and
    /// a probe is returned.
    #[must_use = "futures do nothing unless polled"]
    pub struct BreakerFuture<F, A = DefaultPolicy> {
        #[pin]
        state: State<F, A>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, A> {
        Admitted {
            #[pin]
            call: F,
            permit: Permit,
            policy: A,
        },
        Refused { error: Option<BoxError> },
    }
}

impl<F, A> BreakerFuture<F, A> {
    pub(crate) const fn admitted(call: F, permit: Permit, policy: A) -> Self {
        Self { state: State::Admitted { call, permit, policy } }
    }

    pub(crate) const fn refused(error: BoxError) -> Self {
        Self { state: State::Refused { error: Some(error) } }
    }
}

impl<F, A, T, E> Future for BreakerFuture<F, A>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
    A: ResponsePolicy<T>,
{
    type Output = Result<T, BoxError>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProj::Admitted { call, permit, policy } => match call.poll(cx) {
                Poll::Ready(Ok(response)) => {
                    settle(permit, policy.classify(Ok(&response)), None);
                    Poll::Ready(Ok(response))
                }
                Poll::Ready(Err(error)) => {
                    let error = error.into();
                    settle(permit, policy.classify(Err(&*error)), Some(&error));
                    Poll::Ready(Err(error))
                }
                Poll::Pending => {
                    permit.has_waited = true;
                    Poll::Pending
                }
            },
            StateProj::Refused { error } => {
                Poll::Ready(Err(error.take().expect("polled after completion")))
            }
        }
    }
}

/// Spends the permit on the end of its call. Where foreign code panicked when it should judge,
/// nothing is spent, and the permit goes back when it is dropped.
#[inline]
pub(crate) fn settle(permit: &mut Permit, judged: Classification<'_>, error: Option<&BoxError>) {
    match judged.verdict {
        Verdict::Success => permit.succeed(),
        _ => settle_badly(permit, judged, error),
    }
}

#[cold]
fn settle_badly(permit: &mut Permit, judged: Classification<'_>, error: Option<&BoxError>) {
    match judged.verdict {
        Verdict::Transient { .. } if permit.counts(judged.code) => permit.fail(match error {
            Some(error) => shortened(error),
            None => shortened(&judged.code),
        }),
        // Where it is unknown whether the tool ran, there was no answer.
        Verdict::Permanent if judged.ran != Ran::Unknown => {
            permit.spend(End::Permanent { answered: judged.ran == Ran::Yes });
        }
        _ => permit.spend(End::Neither),
    }
}

tr_policy::debug_parts! { BreakerFuture<F, A>, |it|
    admitted = matches!(it.state, State::Admitted { .. })
}

/// The right to make one call. Dropped unspent, a probe goes back and another may go out.
#[derive(Debug)]
pub(crate) struct Permit {
    circuit: Arc<KeyedCircuit>,
    /// `None`: it is spent, or counts for nothing.
    ticket: Option<Ticket>,
    /// When the call began, if the request carries it or the circuit needs it.
    began: Option<CoarseInstant>,
    /// It did not end at once, so that the time at which it began is not that of its end.
    has_waited: bool,
}

impl Permit {
    #[inline]
    pub(crate) fn new(
        circuit: Arc<KeyedCircuit>,
        ticket: Option<Ticket>,
        began: Option<CoarseInstant>,
    ) -> Self {
        if circuit.is_timed {
            let began = began.unwrap_or_else(|| CoarseInstant::at(clock::now()));
            // A tool that blocks ends at once, and is slow all the same.
            return Self { circuit, ticket, began: Some(began), has_waited: true };
        }
        Self { circuit, ticket, began, has_waited: false }
    }

    /// Whether a failure of this code is one. A tool that says what is not ready yet works.
    pub(crate) fn counts(&self, code: &str) -> bool {
        code != NOT_READY && (code != RATE_LIMITED || self.circuit.settings.count_rate_limits)
    }

    /// Spends it on a success.
    #[inline]
    pub(crate) fn succeed(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        // A look at the clock costs as much as all the rest.
        let ended = self.began.filter(|_| !self.has_waited);
        let now = || ended.unwrap_or_else(|| CoarseInstant::at(clock::now()));
        self.circuit.succeed(ticket, self.began, now);
    }

    /// Spends it on a failure of this message.
    #[cold]
    pub(crate) fn fail(&mut self, message: Arc<str>) {
        if let Some(ticket) = self.ticket.take() {
            let now = clock::now();
            let slow = self.circuit.is_slow(self.began, CoarseInstant::at(now));
            self.circuit.end(ticket, End::Failure { slow }, now, Some(message));
        }
    }

    /// Spends it on an end that says nothing of the tool, or that it answered.
    #[cold]
    pub(crate) fn spend(&mut self, end: End) {
        if let Some(ticket) = self.ticket.take() {
            self.circuit.end(ticket, end, clock::now(), None);
        }
    }
}

impl Drop for Permit {
    #[inline]
    fn drop(&mut self) {
        if self.ticket.is_some_and(|ticket| ticket.probe.is_some()) {
            self.spend(End::Neither);
        }
    }
}
