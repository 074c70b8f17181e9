//! Random graphs, ended in random order.
use super::*;
use crate::{Call, Draft, Limits, Tools};
use proptest::prelude::*;
use std::collections::HashSet;
use tr_core::{Json, Verdict};

/// A call and which earlier ones it needs.
#[derive(Clone, Debug)]
struct Drawn {
    needs: Vec<usize>,
    /// For which of its needs it has a value of its own.
    own_defaults: u8,
    default_value: bool,
    required: bool,
    alternatives: usize,
    priority: u8,
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let flags = (any::<bool>(), any::<bool>(), 0..3_usize, 0..3_u8, any::<u8>());
    (prop::collection::vec(0..1000_usize, 0..4), flags).prop_map(
        |(needs, (default_value, required, alternatives, priority, own_defaults))| Drawn {
            needs,
            own_defaults,
            default_value,
            required,
            alternatives,
            priority,
        },
    )
}

fn plan(calls: &[Drawn], concurrency: usize) -> Plan {
    let value = || Json::from_text("0").unwrap();
    let mut draft = Draft::new("t").limits(Limits { concurrency, ..Limits::default() });
    for (own, drawn) in calls.iter().enumerate() {
        let mut call = Call::new(format!("c{own}"));
        let needs: HashSet<_> = drawn.needs.iter().filter(|_| own > 0).map(|n| n % own).collect();
        for (n, need) in needs.into_iter().enumerate() {
            call = call.after(format!("c{need}"));
            if drawn.own_defaults & (1 << n) != 0 && drawn.own_defaults & 0x80 != 0 {
                call = call.or_default(format!("c{need}"), value());
            }
        }
        if drawn.default_value {
            call = call.default_value(value());
        }
        if drawn.required {
            call = call.required();
        }
        for n in 0..drawn.alternatives {
            call = call.alternative(format!("c{own}-{n}"));
        }
        let priority = [Priority::Low, Priority::Normal, Priority::High][drawn.priority as usize];
        draft = draft.call(call.priority(priority));
    }
    draft.check(&Tools::any()).unwrap()
}

/// What must hold at every step, noted beside the planner.
struct Model {
    plan: Plan,
    started: HashSet<(usize, usize)>,
    running: Vec<Start>,
}

impl Model {
    fn start_all(&mut self, planner: &mut Planner) -> Result<(), TestCaseError> {
        while let Some(start) = planner.start_next() {
            let node = &self.plan.nodes()[start.call];
            prop_assert!(self.started.insert((start.call, start.candidate)), "nothing runs twice");
            prop_assert!(
                start.candidate == 0 || self.started.contains(&(start.call, start.candidate - 1))
            );
            for need in &node.needs {
                let met = match planner.settled(need.of) {
                    None => false,
                    Some(Settled::Nothing) => need.default.is_some(),
                    Some(Settled::Default) => self.plan.default_for(need).is_some(),
                    Some(Settled::Result) => true,
                };
                prop_assert!(met, "{} needs {}", start.call, need.of);
            }
            self.running.push(start);
            prop_assert!(self.running.len() <= self.plan.limits().concurrency);
        }
        prop_assert!(
            planner.is_over() || !self.running.is_empty(),
            "something runs as long as anything is open"
        );
        Ok(())
    }
}

const FALLS: [(Cause, Ran); 5] = [
    (Cause::Failed(Verdict::Permanent), Ran::Yes),
    (Cause::Failed(Verdict::TRANSIENT), Ran::No),
    (Cause::Failed(Verdict::TRANSIENT), Ran::Unknown),
    (Cause::Cancelled, Ran::No),
    (Cause::Cancelled, Ran::Unknown),
];

proptest! {
    #[test]
    fn every_plan_comes_to_its_end(
        calls in prop::collection::vec(drawn(), 1..60),
        concurrency in 1..6_usize,
        ends in prop::collection::vec((any::<u16>(), 0..8_usize), 1..300),
        expires in prop::option::of(0..100_usize),
    ) {
        let plan = plan(&calls, concurrency);
        let mut steps = Vec::new();
        let mut planner = Planner::new(plan.clone(), &mut steps);
        let mut model = Model { plan: plan.clone(), started: HashSet::new(), running: Vec::new() };
        let mut ends = ends.iter().cycle();
        for turn in 0.. {
            model.start_all(&mut planner)?;
            if planner.is_over() {
                break;
            }
            if expires == Some(turn) {
                planner.expire(Cause::TurnTimeout, |_| (Ran::Unknown, Effect::ReadOnly), &mut steps);
                model.running.clear();
                prop_assert!(planner.is_over() && planner.start_next().is_none());
                break;
            }
            let (which, how) = ends.next().unwrap();
            let at = *which as usize % model.running.len();
            let Start { call, .. } = model.running.swap_remove(at);
            match FALLS.get(*how) {
                Some(&(cause, ran)) => {
                    let failure = FailedCall::new(cause, ran, Effect::Mutating);
                    planner.fell(call, failure, &mut steps);
                }
                None => planner.succeeded(call, &mut steps),
            }
        }
        prop_assert!(model.running.is_empty());
        // Each call is settled, and every one without a result was decided about, for good once.
        let mut final_steps = HashSet::new();
        for step in &steps {
            if step.decision.recovery != Recovery::UseAlternative {
                prop_assert!(final_steps.insert(step.call), "decided once");
            }
            let in_doubt = step.failure.ran == Ran::Unknown && step.failure.effect != Effect::ReadOnly;
            prop_assert!(!in_doubt || step.decision.recovery != Recovery::UseAlternative);
        }
        for call in 0..calls.len() {
            let settled = planner.settled(call);
            prop_assert!(settled.is_some());
            prop_assert_eq!(settled == Some(Settled::Result), !final_steps.contains(&call));
        }
    }
}

#[test]
fn what_is_due_starts_by_priority_then_in_order() {
    let draft = [("a", Priority::Low), ("b", Priority::Normal), ("c", Priority::High)]
        .into_iter()
        .chain([("d", Priority::Normal)])
        .fold(Draft::new("t"), |draft, (name, priority)| {
            draft.call(Call::new(name).priority(priority))
        });
    let mut planner = Planner::new(draft.check(&Tools::any()).unwrap(), &mut Vec::new());
    let order: Vec<_> = std::iter::from_fn(|| planner.start_next()).map(|s| s.call).collect();
    assert_eq!(order, [2, 1, 3, 0]);
}
