//! The layer and its builder.
use crate::{
    Anchor, Budget, RetryConfig, config::any_of, rng::RngSource, service::Retry, shared::Settings,
};
use std::{sync::Arc, time::Duration};
use tower_layer::Layer;
use tr_policy::{
    ConfigError, DefaultPolicy, Effect, Observer, RetryOverride,
    internal::{Faults, Sharded},
    setters,
};

/// Applies a [`Retry`].
///
/// Besides tool calls it takes `http` requests as they are, with the feature `http` of `tr-policy` or `tr-core`: GET and
/// the like are read-only, PUT and DELETE idempotent, the rest mutating; `Retry-After` is waited
/// for, and a response that failed comes back as it is.
///
/// ```
/// use http::{Request, Response, StatusCode};
/// use tower::{ServiceBuilder, ServiceExt};
/// use tr_policy::BoxError;
/// use tr_retry::RetryLayer;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), BoxError> {
/// let client = ServiceBuilder::new()
///     .layer(RetryLayer::default())
///     .service_fn(|req: Request<String>| async move {
///         let is_retry = req.headers().contains_key("x-retry-attempt");
///         let status = if is_retry { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
///         Ok::<_, BoxError>(Response::builder().status(status).body(String::new())?)
///     });
///
/// let weather = Request::get("http://localhost/weather").body(String::new())?;
/// assert_eq!(client.oneshot(weather).await?.status(), StatusCode::OK);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RetryLayer<A = DefaultPolicy> {
    shared: Sharded<Settings>,
    policy: A,
}

/// Configures a [`RetryLayer`].
#[derive(Debug)]
#[must_use]
pub struct Builder<A = DefaultPolicy> {
    settings: Settings,
    policy: A,
}

impl RetryLayer {
    /// Starts from the defaults: [`RetryConfig::default`], no budget, no observer.
    pub const fn builder() -> Builder {
        Builder { settings: Settings::of(RetryConfig::DEFAULT), policy: DefaultPolicy }
    }

    /// A layer with [`RetryConfig::fixed_cadence`].
    #[must_use]
    pub fn fixed_cadence() -> Self {
        Self::of(RetryConfig::fixed_cadence())
    }

    /// A layer with [`RetryConfig::per_request`].
    #[must_use]
    pub fn per_request() -> Self {
        Self::of(RetryConfig::per_request())
    }

    fn of(config: RetryConfig) -> Self {
        Self { shared: Sharded::new(Settings::of(config)), policy: DefaultPolicy }
    }
}

impl Default for RetryLayer {
    /// A layer with [`RetryConfig::default`].
    fn default() -> Self {
        Self::of(RetryConfig::DEFAULT)
    }
}

impl<A> Builder<A> {
    setters! {
        /// Sets attempts, delays and retried codes; [`RetryConfig::default`] by default.
        fn config(config: RetryConfig) { settings.config = config }

        /// Attempts in all, the first included; 4 by default, 1 to 1,000.
        fn attempts(attempts: u32) { settings.config.attempts = attempts }

        /// Ceiling of the first delay; 200 ms by default, 1 ms to 24 h.
        fn base(base: Duration) { settings.config.base = base }

        /// Factor from one ceiling to the next; 2 by default, 1 to 100.
        fn multiplier(multiplier: f64) { settings.config.multiplier = multiplier }

        /// The delay is drawn uniformly between these shares of its ceiling; full jitter, `(0.0, 1.0)`, by
        /// default, up to 10.
        fn jitter(jitter: (f64, f64)) { settings.config.jitter = jitter }

        /// Whether a delay counts from the start or from the end of the failed attempt; from the end by
        /// default.
        fn anchor(anchor: Anchor) { settings.config.anchor = anchor }

        /// Retries only failures with these codes; all that are transient by default, and if there is none.
        fn only_codes(codes: impl IntoIterator<Item = impl Into<Box<str>>>) {
            settings.config.only_codes = any_of(codes.into_iter().map(Into::into))
        }

        /// No delay is longer than this; 4 s by default, `None` for no such limit.
        fn cap(cap: impl Into<Option<Duration>>) { settings.config.cap = cap.into() }

        /// No attempt starts later than this after the first; 30 s by default, `None` for no such limit.
        fn max_elapsed(max_elapsed: impl Into<Option<Duration>>) { settings.config.max_elapsed = max_elapsed.into() }

        /// Bounds retries by a budget, which other layers may share. No budget by default.
        fn budget(budget: Budget) { settings.budget = Some(budget) }

        /// Retries only calls that carry a [`RetryOverride`] of their own, even an empty one. With
        /// [`opt_in_agents`](Self::opt_in_agents) set too, a call needs one of the two.
        fn opt_in() { settings.opt_in = true }

        /// Seeds the random delays: the same calls in the same order get the same delays. By default
        /// each process draws its own seed.
        fn seed(seed: u64) { settings.rngs = Some(RngSource::new(seed)) }

        /// Reports each retry, and each retry that was refused, to `observer`.
        fn observer(observer: Arc<dyn Observer>) { settings.observer = Some(observer) }
    }

