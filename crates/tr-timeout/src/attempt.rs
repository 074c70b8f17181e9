//! One attempt under a timer.
use crate::{
    config::{self, ConfigError},
    future::AttemptTimeoutFuture,
    witness::{Listener, Witness},
};
use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tower_layer::Layer;
use tower_service::Service;
use tr_core::{BoxError, DefaultPolicy, KeyOf, Observer, Progress, ReadyOnCall};

/// Applies an [`AttemptTimeout`].
#[derive(Debug)]
pub struct AttemptTimeoutLayer<A = DefaultPolicy> {
    after: Option<Duration>,
    listener: Listener,
    answers: A,
}

impl<A: Clone> Clone for AttemptTimeoutLayer<A> {
    fn clone(&self) -> Self {
        let Self { after, listener, answers } = self;
        Self { after: *after, listener: listener.whole(), answers: answers.clone() }
    }
}

/// Configures an [`AttemptTimeoutLayer`].
#[derive(Clone, Debug)]
#[must_use]
pub struct AttemptTimeoutBuilder<A = DefaultPolicy> {
    layer: AttemptTimeoutLayer<A>,
}

/// Ends an attempt that takes too long, its wait for readiness included.
///
/// Always ready itself: readiness of the inner service is asked for in `poll_ready` and waited
/// for under the attempt's timer, and no longer than the call's deadline: nobody further out would
/// know that nothing was in flight.
#[derive(Clone, Debug)]
pub struct AttemptTimeout<S, A = DefaultPolicy> {
    inner: ReadyOnCall<S>,
    after: Option<Duration>,
    listener: Listener,
    answers: A,
}

impl AttemptTimeoutLayer {
    /// Starts from [`tool_reliability`](Self::tool_reliability).
    pub const fn builder() -> AttemptTimeoutBuilder {
        AttemptTimeoutBuilder { layer: Self::tool_reliability() }
    }

    /// 10 s, unless the request says otherwise.
    #[must_use]
    pub const fn tool_reliability() -> Self {
        Self::of(Some(Duration::from_secs(10)))
    }

    /// 30 s, unless the request says otherwise.
    #[must_use]
    pub const fn error_handling() -> Self {
        Self::of(Some(Duration::from_secs(30)))
    }

    /// As long as the request says; a request that says nothing is not bounded.
    #[must_use]
    pub const fn utee() -> Self {
        Self::of(None)
    }

    const fn of(after: Option<Duration>) -> Self {
        Self { after, listener: Listener::NOBODY, answers: DefaultPolicy }
    }
}

impl Default for AttemptTimeoutLayer {
    /// [`tool_reliability`](Self::tool_reliability).
    fn default() -> Self {
        Self::tool_reliability()
    }
}

impl<A> AttemptTimeoutBuilder<A> {
    /// How long an attempt may take whose request does not say: 1 ms to 24 h, 10 s by default.
    pub const fn after(mut self, after: Duration) -> Self {
        self.layer.after = Some(after);
        self
    }

    /// Bounds only the attempts whose request says how long.
    pub const fn only_as_requested(mut self) -> Self {
        self.layer.after = None;
        self
    }

    /// Tells `observer` of each timeout.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.layer.listener = Listener::new(observer);
        self
    }

    /// Asks `answers` about requests.
    pub fn answers<B>(self, answers: B) -> AttemptTimeoutBuilder<B> {
        let AttemptTimeoutLayer { after, listener, .. } = self.layer;
        AttemptTimeoutBuilder { layer: AttemptTimeoutLayer { after, listener, answers } }
    }

    /// The layer.
    ///
    /// # Errors
    /// If the duration is out of its range.
    pub fn build(self) -> Result<AttemptTimeoutLayer<A>, ConfigError> {
        config::check("after", self.layer.after)?;
        Ok(self.layer)
    }
}

impl<S, A: Clone> Layer<S> for AttemptTimeoutLayer<A> {
    type Service = AttemptTimeout<S, A>;

    fn layer(&self, inner: S) -> Self::Service {
        let Self { after, listener, answers } = self.clone();
        AttemptTimeout { inner: ReadyOnCall::new(inner), after, listener, answers }
    }
}

impl<S, Req, A> Service<Req> for AttemptTimeout<S, A>
where
    S: Service<Req> + Clone,
    S::Error: Into<BoxError>,
    A: Progress<Req> + KeyOf<Req> + Clone,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = AttemptTimeoutFuture<S, S::Future, Req, A>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, req: Req) -> Self::Future {
        self.listener.settle();
        let after = self.answers.attempt_timeout(&req).or(self.after);
        let witness = Witness::of(&self.listener, || self.answers.info_of(&req));
        AttemptTimeoutFuture::new(self.inner.call(req), after, witness, self.answers.clone())
    }
}
