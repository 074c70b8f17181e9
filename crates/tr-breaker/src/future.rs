//! Future types.
use crate::{permit::Permit, state::End, why};
use pin_project_lite::pin_project;
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use tr_core::{BoxError, Classification, Classify, Standard, Verdict, code};

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
        },
        Refused { error: Option<BoxError> },
    }
}

impl<F, A> BreakerFuture<F, A> {
    pub(crate) const fn admitted(call: F, permit: Option<Permit>, answers: A) -> Self {
        Self { state: State::Admitted { call, permit, answers } }
    }

    pub(crate) const fn refused(error: BoxError) -> Self {
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
            StateProj::Admitted { call, permit, answers } => {
                let Poll::Ready(result) = call.poll(cx) else {
                    permit.as_mut().map(Permit::wait);
                    return Poll::Pending;
                };
                let result = result.map_err(Into::into);
                if let Some(permit) = permit {
                    settle(permit, answers, &result);
                }
                Poll::Ready(result)
            }
            StateProj::Refused { error } => {
                Poll::Ready(Err(error.take().expect("polled after completion")))
            }
        }
    }
}

/// Spends the permit on the end of its call. Should foreign code panic when it judges, nothing is
/// spent, and the permit goes back when it is dropped.
#[inline]
fn settle<T, A: Classify<T>>(permit: &mut Permit, answers: &A, result: &Result<T, BoxError>) {
    let judged = answers.classify(match result {
        Ok(response) => Ok(response),
        Err(error) => Err(&**error),
    });
    match judged.verdict {
        Verdict::Success => permit.succeed(),
        _ => settle_badly(permit, judged, result.as_ref().err()),
    }
}

#[cold]
fn settle_badly(permit: &mut Permit, judged: Classification<'_>, error: Option<&BoxError>) {
    let is_counted = permit.counts_rate_limits() || judged.code != code::RATE_LIMITED;
    match judged.verdict {
        Verdict::Transient { .. } if is_counted => permit.fail(match error {
            Some(error) => why::shortened(error),
            None => why::shortened(&judged.code),
        }),
        Verdict::Permanent => permit.spend(End::Permanent),
        _ => permit.spend(End::Neither),
    }
}

impl<F, A> fmt::Debug for BreakerFuture<F, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let admitted = matches!(self.state, State::Admitted { .. });
        f.debug_struct("BreakerFuture").field("admitted", &admitted).finish_non_exhaustive()
    }
}