    /// Overrides the configuration for tools with this effect. A manifest overrides this, a call
    /// overrides both.
    pub fn for_effect(mut self, effect: Effect, changes: RetryOverride) -> Self {
        self.settings.by_effect.retain(|(other, _)| *other != effect);
        self.settings.by_effect.push((effect, changes));
        self
    }

    /// Retries only calls of these agents, by the name that each call carries
    /// ([`RequestPolicy::agent`](tr_policy::RequestPolicy::agent)); a call without a name is not
    /// retried. Takes at least one name.
    ///
    /// ```
    /// use tower::{ServiceBuilder, ServiceExt};
    /// use tr_core::{BoxError, CallParts, NotSent, Params, ToolCall, ToolOutcome};
    /// use tr_retry::RetryLayer;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), BoxError> {
    /// let tool = ServiceBuilder::new()
    ///     .layer(RetryLayer::builder().opt_in_agents(["planner"]).build()?)
    ///     .service_fn(|call: ToolCall| async move {
    ///         if call.attempt() == 0 { Err(NotSent::new("connection refused"))? }
    ///         Ok::<_, BoxError>(ToolOutcome::default())
    ///     });
    ///
    /// let of = |agent: &str| {
    ///     let mut search = CallParts::new("search", Params::empty_object());
    ///     search.context.agent = Some(agent.into());
    ///     ToolCall::from(search)
    /// };
    /// assert!(tool.clone().oneshot(of("planner")).await.is_ok());
    /// assert!(tool.oneshot(of("intern")).await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn opt_in_agents<N: Into<Box<str>>>(mut self, agents: impl IntoIterator<Item = N>) -> Self {
        self.settings.agents = Some(agents.into_iter().map(Into::into).collect());
        self
    }

    fn read_by<B>(self, change: impl FnOnce(A) -> B) -> Builder<B> {
        Builder { settings: self.settings, policy: change(self.policy) }
    }

    /// Builds the layer.
    ///
    /// # Errors
    /// If settings are out of range; the error names every one.
    pub fn build(self) -> Result<RetryLayer<A>, ConfigError> {
        let mut faults = Faults::default();
        let config = &self.settings.config;
        config.check("", &mut faults);
        for (effect, changes) in &self.settings.by_effect {
            let mut changed = config.clone();
            changed.apply(changes);
            changed.check(&format!("{effect:?}: "), &mut faults);
        }
        if let Some(agents) = &self.settings.agents {
            let holds = !agents.is_empty() && agents.iter().all(|agent| !agent.is_empty());
            faults.check(
                "opt_in_agents",
                format!("{agents:?}"),
                holds,
                "one agent or more, none of them empty",
            );
        }
        faults.into_result("retry")?;
        Ok(RetryLayer { shared: Sharded::new(self.settings), policy: self.policy })
    }
}

tr_policy::reading! { RetryLayer, Builder and responses }

impl<S, A: Clone> Layer<S> for RetryLayer<A> {
    type Service = Retry<S, A>;

    fn layer(&self, inner: S) -> Self::Service {
        Retry { inner, shared: self.shared.shard(), policy: self.policy.clone() }
    }
}
