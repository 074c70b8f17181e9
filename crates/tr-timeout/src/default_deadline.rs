//! A deadline for calls that bring none.
use crate::config;
use std::{
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;
use tr_core::{ConfigError, DefaultPolicy, RequestPolicy, internal::CoarseInstant};

/// Applies a [`DefaultDeadline`].
#[derive(Clone, Copy, Debug)]
pub struct DefaultDeadlineLayer<A = DefaultPolicy> {
    after: Option<Duration>,
    policy: A,
}

/// Sets a deadline on each call that has none. Inner layers enforce it:
/// [`Deadline`](crate::Deadline), retry, and idempotency while a duplicate waits. Ends no call itself.
///
/// Belongs outside of every layer that waits. The call's own deadline stays, whether earlier or
/// later.
#[derive(Clone, Copy, Debug)]
pub struct DefaultDeadline<S, A = DefaultPolicy> {
    inner: S,
    after: Option<Duration>,
    policy: A,
}

impl DefaultDeadlineLayer {
    /// Sets the deadline this long after a call is made: 1 ms to 24 h. With `None` calls stay as they are.
    ///
    /// # Errors
    /// If the duration is out of range.
    pub fn new(after: impl Into<Option<Duration>>) -> Result<Self, ConfigError> {
        let after = after.into();
        config::check([("deadline", after)])?;
        Ok(Self { after, policy: DefaultPolicy })
    }
}

impl<A> DefaultDeadlineLayer<A> {
    /// Sets the policy that reads requests; [`DefaultPolicy`] by default.
    #[must_use]
    pub fn policy<B>(self, policy: B) -> DefaultDeadlineLayer<B> {
        DefaultDeadlineLayer { after: self.after, policy }
    }
}

impl<S, A: Clone> Layer<S> for DefaultDeadlineLayer<A> {
    type Service = DefaultDeadline<S, A>;

    fn layer(&self, inner: S) -> Self::Service {
        DefaultDeadline { inner, after: self.after, policy: self.policy.clone() }
    }
}

impl<S, Req, A> Service<Req> for DefaultDeadline<S, A>
where
    S: Service<Req>,
    A: RequestPolicy<Req>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, mut req: Req) -> S::Future {
        if let Some(after) = self.after
            && self.policy.deadline(&req).is_none()
        {
            let now = Instant::now();
            self.policy.set_stamp(&mut req, Some(CoarseInstant::at(now.into_std())));
            self.policy.set_deadline(&mut req, (now + after).into_std());
        }
        self.inner.call(req)
    }
}
