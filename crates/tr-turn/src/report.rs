//! What a turn came to.
use crate::{
    decide::Decision,
    trace::{Outcome, Trace},
};
use std::{sync::Arc, time::Duration};
use tr_core::{Json, Ran, ToolOutcome, Verdict};

/// What a turn came to: every call with its end, whatever happened. Fields are added in minor
/// versions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The turn in one sentence, for the user: `Completed flight search, but hotel search timed
    /// out`.
    pub summary: String,
    /// The calls, in the plan's order.
    pub calls: Vec<CallReport>,
    /// Why the turn ended before its calls had.
    pub cut_short: Option<CutShort>,
    /// How long it took.
    pub took: Duration,
    /// What happened.
    pub trace: Trace,
}

/// What ended a turn before its calls had ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CutShort {
    /// Its time was over.
    TimedOut,
    /// Somebody withdrew it.
    Cancelled,
}

/// What one call came to. Fields are added in minor versions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallReport {
    /// Its name in the plan.
    pub name: Arc<str>,
    /// Its tool, or the tool that stood in for it last.
    pub tool: Arc<str>,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether a tool ran for it: [`Ran::No`] only if none did, in no attempt.
    pub ran: Ran,
    /// How many attempts were made, of all its tools together.
    pub attempts: u32,
    /// What the tool said, if it ended with an answer.
    pub answer: Option<ToolOutcome>,
    /// Why there is no result.
    pub failure: Option<Failure>,
    /// What was decided about that.
    pub decision: Option<Decision>,
    /// When its first tool was started, since the turn began.
    pub started: Option<Duration>,
    /// When it ended, since the turn began.
    pub ended: Duration,
    /// Whether the plan calls it required.
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
    /// What the call of this name came to.
    #[must_use]
    pub fn call(&self, name: &str) -> Option<&CallReport> {
        self.calls.iter().find(|call| *call.name == *name)
    }

    /// Whether every call has a result.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.calls.iter().all(|call| call.outcome == Outcome::Success)
    }

    /// The calls of which the user is to be told.
    pub fn escalated(&self) -> impl Iterator<Item = &CallReport> {
        self.calls.iter().filter(|call| call.is_escalated())
    }
}

impl CallReport {
    /// What the tool gave back.
    #[must_use]
    pub fn content(&self) -> Option<&Json> {
        let answer = self.answer.as_ref().filter(|_| self.outcome == Outcome::Success);
        answer.and_then(ToolOutcome::content)
    }

    /// Whether the user is to be told of it.
    #[must_use]
    pub fn is_escalated(&self) -> bool {
        let decision = self.decision.as_ref();
        decision.is_some_and(|decision| decision.recovery == crate::Recovery::Escalate)
    }
}
