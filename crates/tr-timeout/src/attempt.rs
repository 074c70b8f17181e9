//! The timeout of one attempt.
use crate::{
    config,
    future::{AttemptTimeoutFuture, Limit},
    observer::TimeoutObserver,
    stream::StreamWatch,
    wait::Wait,
};
use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tower_layer::Layer;
use tower_service::Service;
use tr_core::{
    BoxError, ConfigError, DefaultPolicy, Observer, RequestPolicy,
    chunks::Chunks,
    internal::{ReadyOnCall, Shard, Sharded},
    setters,
};

/// The timeout of an attempt whose request sets none.
const DEFAULT: Duration = Duration::from_secs(10);

/// Applies an [`AttemptTimeout`].
#[derive(Clone, Debug)]
pub struct AttemptTimeoutLayer<A = DefaultPolicy> {
    after: Option<Duration>,
    idle: Option<Duration>,
    observer: Option<Sharded<Arc<dyn Observer>>>,
    policy: A,
}

/// Configures an [`AttemptTimeoutLayer`].
#[derive(Clone, Debug)]
#[must_use]
pub struct AttemptTimeoutBuilder<A = DefaultPolicy> {
    layer: AttemptTimeoutLayer<A>,
}

/// Ends an attempt that takes too long, its wait for readiness included.
///
/// It is as ready as the inner service, so that back-pressure reaches `load_shed` and the like outside of it, but for no
/// longer than its own limit: then it is ready, and the next call ends at once with `Ran::No`. What was
/// waited in `poll_ready` is taken from the attempt's time.
///
/// A layer without a limit of its own ([`per_request`](AttemptTimeoutLayer::per_request)) is always ready; the call
/// then waits for readiness under the request's limit, at most until its deadline.
///
/// An answer in chunks ([`RequestPolicy::chunks`]) has this time for its first chunk. From then on each
/// chunk may take as long as the idle timeout, counted while the consumer waits for it.
#[derive(Debug)]
pub struct AttemptTimeout<S, A = DefaultPolicy> {
    inner: ReadyOnCall<S>,
    /// For the readiness of the inner service, if it was not ready.
    wait: Option<Box<Wait>>,
    after: Option<Duration>,
    idle: Option<Duration>,
    observer: Option<Shard<Arc<dyn Observer>>>,
    policy: A,
}

impl<S: Clone, A: Clone> Clone for AttemptTimeout<S, A> {
    fn clone(&self) -> Self {
        let Self { inner, after, idle, observer, policy, .. } = self;
        Self {
            inner: inner.clone(),
            wait: None,
            after: *after,
            idle: *idle,
            observer: observer.clone(),
            policy: policy.clone(),
        }
    }
}

impl AttemptTimeoutLayer {
    /// Starts from the default: 10 s.
    pub const fn builder() -> AttemptTimeoutBuilder {
        AttemptTimeoutBuilder { layer: Self::of(Some(DEFAULT)) }
    }

    /// 30 s, unless the request sets its own timeout.
    #[must_use]
    pub const fn thirty_seconds() -> Self {
        Self::of(Some(Duration::from_secs(30)))
    }

    /// The timeout that the request sets; no timeout for a request that sets none.
    #[must_use]
    pub const fn per_request() -> Self {
        Self::of(None)
    }

    const fn of(after: Option<Duration>) -> Self {
        Self { after, idle: None, observer: None, policy: DefaultPolicy }
    }
}

impl Default for AttemptTimeoutLayer {
    /// 10 s, unless the request sets its own timeout.
    fn default() -> Self {
        Self::of(Some(DEFAULT))
    }
}

impl<A> AttemptTimeoutBuilder<A> {
    setters! {
        /// Sets how long an answer in chunks may wait for its next chunk, where the request does not say it:
        /// 1 ms to 24 h, by default as long as the attempt may take.
        fn idle(idle: Duration) { layer.idle = Some(idle) }

        /// Reports each timeout to `observer`.
        fn observer(observer: Arc<dyn Observer>) { layer.observer = Some(Sharded::new(observer)) }

        /// Sets the timeout of attempts whose request sets none: 1 ms to 24 h, 10 s by default; `None` is
        /// [`only_as_requested`](Self::only_as_requested).
        fn after(after: impl Into<Option<Duration>>) { layer.after = after.into() }

        /// Bounds only attempts whose request sets a timeout.
        fn only_as_requested() { layer.after = None }
    }

    fn read_by<B>(self, change: impl FnOnce(A) -> B) -> AttemptTimeoutBuilder<B> {
        let AttemptTimeoutLayer { after, idle, observer, policy } = self.layer;
        let policy = change(policy);
        AttemptTimeoutBuilder { layer: AttemptTimeoutLayer { after, idle, observer, policy } }
    }

    /// Builds the layer.
    ///
    /// # Errors
    /// If a duration is out of range.
    pub fn build(self) -> Result<AttemptTimeoutLayer<A>, ConfigError> {
        config::check([("after", self.layer.after), ("idle", self.layer.idle)])?;
        Ok(self.layer)
    }
}

tr_core::reading! { AttemptTimeoutLayer, AttemptTimeoutBuilder }

impl<S, A: Clone> Layer<S> for AttemptTimeoutLayer<A> {
    type Service = AttemptTimeout<S, A>;

    fn layer(&self, inner: S) -> Self::Service {
        let Self { after, idle, policy, .. } = self.clone();
        let observer = self.observer.as_ref().map(Sharded::shard);
        AttemptTimeout { inner: ReadyOnCall::new(inner), wait: None, after, idle, observer, policy }
    }
}

impl<S, Req, A> Service<Req> for AttemptTimeout<S, A>
where
    S: Service<Req, Error: Into<BoxError>> + Clone,
    A: RequestPolicy<Req> + Clone,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = AttemptTimeoutFuture<S, S::Future, Req, A>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self.inner.poll_inner(cx) {
            Poll::Ready(outcome) => {
                if self.wait.is_some() {
                    self.wait = self.wait.take().and_then(Wait::ended);
                }
                Poll::Ready(outcome.map_err(Into::into))
            }
            Poll::Pending => Wait::poll(&mut self.wait, self.after, cx).map(Ok),
        }
    }

    #[inline]
    fn call(&mut self, req: Req) -> Self::Future {
        if let Some(observer) = &mut self.observer {
            observer.settle();
        }
        let after = self.policy.attempt_timeout(&req).or(self.after);
        let limit = match self.wait {
            None => after.map_or(Limit::None, Limit::After),
            Some(_) => self.wait.take().map_or(Limit::None, |wait| wait.limit(after)),
        };
        let observer = TimeoutObserver::of(self.observer.as_ref(), || self.policy.info(&req));
        let stream = self.policy.chunks(&req).map(|chunks: &Chunks| {
            let idle = self.policy.idle_timeout(&req).or(self.idle).or(after);
            StreamWatch::new(chunks.watching(), idle)
        });
        let call = self.inner.call(req);
        AttemptTimeoutFuture::new(call, limit, stream, observer, self.policy.clone())
    }
}
