//! Future types.
use crate::{permit::Permit, state::End, why};
use pin_project_lite::pin_project;
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use tr_core::{BoxError, Classification, Classify, DefaultPolicy, Verdict};

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
    A: Classify<T>,
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
                    permit.wait();
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
fn settle(permit: &mut Permit, judged: Classification<'_>, error: Option<&BoxError>) {
    match judged.verdict {
        Verdict::Success => permit.succeed(),
        verdict => settle_badly(permit, verdict, judged.code, error),
    }
}

#[cold]
fn settle_badly(permit: &mut Permit, verdict: Verdict, code: &str, error: Option<&BoxError>) {
    match verdict {
        Verdict::Transient { .. } if permit.counts(code) => permit.fail(match error {
            Some(error) => why::shortened(error),
            None => why::shortened(&code),
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
