//! A whole call under its deadline.
use crate::{
    config,
    future::{DeadlineFuture, Limit},
    observer::TimeoutObserver,
};
use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;
use tr_core::{
    BoxError, ConfigError, DefaultPolicy, Observer, RequestPolicy,
    internal::{CoarseInstant, ReadyOnCall, Shard, Sharded},
    setters,
};

/// Applies a [`Deadline`].
#[derive(Clone, Debug)]
pub struct DeadlineLayer<A = DefaultPolicy> {
    per_call: Option<Duration>,
    back_pressure: bool,
    observer: Option<Sharded<Arc<dyn Observer>>>,
    policy: A,
}

/// Configures a [`DeadlineLayer`].
#[derive(Clone, Debug)]
#[must_use]
pub struct DeadlineBuilder<A = DefaultPolicy> {
    layer: DeadlineLayer<A>,
}

/// Ends a call when its deadline passes, and refuses one that comes too late.
///
/// Always ready itself, since only the request says until when it may wait: readiness of the inner service is asked
/// for in `poll_ready` and waited for under the call's timer. With
/// [`back_pressure`](DeadlineBuilder::back_pressure) it is as ready as the inner service. A call that is refused gives
/// back what `poll_ready` had reserved.
#[derive(Clone, Debug)]
pub struct Deadline<S, A = DefaultPolicy> {
    inner: ReadyOnCall<S>,
    per_call: Option<Duration>,
    back_pressure: bool,
    observer: Option<Shard<Arc<dyn Observer>>>,
    policy: A,
}

impl DeadlineLayer {
    /// Bounds a call by its own deadline; one without a deadline is not bounded.
    #[must_use]
    pub const fn new() -> Self {
        Self { per_call: None, back_pressure: false, observer: None, policy: DefaultPolicy }
    }

    /// Starts from [`new`](Self::new).
    pub const fn builder() -> DeadlineBuilder {
        DeadlineBuilder { layer: Self::new() }
    }
}

impl Default for DeadlineLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<A> DeadlineBuilder<A> {
    setters! {
        /// How long any call may take, if its own deadline is not earlier: 1 ms to 24 h, no
        /// limit by default. Inner layers see it as the call's deadline.
        fn per_call(per_call: Duration) { layer.per_call = Some(per_call) }

        /// Is as ready as the inner service, so that `load_shed` and the like work outside of this layer. Who waits
        /// for readiness then waits without a deadline; an attempt timeout inside bounds that. Off by default.
        fn back_pressure(passes_on: bool) { layer.back_pressure = passes_on }

        /// Tells `observer` of each deadline that passed.
        fn observer(observer: Arc<dyn Observer>) { layer.observer = Some(Sharded::new(observer)) }
    }

    fn read_by<B>(self, change: impl FnOnce(A) -> B) -> DeadlineBuilder<B> {
        let DeadlineLayer { per_call, back_pressure, observer, policy } = self.layer;
        let policy = change(policy);
        DeadlineBuilder { layer: DeadlineLayer { per_call, back_pressure, observer, policy } }
    }

    /// The layer.
    ///
    /// # Errors
    /// If the duration is out of its range.
    pub fn build(self) -> Result<DeadlineLayer<A>, ConfigError> {
        config::check([("per_call", self.layer.per_call)])?;
        Ok(self.layer)
    }
}

tr_core::reading! { DeadlineLayer, DeadlineBuilder }

impl<S, A: Clone> Layer<S> for DeadlineLayer<A> {
    type Service = Deadline<S, A>;

    fn layer(&self, inner: S) -> Self::Service {
        let Self { per_call, back_pressure, policy, .. } = self.clone();
        let observer = self.observer.as_ref().map(Sharded::shard);
        Deadline { inner: ReadyOnCall::new(inner), per_call, back_pressure, observer, policy }
    }
}

impl<S, A> Deadline<S, A> {
    /// The limit of `req`: [`Limit::Over`] if its deadline has passed. Notes the time that it reads in
    /// the request.
    #[inline]
    fn limit<Req>(&self, req: &mut Req) -> Limit
    where
        A: RequestPolicy<Req>,
    {
        let deadline = self.policy.deadline(req);
        if deadline.is_none() && self.per_call.is_none() {
            return Limit::None;
        }
        let now = Instant::now();
        self.policy.set_stamp(req, Some(CoarseInstant::at(now.into_std())));
        let left = deadline.map(|at| Instant::from_std(at).saturating_duration_since(now));
        let after = match (left, self.per_call) {
            (Some(left), None) => left,
            (Some(left), Some(per_call)) if left <= per_call => left,
            (_, per_call) => {
                let per_call = per_call.expect("the deadline or `per_call` is set");
                self.policy.set_deadline(req, (now + per_call).into_std());
                per_call
            }
        };
        if after.is_zero() { Limit::Over(after) } else { Limit::At(now + after, after) }
    }
}

impl<S, Req, A> Service<Req> for Deadline<S, A>
where
    S: Service<Req, Error: Into<BoxError>> + Clone,
    A: RequestPolicy<Req>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = DeadlineFuture<S, S::Future, Req>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if self.back_pressure {
            return self.inner.poll_inner(cx).map_err(Into::into);
        }
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    // Inlined, the future would not be made in its place, but moved there.
    #[inline(never)]
    fn call(&mut self, mut req: Req) -> Self::Future {
        if let Some(observer) = &mut self.observer {
            observer.settle();
        }
        let limit = self.limit(&mut req);
        // What has no limit has nothing to tell.
        let observer = match limit {
            Limit::None => None,
            _ => TimeoutObserver::of(self.observer.as_ref(), || self.policy.info(&req)),
        };
        if let Limit::Over(_) = limit {
            // There may be no next call: an instance that stays ready would keep its reservation.
            self.inner = self.inner.clone();
            return DeadlineFuture::new(None, limit, observer);
        }
        DeadlineFuture::new(Some(self.inner.call(req)), limit, observer)
    }
}
