//! The report of a turn.
use crate::{
    decide::{Decision, Recovery},
    trace::{Outcome, Trace},
};
use std::{sync::Arc, time::Duration};
use tr_core::{Effect, Json, Ran, ToolOutcome, Verdict};

/// The report of a turn: the end of every call. Fields are added in minor versions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The turn in one sentence, for the user: `Completed flight search, but hotel search timed
    /// out`.
    pub summary: String,
    /// The calls, in the plan's order.
    pub calls: Vec<CallReport>,
    /// Why the turn ended before its calls, if it did.
    pub cut_short: Option<CutShort>,
    /// How long it took.
    pub took: Duration,
    /// The trace.
    pub trace: Trace,
}

/// Why a turn ended before its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CutShort {
    /// It timed out.
    TimedOut,
    /// It was cancelled.
    Cancelled,
}

/// The report of one call. Fields are added in minor versions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallReport {
    /// Its name in the plan.
    pub name: Arc<str>,
    /// Its tool, or the last alternative that ran.
    pub tool: Arc<str>,
    /// What its tools may do that were called: read-only if all of them only read.
    pub effect: Effect,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether a tool ran: [`Ran::No`] only if no attempt reached a tool.
    pub ran: Ran,
    /// The number of attempts of all its tools.
    pub attempts: u32,
    /// The tool's response, if there is one.
    pub answer: Option<ToolOutcome>,
    /// Why there is no result.
    pub failure: Option<Failure>,
    /// The recovery decision.
    pub decision: Option<Decision>,
    /// When its first tool was started, since the turn began.
    pub started: Option<Duration>,
    /// When it ended, since the turn began.
    pub ended: Duration,
    /// Whether the plan requires it.
    pub required: bool,
}

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The stable code.
    pub code: Box<str>,
    /// For people and models, without secrets.
    pub message: Box<str>,
    /// How it was classified.
    pub verdict: Verdict,
}

impl Report {
    /// The report of the call of this name.
    #[must_use]
    pub fn call(&self, name: &str) -> Option<&CallReport> {
        self.calls.iter().find(|call| *call.name == *name)
    }

    /// Whether every call has a result.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.calls.iter().all(|call| call.outcome == Outcome::Success)
    }

    /// Whether a repeat of the turn would do nothing twice: of its calls only reads may have run.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        self.calls.iter().all(|call| call.ran == Ran::No || call.effect == Effect::ReadOnly)
    }

    /// The calls that are escalated to the user.
    pub fn escalated(&self) -> impl Iterator<Item = &CallReport> {
        let is_escalated = |call: &&CallReport| {
            call.decision.is_some_and(|decision| decision.recovery == Recovery::Escalate)
        };
        self.calls.iter().filter(is_escalated)
    }
}

impl CallReport {
    /// The tool's result.
    #[must_use]
    pub fn content(&self) -> Option<&Json> {
        let answer = self.answer.as_ref().filter(|_| self.outcome == Outcome::Success);
        answer.and_then(ToolOutcome::content)
    }
}
