//! Which call is due, and what a call's end means for the others: pure, without time and I/O.
use crate::{
    decide::{Cause, Decision, Fallen, Recovery, decide},
    plan::{Node, Plan},
};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};
use tr_core::{Effect, Priority, Ran};

/// Where each call of a plan stands.
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
    /// For so many results.
    Waiting(usize),
    Due {
        way: usize,
    },
    Running {
        way: usize,
    },
    Settled(Settled),
}

/// What a call's dependents get of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    Result,
    Default,
    Nothing,
}

/// A call that is to start now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) call: usize,
    /// Which of its tools, from 0.
    pub(crate) way: usize,
}

/// How a call that had started came to no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fall {
    pub(crate) cause: Cause,
    pub(crate) ran: Ran,
    pub(crate) effect: Effect,
}

impl Fall {
    const fn before_start(cause: Cause) -> Self {
        Self { cause, ran: Ran::No, effect: Effect::Mutating }
    }
}

/// A call without a result, and what was decided about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) call: usize,
    /// Which of its tools had fallen; `None` if none was tried.
    pub(crate) way: Option<usize>,
    pub(crate) fall: Fall,
    /// The call that it needed and did not get.
    pub(crate) of: Option<usize>,
    pub(crate) decision: Decision,
}

/// A call that has fallen, and the call that drew it down.
type Falling = (usize, Fall, Option<usize>);

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

    /// What the call's dependents get; `None` as long as nobody knows.
    pub(crate) fn settled(&self, call: usize) -> Option<Settled> {
        match self.calls[call] {
            State::Settled(settled) => Some(settled),
            _ => None,
        }
    }

    /// The call that starts next, if one is due and may run now.
    pub(crate) fn start_next(&mut self) -> Option<Start> {
        if self.running >= self.plan.limits().concurrency {
            return None;
        }
        let (_, Reverse(call)) = self.due.pop()?;
        let State::Due { way } = self.calls[call] else { unreachable!("what is queued is due") };
        self.calls[call] = State::Running { way };
        self.running += 1;
        Some(Start { call, way })
    }

    pub(crate) fn succeeded(&mut self, call: usize, steps: &mut Vec<Step>) {
        self.running -= 1;
        let mut falling = VecDeque::new();
        self.settle(call, Settled::Result, &mut falling);
        self.fall_all(falling, steps);
    }

    pub(crate) fn fell(&mut self, call: usize, fall: Fall, steps: &mut Vec<Step>) {
        self.running -= 1;
        self.fall_all(VecDeque::from([(call, fall, None)]), steps);
    }

    /// Ends all that has not ended. `fall_of` says how a running call ends.
    pub(crate) fn expire(
        &mut self,
        cause: Cause,
        fall_of: impl Fn(usize) -> (Ran, Effect),
        steps: &mut Vec<Step>,
    ) {
        for call in 0..self.calls.len() {
            let (way, fall) = match self.calls[call] {
                State::Settled(_) => continue,
                State::Running { way } => {
                    let (ran, effect) = fall_of(call);
                    (Some(way), Fall { cause, ran, effect })
                }
                State::Due { way } => (way.checked_sub(1), Fall::before_start(cause)),
                State::Waiting(_) => (None, Fall::before_start(cause)),
            };
            // The turn is over: nothing stands in for anything any more.
            let node = self.node(call);
            let required = node.required;
            let decision = decide(&fallen(fall, required, false, false));
            steps.push(Step { call, way, fall, of: None, decision });
            self.calls[call] = State::Settled(Settled::Nothing);
        }
        (self.open, self.running) = (0, 0);
        self.due.clear();
    }

    fn make_due(&mut self, call: usize, way: usize, falling: &mut VecDeque<Falling>) {
        let node = self.node(call);
        if node.ways.is_empty() {
            falling.push_back((call, Fall::before_start(Cause::NoTool), None));
            return;
        }
        self.due.push((node.priority, Reverse(call)));
        self.calls[call] = State::Due { way };
    }

    fn fall_all(&mut self, mut falling: VecDeque<Falling>, steps: &mut Vec<Step>) {
        while let Some((call, fall, of)) = falling.pop_front() {
            let (way, next) = match self.calls[call] {
                State::Running { way } => (Some(way), way + 1),
                State::Waiting(_) => (None, 0),
                // It needed two calls, and both fell.
                State::Due { .. } | State::Settled(_) => continue,
            };
            let node = self.node(call);
            let has_alternative = way.is_some() && next < node.ways.len();
            let (required, has_default) = (node.required, self.has_default(call));
            let decision = decide(&fallen(fall, required, has_alternative, has_default));
            steps.push(Step { call, way, fall, of, decision });
            match decision.recovery {
                Recovery::UseAlternative => self.make_due(call, next, &mut falling),
                // Whoever is told, those that need it go on.
                _ if has_default => self.settle(call, Settled::Default, &mut falling),
                _ => self.settle(call, Settled::Nothing, &mut falling),
            }
        }
    }

    /// Whether all that need the call's result can have a value instead.
    fn has_default(&self, call: usize) -> bool {
        let node = self.node(call);
        let is_met = |by: &usize| self.default_for(*by, call);
        node.default_value.is_some()
            || (!node.needed_by.is_empty() && node.needed_by.iter().all(is_met))
    }

    /// Whether `by` has a value of its own for the result of `call`.
    fn default_for(&self, by: usize, call: usize) -> bool {
        let need = self.node(by).needs.iter().find(|need| need.of == call);
        need.is_some_and(|need| need.default.is_some())
    }

    fn settle(&mut self, call: usize, settled: Settled, falling: &mut VecDeque<Falling>) {
        self.calls[call] = State::Settled(settled);
        self.open -= 1;
        let plan = self.plan.clone();
        for by in plan.nodes()[call].needed_by.iter().copied() {
            let State::Waiting(unmet) = self.calls[by] else { continue };
            if settled == Settled::Nothing && !self.default_for(by, call) {
                falling.push_back((by, Fall::before_start(Cause::Dependency), Some(call)));
            } else if unmet == 1 {
                self.make_due(by, 0, falling);
            } else {
                self.calls[by] = State::Waiting(unmet - 1);
            }
        }
    }
}

const fn fallen(fall: Fall, required: bool, has_alternative: bool, has_default: bool) -> Fallen {
    let Fall { cause, ran, effect } = fall;
    Fallen { cause, ran, effect, required, has_alternative, has_default }
}

#[cfg(test)]
mod tests;
