//! A deadline for calls that bring none.
use crate::config;
use std::{
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;
use tr_core::{ConfigError, DefaultPolicy, RequestPolicy, internal::CoarseInstant, setters};

/// Applies a [`DefaultDeadline`].
#[derive(Clone, Copy, Debug)]
pub struct DefaultDeadlineLayer<A = DefaultPolicy> {
    after: Option<Duration>,
    policy: A,
}

/// Configures a [`DefaultDeadlineLayer`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct DefaultDeadlineBuilder<A = DefaultPolicy> {
    layer: DefaultDeadlineLayer<A>,
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
    /// Leaves calls as they are.
    #[must_use]
    pub const fn none() -> Self {
        Self { after: None, policy: DefaultPolicy }
    }

    /// Starts from [`none`](Self::none).
    pub const fn builder() -> DefaultDeadlineBuilder {
        DefaultDeadlineBuilder { layer: Self::none() }
    }
}

impl<A> DefaultDeadlineBuilder<A> {
    setters! {
        /// Sets how long after a call is made its deadline is: 1 ms to 24 h; none by default.
        fn after(after: Duration) { layer.after = Some(after) }
    }

    /// Sets the policy that reads requests; [`DefaultPolicy`] by default.
    pub fn policy<B>(self, policy: B) -> DefaultDeadlineBuilder<B> {
        DefaultDeadlineBuilder { layer: DefaultDeadlineLayer { after: self.layer.after, policy } }
    }

    /// Builds the layer.
    ///
    /// # Errors
    /// If the duration is out of range.
    pub fn build(self) -> Result<DefaultDeadlineLayer<A>, ConfigError> {
        config::check([("deadline", self.layer.after)])?;
        Ok(self.layer)
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
