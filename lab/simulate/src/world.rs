//! One run: calls of all clients against one backend, in virtual time.
//!
//! Virtual time is tokio's paused clock: it jumps to the next timer whenever every task is idle, so that our own
//! layers run as they are. Timers have a resolution of 1 ms. One thread and one seed make a run repeatable.
use crate::{
    backend::{Backend, Fate, Fault},
    plan::Plan,
    rules::Caller,
    tape::Tape,
};
use fastrand::Rng;
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};
use tokio::{
    runtime,
    task::{LocalSet, spawn_local},
    time::{Instant, sleep, sleep_until},
};

/// What the callers of one run share.
#[derive(Debug)]
pub(crate) struct World {
    plan: Plan,
    zero: Instant,
    backend: RefCell<Backend>,
    tape: RefCell<Tape>,
    chance: RefCell<Rng>,
    calls_in_flight: Cell<u32>,
}

/// Runs `C` through the plan.
pub(crate) fn run<C: Caller>(plan: &Plan, seed: u64) -> Tape {
    let time = runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    LocalSet::new().block_on(&time.expect("a clock needs nothing"), async {
        let world = Rc::new(World::new(plan.clone(), seed));
        world.clone().run::<C>().await;
        world.tape.take()
    })
}

impl World {
    fn new(plan: Plan, seed: u64) -> Self {
        Self {
            zero: Instant::now(),
            backend: RefCell::new(Backend::new(plan.clone())),
            plan,
            tape: RefCell::default(),
            chance: RefCell::new(Rng::with_seed(seed)),
            calls_in_flight: Cell::new(0),
        }
    }

    pub(crate) fn now(&self) -> Duration {
        self.zero.elapsed()
    }

    /// Uniform in 0..1.
    pub(crate) fn draw(&self) -> f64 {
        self.chance.borrow_mut().f64()
    }

    pub(crate) fn seed(&self) -> u64 {
        self.chance.borrow_mut().u64(..)
    }

    /// Many clients that each call now and then, independently, are one Poisson process with a client drawn for each call.
    async fn run<C: Caller>(self: Rc<Self>) {
        let processes: Vec<_> = (0..self.plan.processes).map(|_| Rc::new(C::new(&self))).collect();
        let mut next = Duration::ZERO;
        loop {
            let wait = -(1.0 - self.draw()).ln() / self.plan.calls_per_second;
            next += Duration::from_secs_f64(wait);
            if next >= self.plan.end + Plan::TAIL {
                break;
            }
            if next > self.now() {
                self.wait_until(next).await;
            }
            let client = self.chance.borrow_mut().u32(..self.plan.clients);
            let process = processes[(client % self.plan.processes) as usize].clone();
            spawn_local(self.clone().call(process));
        }
        while self.calls_in_flight.get() > 0 {
            sleep(Duration::from_secs(1)).await;
        }
    }

    async fn call<C: Caller>(self: Rc<Self>, process: Rc<C>) {
        let began = self.now();
        self.calls_in_flight.update(|calls| calls + 1);
        self.tape.borrow_mut().at(began).calls += 1;
        let is_good = process.call(&self).await;
        let mut tape = self.tape.borrow_mut();
        let second = tape.at(began);
        if is_good {
            second.good += 1;
        } else {
            second.bad += 1;
        }
        self.calls_in_flight.update(|calls| calls - 1);
    }

    pub(crate) async fn wait_until(&self, at: Duration) {
        sleep_until(self.zero + at).await;
    }

    /// One attempt at the backend, which starts now.
    pub(crate) async fn attempt(&self, now: Duration) -> Result<(), Fault> {
        self.tape.borrow_mut().at(now).attempts += 1;
        let draw = self.draw();
        let fate = self.backend.borrow_mut().arrive(now, draw);
        if let Fate::Served { at } = fate {
            self.tape.borrow_mut().at(at).served += 1;
        }
        let patience = now + self.plan.timeout;
        let (at, end) = match fate {
            Fate::Served { at } if at <= patience => (at, Ok(())),
            Fate::Failed { at, fault } if at <= patience => (at, Err(fault)),
            Fate::Served { .. } | Fate::Failed { .. } | Fate::Hangs => {
                (patience, Err(Fault::Timeout))
            }
        };
        self.wait_until(at).await;
        if end.is_err() {
            self.tape.borrow_mut().at(now).wasted += 1;
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{rules::ALL, tape::Second};

    #[test]
    fn every_call_ends_once_and_no_more_is_served_than_can_be() {
        let plan = Plan::tiny();
        for rules in ALL {
            let tape = (rules.run)(&plan, 1);
            let sum = |count: fn(&Second) -> u32| tape.seconds().iter().map(count).sum::<u32>();
            assert!(sum(|second| second.calls) > 3_000, "{}", rules.name);
            assert_eq!(sum(|second| second.calls), sum(|s| s.good + s.bad), "{}", rules.name);
            assert!(tape.seconds().iter().all(|s| s.good + s.bad == s.calls));
            assert!(tape.seconds().iter().all(|s| s.served <= plan.capacity), "{}", rules.name);
            assert!(tape.seconds().iter().all(|s| s.wasted <= s.attempts));
            let useful = sum(|second| second.attempts - second.wasted);
            assert_eq!(useful, sum(|second| second.good), "{}", rules.name);
            assert!(useful <= sum(|second| second.served), "{}", rules.name);
        }
    }

    #[test]
    fn a_seed_repeats_a_run_and_another_does_not() {
        let plan = Plan::tiny();
        for rules in ALL {
            let tape = (rules.run)(&plan, 7);
            assert_eq!(tape, (rules.run)(&plan, 7), "{}", rules.name);
            assert_ne!(tape, (rules.run)(&plan, 8), "{}", rules.name);
        }
    }

    #[test]
    fn nothing_succeeds_in_the_outage_and_all_before_it() {
        let plan = Plan::tiny();
        for rules in ALL {
            let tape = (rules.run)(&plan, 3);
            assert!(tape.seconds()[..8].iter().all(|second| second.bad == 0), "{}", rules.name);
            let dark = &tape.seconds()[11..19];
            assert!(dark.iter().all(|second| second.served == 0), "{}", rules.name);
            assert!(dark[..4].iter().all(|second| second.goodput() == 0.0), "{}", rules.name);
        }
    }
}
