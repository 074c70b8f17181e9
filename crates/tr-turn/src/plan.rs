//! Plans: graphs of calls, validated before any call starts.
mod check;
mod draft;
mod error;
mod limits;
mod names;
mod read;
mod tools;

pub(crate) use self::draft::Alternative;
pub use self::{
    draft::{Call, Draft},
    error::PlanError,
    limits::{Limits, MAX_CALLS, MAX_CONCURRENCY, MAX_TIMEOUT},
    read::json_schema,
    tools::Tools,
};
use crate::template::Template;
use std::{sync::Arc, time::Duration};
use tr_core::{Effect, Json, Priority, ToolId, ToolManifest, debug_parts};

/// A validated graph of calls: every name is known, there are no dependency cycles, and every
/// required call has a tool. A clone is a reference count.
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
    /// The available tools of the call: its own tool and the alternatives, best first.
    pub(crate) candidates: Vec<Candidate>,
    /// The tool as the plan names it, whether or not it is available.
    pub(crate) tool: Arc<str>,
    /// The calls whose results it needs.
    pub(crate) needs: Vec<Need>,
    /// The calls that need its result.
    pub(crate) needed_by: Vec<usize>,
    pub(crate) required: bool,
    /// The value for its dependents if it fails.
    pub(crate) default_value: Option<Json>,
    pub(crate) priority: Priority,
    pub(crate) timeout: Option<Duration>,
    pub(crate) attempt_timeout: Option<Duration>,
    pub(crate) idempotency_key: Option<Box<str>>,
    pub(crate) cancellation_id: Option<Box<str>>,
}

/// A dependency on another call.
#[derive(Clone, Debug)]
pub(crate) struct Need {
    pub(crate) of: usize,
    /// The value to use instead if it fails.
    pub(crate) default: Option<Json>,
}

/// A candidate tool of a call.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) tool: ToolId,
    pub(crate) label: Arc<str>,
    pub(crate) manifest: Option<Arc<ToolManifest>>,
    /// Its effect, and whether that is declared.
    pub(crate) effect: (Effect, bool),
    pub(crate) params: Template,
}

impl Plan {
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.0.nodes
    }

    /// The default value for a dependency, if there is one.
    pub(crate) fn default_for<'p>(&'p self, need: &'p Need) -> Option<&'p Json> {
        need.default.as_ref().or(self.0.nodes[need.of].default_value.as_ref())
    }

    /// The time and concurrency limits.
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

    /// Adds an idempotency key, made from the call's name, to each call without one.
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

debug_parts! { Plan, |it| turn = it.0.turn, calls = it.0.nodes.len() }
