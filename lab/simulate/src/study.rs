//! All runs: every rule under every seed, and those with a breaker through outages of other lengths.
use crate::{
    figures::{Figures, Spread},
    plan::Plan,
    rules::{ALL, Named},
    tape::Tape,
};
use std::{
    num::NonZero,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

/// How much is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    pub(crate) seeds: u64,
    /// Lengths of other outages in seconds: from, to, step.
    pub(crate) lengths: (u64, u64, usize),
}

impl Effort {
    /// 20 seeds; the lengths run once through our cooldown, since it matters when in it the outage ends.
    pub(crate) const FULL: Self = Self { seeds: 20, lengths: (61, 79, 3) };
    pub(crate) const QUICK: Self = Self { seeds: 2, lengths: (62, 78, 8) };

    pub(crate) fn lengths(self) -> impl Iterator<Item = Duration> {
        let (from, to, step) = self.lengths;
        (from..=to).step_by(step).map(Duration::from_secs)
    }
}

/// What one rule's runs came to.
#[derive(Debug)]
pub(crate) struct Runs {
    pub(crate) rules: Named,
    /// By seed.
    pub(crate) tapes: Vec<Tape>,
    pub(crate) figures: Vec<Figures>,
    /// Through outages of other lengths; none without a breaker.
    pub(crate) elsewhere: Vec<Figures>,
}

impl Runs {
    pub(crate) fn spread(&self, figure: fn(&Figures) -> f64) -> Spread {
        Spread::of(self.figures.iter().map(figure))
    }

    /// The highest of all runs, whatever the outage's length.
    pub(crate) fn worst(&self, figure: fn(&Figures) -> f64) -> f64 {
        Spread::of(self.figures.iter().chain(&self.elsewhere).map(figure)).worst
    }
}

struct Job {
    rules: usize,
    plan: Plan,
    seed: u64,
    is_elsewhere: bool,
}

/// Runs everything, on all cores.
pub(crate) fn run(plan: &Plan, effort: Effort) -> Vec<Runs> {
    let jobs = jobs(plan, effort);
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let number = next.fetch_add(1, Relaxed);
            let Some(job) = jobs.get(number) else { break };
            let tape = (ALL[job.rules].run)(&job.plan, job.seed);
            done.lock().expect("no run panicked").push((number, tape));
        }
    };
    thread::scope(|scope| {
        (0..thread::available_parallelism().map_or(1, NonZero::get)).for_each(|_| {
            scope.spawn(work);
        });
    });
    let mut done = done.into_inner().expect("no run panicked");
    done.sort_by_key(|(number, _)| *number);
    let new = |rules: &Named| Runs {
        rules: *rules,
        tapes: Vec::new(),
        figures: Vec::new(),
        elsewhere: Vec::new(),
    };
    let mut results: Vec<_> = ALL.iter().map(new).collect();
    for (job, (_, tape)) in jobs.iter().zip(done) {
        let (result, figures) = (&mut results[job.rules], Figures::of(&tape, &job.plan));
        if job.is_elsewhere {
            result.elsewhere.push(figures);
        } else {
            result.figures.push(figures);
            result.tapes.push(tape);
        }
    }
    results
}

fn jobs(plan: &Plan, effort: Effort) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (rules, named) in ALL.iter().enumerate() {
        let job = |plan, seed, is_elsewhere| Job { rules, plan, seed, is_elsewhere };
        jobs.extend((0..effort.seeds).map(|seed| job(plan.clone(), seed, false)));
        let lengths = effort.lengths().zip(effort.seeds..).filter(|_| named.has_breaker);
        jobs.extend(lengths.map(|(length, seed)| job(plan.clone().lasting(length), seed, true)));
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_gets_its_runs_in_the_order_of_seeds() {
        let plan = Plan::tiny();
        let effort = Effort { seeds: 2, lengths: (11, 13, 2) };
        let results = run(&plan, effort);
        assert_eq!(results.len(), ALL.len());
        for result in results {
            let elsewhere = if result.rules.has_breaker { 2 } else { 0 };
            assert_eq!((result.tapes.len(), result.elsewhere.len()), (2, elsewhere));
            assert_eq!(result.tapes[1], (result.rules.run)(&plan, 1), "{}", result.rules.name);
        }
    }
}
