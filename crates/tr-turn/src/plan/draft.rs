//! A plan before it is validated.
use super::Limits;
use std::time::Duration;
use tr_core::{Effect, Json, Params, Priority, setters};

/// A plan before it is validated: calls of tools, their dependencies, and limits.
///
/// [`check`](Self::check) validates it: it returns a [`Plan`](super::Plan), or all mistakes.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    pub(crate) turn: Option<Box<str>>,
    pub(crate) session: Option<Box<str>>,
    pub(crate) agent: Option<Box<str>>,
    pub(crate) limits: Limits,
    pub(crate) calls: Vec<Call>,
}

/// One call of a plan.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// Its tool's name by default.
    pub(crate) name: Option<Box<str>>,
    pub(crate) tool: Box<str>,
    /// None by default.
    pub(crate) params: Option<Params>,
    pub(crate) after: Vec<Box<str>>,
    pub(crate) defaults: Vec<(Box<str>, Json)>,
    pub(crate) required: Option<bool>,
    pub(crate) default_value: Option<Json>,
    pub(crate) alternatives: Option<Vec<Alternative>>,
    pub(crate) priority: Option<Priority>,
    pub(crate) effect: Option<Effect>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) attempt_timeout: Option<Duration>,
    pub(crate) idempotency_key: Option<Box<str>>,
    pub(crate) cancellation_id: Option<Box<str>>,
}

/// An alternative tool.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alternative {
    pub(crate) tool: Box<str>,
    /// Its own params; those of the call if `None`.
    pub(crate) params: Option<Params>,
}

impl Alternative {
    /// One with the params of the call.
    pub(crate) fn of(tool: Box<str>) -> Self {
        Self { tool, params: None }
    }
}

impl Draft {
    /// A plan without calls. `turn` names it in traces.
    #[must_use]
    pub fn new(turn: impl Into<Box<str>>) -> Self {
        Self { turn: Some(turn.into()), ..Self::default() }
    }

    setters! {
        /// Adds a call. The order matters only between calls of the same priority.
        fn call(call: Call) { calls.push(call) }

        /// Sets the session on whose behalf the calls are made.
        fn session(session: impl Into<Box<str>>) { session = Some(session.into()) }

        /// Sets the agent on whose behalf the calls are made, for a stack where retries are opt-in
        /// per agent; none by default.
        fn agent(agent: impl Into<Box<str>>) { agent = Some(agent.into()) }

        /// Sets the time and concurrency limits.
        fn limits(limits: Limits) { limits = limits }
    }
}

impl Call {
    /// A call of the tool of this name, without params, named like the tool.
    #[must_use]
    pub fn new(tool: impl Into<Box<str>>) -> Self {
        Self { tool: tool.into(), ..Self::default() }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.tool)
    }

    setters! {
        /// Sets the call's name; two calls of one tool need different names.
        fn named(name: impl Into<Box<str>>) { name = Some(name.into()) }

        /// Sets its params. `{"$from": CALL}` in them is replaced by that call's result, and
        /// `{"$from": CALL, "at": POINTER}` by the value at that pointer; the call waits for these
        /// results.
        fn params(params: impl Into<Params>) { params = Some(params.into()) }

        /// Marks the call as required: if it fails, that is escalated to the user.
        fn required() { required = Some(true) }

        /// Marks the call as optional: if it fails, it is skipped. This is the default, unless the
        /// tool's manifest requires it.
        fn optional() { required = Some(false) }

        /// Sets the value for its dependents if it fails.
        fn default_value(value: impl Into<Json>) { default_value = Some(value.into()) }

        /// Sets its priority among the calls that are due.
        fn priority(priority: Priority) { priority = Some(priority) }

        /// Declares the effect of its tools, where no manifest does.
        fn effect(effect: Effect) { effect = Some(effect) }

        /// Sets how long it may take, with all its attempts.
        fn timeout(timeout: Duration) { timeout = Some(timeout) }

        /// Sets how long an attempt may take.
        fn attempt_timeout(timeout: Duration) { attempt_timeout = Some(timeout) }

        /// Sets its idempotency key.
        fn idempotency_key(key: impl Into<Box<str>>) { idempotency_key = Some(key.into()) }

        /// Sets the id by which the call can be cancelled; its name by default.
        fn cancellation_id(id: impl Into<Box<str>>) { cancellation_id = Some(id.into()) }

        /// Waits for the call of this name, and needs it to succeed.
        fn after(call: impl Into<Box<str>>) { after.push(call.into()) }

        /// Uses `value` as the result of `call` if that fails; overrides that call's
        /// [`default_value`](Self::default_value).
        fn or_default(call: impl Into<Box<str>>, value: impl Into<Json>) {
            defaults.push((call.into(), value.into()))
        }

        /// Adds an alternative tool with the same params, after those added before.
        fn alternative(tool: impl Into<Box<str>>) {
            alternatives.get_or_insert_default().push(Alternative::of(tool.into()))
        }

        /// Adds an alternative tool with its own params.
        fn alternative_with(tool: impl Into<Box<str>>, params: impl Into<Params>) {
            alternatives
                .get_or_insert_default()
                .push(Alternative { tool: tool.into(), params: Some(params.into()) })
        }
    }
}
