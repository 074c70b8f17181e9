//! Future types.
use crate::{error::CircuitOpen, permit::Permit, state::End, why};
use pin_project_lite::pin_project;
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Instant,
};
use tr_core::{BoxError, Classify, Standard, Verdict, code};

pin_project! {
    /// The response of a [`Breaker`](crate::Breaker). Dropped, its call counts for nothing, and a
    /// probe goes back.
    pub struct BreakerFuture<F, A = Standard> {
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
            permit: Option<Permit>,
            answers: A,
            stamp: Option<Instant>,
        },
        Refused { error: Option<CircuitOpen> },
    }
}

impl<F, A> BreakerFuture<F, A> {
    pub(crate) const fn admitted(
        call: F,
        permit: Option<Permit>,
        answers: A,
        stamp: Option<Instant>,
    ) -> Self {
        Self { state: State::Admitted { call, permit, answers, stamp } }
    }

    pub(crate) const fn refused(error: CircuitOpen) -> Self {
        Self { state: State::Refused { error: Some(error) } }
    }
}

impl<F, A, T, E> Future for BreakerFuture<F, A>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
    A: Classify<T>,
{
    type Output = Result<T, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProj::Admitted { call, permit, answers, stamp } => {
                let Poll::Ready(result) = call.poll(cx) else {
                    // Whoever waits has time for another look at the clock.
                    *stamp = None;
                    return Poll::Pending;
                };
                let result = result.map_err(Into::into);
                settle(permit, answers, &result, *stamp);
                Poll::Ready(result)
            }
            StateProj::Refused { error } => {
                Poll::Ready(Err(error.take().expect("polled after completion").into()))
            }
        }
    }
}

/// Spends the permit on the end of its call. It stays where it is while foreign code judges, so
/// that a panic there gives it back.
#[inline]
fn settle<T, A: Classify<T>>(
    permit: &mut Option<Permit>,
    answers: &A,
    result: &Result<T, BoxError>,
    stamp: Option<Instant>,
) {
    let Some(counts_rate_limits) = permit.as_ref().map(Permit::counts_rate_limits) else { return };
    let judged = answers.classify(match result {
        Ok(response) => Ok(response),
        Err(error) => Err(&**error),
    });
    let is_ignored = !counts_rate_limits && judged.code == code::RATE_LIMITED;
    let why = match judged.verdict {
        Verdict::Transient { .. } if !is_ignored => Some(match result {
            Ok(_) => why::shortened(&judged.code),
            Err(error) => why::shortened(error),
        }),
        _ => None,
    };
    let Some(permit) = permit.take() else { return };
    match (judged.verdict, why) {
        (Verdict::Success, _) => permit.succeed(stamp),
        (Verdict::Transient { .. }, Some(why)) => permit.fail(why),
        (Verdict::Permanent, _) => permit.spend(End::Permanent),
        (Verdict::Transient { .. } | Verdict::Cancelled, _) => permit.spend(End::Neither),
    }
}

impl<F, A> fmt::Debug for BreakerFuture<F, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let admitted = matches!(self.state, State::Admitted { .. });
        f.debug_struct("BreakerFuture").field("admitted", &admitted).finish_non_exhaustive()
    }
}
