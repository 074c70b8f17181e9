//! Decides which call is due, and what a call's end means for the others: pure, without time and
//! I/O.
use crate::{
    decide::{Cause, Decision, FailedCall, Recovery, decide},
    plan::{Node, Plan},
};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};
use tr_core::{Effect, Priority, Ran};

/// The state of each call of a plan.
#[derive(Debug)]
pub(crate) struct Planner {
    plan: Plan,
    calls: Vec<State>,
    due: BinaryHeap<(Priority, Reverse<usize>)>,
    running: usize,
    /// Calls that are not settled yet.
    open: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Waits for this many results.
    Waiting(usize),
    Due {
        candidate: usize,
    },
    Running {
        candidate: usize,
    },
    Settled(Settled),
}

/// What a call's dependents get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    Result,
    Default,
    Nothing,
}

/// A call to start now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) call: usize,
    /// The index of its tool.
    pub(crate) candidate: usize,
}

/// A call without a result, and the decision about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) call: usize,
    /// Without what the plan says of it.
    pub(crate) failure: FailedCall,
    /// The dependency without a result.
    pub(crate) of: Option<usize>,
    pub(crate) decision: Decision,
}

/// A failed call, and the dependency that caused it.
type FailingCall = (usize, FailedCall, Option<usize>);

impl Planner {
    pub(crate) fn new(plan: Plan, steps: &mut Vec<Step>) -> Self {
        let calls: Vec<_> =
            plan.nodes().iter().map(|node| State::Waiting(node.needs.len())).collect();
        let open = calls.len();
        let mut planner = Self { plan, calls, due: BinaryHeap::new(), running: 0, open };
        let mut falling = VecDeque::new();
        for call in 0..open {
            if planner.node(call).needs.is_empty() {
                planner.make_due(call, 0, &mut falling);
            }
        }
        planner.fall_all(falling, steps);
        planner
    }

    fn node(&self, call: usize) -> &Node {
        &self.plan.nodes()[call]
    }

    pub(crate) const fn is_over(&self) -> bool {
        self.open == 0
    }

    /// What the call's dependents get; `None` until it is settled.
    pub(crate) fn settled(&self, call: usize) -> Option<Settled> {
        match self.calls[call] {
            State::Settled(settled) => Some(settled),
            _ => None,
        }
    }

    /// The call to start next, if one is due and the concurrency allows it.
    pub(crate) fn start_next(&mut self) -> Option<Start> {
        if self.running >= self.plan.limits().concurrency {
            return None;
        }
        let (_, Reverse(call)) = self.due.pop()?;
        let State::Due { candidate } = self.calls[call] else {
            unreachable!("what is queued is due")
        };
        self.calls[call] = State::Running { candidate };
        self.running += 1;
        Some(Start { call, candidate })
    }

    pub(crate) fn succeeded(&mut self, call: usize, steps: &mut Vec<Step>) {
        self.running -= 1;
        let mut falling = VecDeque::new();
        self.settle(call, Settled::Result, &mut falling);
        self.fall_all(falling, steps);
    }

    pub(crate) fn fell(&mut self, call: usize, failure: FailedCall, steps: &mut Vec<Step>) {
        self.running -= 1;
        self.fall_all(VecDeque::from([(call, failure, None)]), steps);
    }

    /// Ends all calls that have not ended. `fall_of` returns how a running call ends.
    pub(crate) fn expire(
        &mut self,
        cause: Cause,
        fall_of: impl Fn(usize) -> (Ran, Effect),
        steps: &mut Vec<Step>,
    ) {
        for call in 0..self.calls.len() {
            let failure = match self.calls[call] {
                State::Settled(_) => continue,
                State::Running { .. } => {
                    let (ran, effect) = fall_of(call);
                    FailedCall::new(cause, ran, effect)
                }
                State::Due { .. } | State::Waiting(_) => before_start(cause),
            };
            // The turn is over: no alternatives and no defaults any more.
            let required = self.node(call).required;
            let decision = decide(&FailedCall { required, ..failure });
            steps.push(Step { call, failure, of: None, decision });
            self.calls[call] = State::Settled(Settled::Nothing);
        }
        (self.open, self.running) = (0, 0);
        self.due.clear();
    }

    fn make_due(&mut self, call: usize, candidate: usize, falling: &mut VecDeque<FailingCall>) {
        let node = self.node(call);
        if node.candidates.is_empty() {
            falling.push_back((call, before_start(Cause::NoTool), None));
            return;
        }
        self.due.push((node.priority, Reverse(call)));
        self.calls[call] = State::Due { candidate };
    }

    fn fall_all(&mut self, mut falling: VecDeque<FailingCall>, steps: &mut Vec<Step>) {
        while let Some((call, failure, of)) = falling.pop_front() {
            let next = match self.calls[call] {
                State::Running { candidate } => candidate + 1,
                State::Waiting(_) => 0,
                // Two of its dependencies failed; this is the second.
                State::Due { .. } | State::Settled(_) => continue,
            };
            let node = self.node(call);
            let has_alternative = (1..node.candidates.len()).contains(&next);
            let (required, has_default) = (node.required, self.has_default(call));
            let decision =
                decide(&FailedCall { required, has_alternative, has_default, ..failure });
            steps.push(Step { call, failure, of, decision });
            match decision.recovery {
                Recovery::UseAlternative => self.make_due(call, next, &mut falling),
                // Its dependents continue with the default, also if it is escalated.
                _ if has_default => self.settle(call, Settled::Default, &mut falling),
                _ => self.settle(call, Settled::Nothing, &mut falling),
            }
        }
    }

    /// Whether all dependents of the call have a default value.
    fn has_default(&self, call: usize) -> bool {
        let node = self.node(call);
        let is_met = |by: &usize| self.default_for(*by, call);
        node.default_value.is_some()
            || (!node.needed_by.is_empty() && node.needed_by.iter().all(is_met))
    }

    /// Whether `by` has its own default for the result of `call`.
    fn default_for(&self, by: usize, call: usize) -> bool {
        let need = self.node(by).needs.iter().find(|need| need.of == call);
        need.is_some_and(|need| need.default.is_some())
    }

    fn settle(&mut self, call: usize, settled: Settled, falling: &mut VecDeque<FailingCall>) {
        self.calls[call] = State::Settled(settled);
        self.open -= 1;
        let plan = self.plan.clone();
        for by in plan.nodes()[call].needed_by.iter().copied() {
            let State::Waiting(unmet) = self.calls[by] else { continue };
            if settled == Settled::Nothing && !self.default_for(by, call) {
                falling.push_back((by, before_start(Cause::Dependency), Some(call)));
            } else if unmet == 1 {
                self.make_due(by, 0, falling);
            } else {
                self.calls[by] = State::Waiting(unmet - 1);
            }
        }
    }
}

/// A call that did not start.
const fn before_start(cause: Cause) -> FailedCall {
    FailedCall::new(cause, Ran::No, Effect::Mutating)
}

#[cfg(test)]
mod tests;
