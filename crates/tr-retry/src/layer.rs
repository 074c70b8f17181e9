//! The layer and its builder.
use crate::{
    Budget, Policy,
    chance::Streams,
    config::{ConfigError, Faults},
    service::Retry,
    terms::{Settings, Terms},
};
use std::sync::Arc;
use tower_layer::Layer;
use tr_core::{DefaultPolicy, Effect, Observer, RetryOverride};

/// Applies a [`Retry`].
///
/// Besides tool calls it takes `http` requests as they are, with tr-core's feature `http`: GET and
/// the like are read-only, PUT and DELETE idempotent, the rest mutating; `Retry-After` is waited
/// for, and a response that failed comes back as it is.
///
/// ```
/// use http::{Request, Response, StatusCode};
/// use tower::{ServiceBuilder, ServiceExt};
/// use tr_core::BoxError;
/// use tr_retry::RetryLayer;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), BoxError> {
/// let client = ServiceBuilder::new()
///     .layer(RetryLayer::tool_reliability())
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
#[derive(Debug)]
pub struct RetryLayer<A = DefaultPolicy> {
    terms: Terms,
    answers: A,
}

impl<A: Clone> Clone for RetryLayer<A> {
    fn clone(&self) -> Self {
        Self { terms: self.terms.whole(), answers: self.answers.clone() }
    }
}

/// Configures a [`RetryLayer`].
#[derive(Debug)]
#[must_use]
pub struct Builder<A = DefaultPolicy> {
    settings: Settings,
    answers: A,
}

impl RetryLayer {
    /// Starts from [`tool_reliability`](Self::tool_reliability).
    pub const fn builder() -> Builder {
        Builder { settings: Settings::of(Policy::tool_reliability()), answers: DefaultPolicy }
    }

    /// By [`Policy::tool_reliability`].
    #[must_use]
    pub fn tool_reliability() -> Self {
        Self::of(Policy::tool_reliability())
    }

    /// By [`Policy::error_handling`].
    #[must_use]
    pub fn error_handling() -> Self {
        Self::of(Policy::error_handling())
    }

    /// By [`Policy::utee`].
    #[must_use]
    pub fn utee() -> Self {
        Self::of(Policy::utee())
    }

    fn of(policy: Policy) -> Self {
        Self { terms: Terms::of(Settings::of(policy)), answers: DefaultPolicy }
    }
}

impl Default for RetryLayer {
    /// [`tool_reliability`](Self::tool_reliability).
    fn default() -> Self {
        Self::tool_reliability()
    }
}

impl<A> Builder<A> {
    /// Sets the policy, [`Policy::tool_reliability`] by default.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.settings.policy = policy;
        self
    }

    /// Changes the policy for tools with this effect; a manifest and a call may change it further.
    pub fn for_effect(mut self, effect: Effect, changes: RetryOverride) -> Self {
        self.settings.by_effect.retain(|(other, _)| *other != effect);
        self.settings.by_effect.push((effect, changes));
        self
    }

    /// Bounds retries by a budget, which other layers may share. None by default.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.settings.budget = Some(budget);
        self
    }

    /// Retries only calls that bring changes to the policy of their own, and so ask for it.
    /// Together with [`opt_in_agents`](Self::opt_in_agents), either will do.
    pub const fn opt_in(mut self) -> Self {
        self.settings.opt_in = true;
        self
    }

    /// Retries only calls of these agents, by the names that the calls carry
    /// ([`CallContext::agent`](tr_core::call::CallContext::agent)); a call of nobody's is not
    /// retried. One name at least.
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

    /// Draws delays from streams under `seed`: the same calls in the same order get the same
    /// delays. By default each process has a seed of its own.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.settings.streams = Some(Streams::new(seed));
        self
    }

    /// Tells `observer` of each retry, and of each that was not made.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.settings.observer = Some(observer);
        self
    }

    /// Asks `answers` about requests and responses.
    pub fn answers<B>(self, answers: B) -> Builder<B> {
        Builder { settings: self.settings, answers }
    }

    /// The layer.
    ///
    /// # Errors
    /// If settings are out of their ranges; the error names each.
    pub fn build(self) -> Result<RetryLayer<A>, ConfigError> {
        let mut faults = Faults::default();
        let policy = &self.settings.policy;
        faults.check_policy("", policy);
        for (effect, changes) in &self.settings.by_effect {
            let mut changed = policy.clone();
            changed.apply(changes);
            faults.check_policy(&format!("{effect:?}: "), &changed);
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
        faults.into_result()?;
        Ok(RetryLayer { terms: Terms::of(self.settings), answers: self.answers })
    }
}

impl<S, A: Clone> Layer<S> for RetryLayer<A> {
    type Service = Retry<S, A>;

    fn layer(&self, inner: S) -> Self::Service {
        Retry { inner, terms: self.terms.whole(), answers: self.answers.clone() }
    }
}
