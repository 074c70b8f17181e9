//! What a turn is to do: a graph of calls, checked before anything starts.
mod blank;
mod check;
mod draft;
mod error;
mod limits;
mod read;
mod schema;
mod tools;

pub(crate) use self::draft::Alternative;
pub use self::{
    draft::{Call, Draft},
    error::PlanError,
    limits::{Limits, MAX_CALLS, MAX_CONCURRENCY, MAX_TIMEOUT},
    schema::json_schema,
    tools::Tools,
};
use crate::template::Template;
use std::{fmt, sync::Arc, time::Duration};
use tr_core::{Effect, Json, Priority, ToolId, ToolManifest};

/// What a turn is to do: a graph of calls in which every name is known, nothing goes in circles,
/// and every required call has a way. A clone is a reference count.
#[derive(Clone)]
pub struct Plan(Arc<Body>);

#[derive(Clone)]
struct Body {
    turn: Option<Box<str>>,
    session: Option<Box<str>>,
    agent: Option<Box<str>>,
    limits: Limits,
    nodes: Vec<Node>,
}

/// A call of a plan.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) name: Arc<str>,
    /// The tool itself and its alternatives, those that there are, best first.
    pub(crate) ways: Vec<Way>,
    /// The tool as the plan names it, whether it is there or not.
    pub(crate) tool: Arc<str>,
    /// The calls whose results it needs.
    pub(crate) needs: Vec<Need>,
    /// The calls that need its result.
    pub(crate) needed_by: Vec<usize>,
    pub(crate) required: bool,
    /// What its dependents get if it fails.
    pub(crate) default_value: Option<Json>,
    pub(crate) priority: Priority,
    pub(crate) timeout: Option<Duration>,
    pub(crate) attempt_timeout: Option<Duration>,
    pub(crate) idempotency_key: Option<Box<str>>,
    pub(crate) cancellation_id: Option<Box<str>>,
}

/// One call's need of another.
#[derive(Clone, Debug)]
pub(crate) struct Need {
    pub(crate) of: usize,
    /// What to take instead if it fails.
    pub(crate) default: Option<Json>,
}

/// A tool that can do what a call is for.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) tool: ToolId,
    pub(crate) label: Arc<str>,
    pub(crate) manifest: Option<Arc<ToolManifest>>,
    /// What it does to the world, and whether anybody said so.
    pub(crate) effect: (Effect, bool),
    pub(crate) params: Template,
}

impl Plan {
    /// Reads a plan in JSON, and checks it.
    ///
    /// # Errors
    /// Names every mistake with its JSON pointer. Nothing has started.
    pub fn from_json(text: &str, tools: &Tools) -> Result<Self, PlanError> {
        let mut faults = Vec::new();
        let draft = read::draft(text, &mut faults);
        check::plan(&draft, tools, faults)
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.0.nodes
    }

    /// What a call gets instead of a result that it needs.
    pub(crate) fn default_for<'p>(&'p self, need: &'p Need) -> Option<&'p Json> {
        need.default.as_ref().or(self.0.nodes[need.of].default_value.as_ref())
    }

    /// How long and how wide the turn may be.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// The turn's name, if the plan gives it one.
    #[must_use]
    pub fn turn(&self) -> Option<&str> {
        self.0.turn.as_deref()
    }

    /// The session on whose behalf the calls are made.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.0.session.as_deref()
    }

    /// The agent on whose behalf the calls are made.
    #[must_use]
    pub fn agent(&self) -> Option<&str> {
        self.0.agent.as_deref()
    }

    /// Gives each call that has no idempotency key of its own one, by its name.
    #[must_use]
    pub fn keyed(mut self, key: impl Fn(&str) -> Box<str>) -> Self {
        for node in &mut Arc::make_mut(&mut self.0).nodes {
            if node.idempotency_key.is_none() {
                node.idempotency_key = Some(key(&node.name));
            }
        }
        self
    }

    /// Whether a call has an idempotency key.
    #[must_use]
    pub fn has_keys(&self) -> bool {
        self.0.nodes.iter().any(|node| node.idempotency_key.is_some())
    }

    /// The names of the calls, in the plan's order.
    #[must_use]
    pub fn calls(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.nodes.iter().map(|node| &*node.name)
    }
}

impl Draft {
    /// Makes a plan of it.
    ///
    /// # Errors
    /// Names every mistake with the JSON pointer that it has in the written form. Nothing has
    /// started.
    pub fn check(&self, tools: &Tools) -> Result<Plan, PlanError> {
        check::plan(self, tools, Vec::new())
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("turn", &self.0.turn)
            .field("calls", &self.0.nodes.len())
            .finish_non_exhaustive()
    }
}
