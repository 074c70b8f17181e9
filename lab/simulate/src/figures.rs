//! What a run comes to: a few figures of its tape, and their medians over seeds.
use crate::{
    plan::{Plan, index},
    tape::{Second, Tape},
};

/// The share of calls that must end well for a second to be good.
const GOOD: f64 = 0.95;

/// Good seconds in a row that make a recovery.
const IN_A_ROW: usize = 5;

/// The figures of one run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figures {
    /// Attempts in the outage's busiest second, by the calls of a usual second.
    pub(crate) outage_peak: f64,
    /// Attempts in the second that begins when the outage ends, by the capacity.
    pub(crate) recovery_load: f64,
    /// The same of the busiest second from then on.
    pub(crate) later_peak: f64,
    /// Seconds from the end of the outage to the first of five good seconds; infinite if there are none.
    pub(crate) recovery: f64,
    /// How often goodput was bad again after that.
    pub(crate) relapses: f64,
    /// Attempts that brought their callers nothing, in thousands.
    pub(crate) wasted: f64,
    /// Calls that failed, in thousands.
    pub(crate) failed: f64,
}

impl Figures {
    pub(crate) fn of(tape: &Tape, plan: &Plan) -> Self {
        let (start, recovery) = (index(plan.outage.start), plan.recovery());
        let watched = &tape.seconds()[..index(plan.end)];
        let after = &watched[recovery..];
        let peak = |seconds: &[Second]| seconds.iter().map(|second| second.attempts).max();
        let capacity = f64::from(plan.capacity);
        let back = after.windows(IN_A_ROW).position(|row| row.iter().all(is_good));
        let later = &after[back.unwrap_or(after.len())..];
        let relapses = later.windows(2).filter(|two| is_good(&two[0]) && !is_good(&two[1])).count();
        let sum =
            |count: fn(&Second) -> u32| watched.iter().map(count).map(f64::from).sum::<f64>() / 1e3;
        Self {
            outage_peak: f64::from(peak(&watched[start..recovery]).unwrap_or(0))
                / plan.calls_per_second,
            recovery_load: f64::from(after[0].attempts) / capacity,
            later_peak: f64::from(peak(after).unwrap_or(0)) / capacity,
            recovery: back.map_or(f64::INFINITY, |seconds| seconds as f64),
            relapses: relapses as f64,
            wasted: sum(|second| second.wasted),
            failed: sum(|second| second.bad),
        }
    }
}

fn is_good(second: &Second) -> bool {
    second.goodput() >= GOOD
}

/// One figure over several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    /// The highest: of all these figures, less is better.
    pub(crate) worst: f64,
}

impl Spread {
    /// # Panics
    /// Without any run.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let worst = *values.last().expect("there is a run");
        Self { median: median(&values), worst }
    }
}

/// The middle of sorted values.
pub(crate) fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// 100 calls in each second of the tiny plan; in these seconds all of them fail.
    fn figures(dark: &[u64]) -> Figures {
        let mut tape = Tape::default();
        for second in 0..50 {
            let is_dark = dark.contains(&second);
            let (good, bad) = if is_dark { (0, 100) } else { (100, 0) };
            *tape.at(Duration::from_secs(second)) = Second {
                calls: 100,
                good,
                bad,
                attempts: 100 + bad,
                wasted: 2 * bad,
                served: good,
            };
        }
        Figures::of(&tape, &Plan::tiny())
    }

    #[test]
    fn a_recovery_is_five_good_seconds_and_a_bad_one_after_them_a_relapse() {
        let outage: Vec<u64> = (10..20).collect();
        let of = |more: &[u64]| figures(&[&outage, more].concat());
        assert_eq!((of(&[]).recovery, of(&[]).relapses), (0.0, 0.0));
        assert_eq!((of(&[22]).recovery, of(&[22]).relapses), (3.0, 0.0));
        assert_eq!((of(&[25, 26, 30]).recovery, of(&[25, 26, 30]).relapses), (0.0, 2.0));
        let never: Vec<u64> = (20..50).step_by(4).collect();
        assert_eq!((of(&never).recovery, of(&never).relapses), (f64::INFINITY, 0.0));
    }

    #[test]
    fn loads_are_by_capacity_and_by_what_is_usual() {
        let figures = figures(&[12, 20]);
        assert_eq!(figures.outage_peak, 200.0 / 75.0);
        assert_eq!((figures.recovery_load, figures.later_peak), (2.0, 2.0));
        assert_eq!((figures.wasted, figures.failed), (0.4, 0.2));
    }

    #[test]
    fn medians_of_odd_and_even_numbers() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Spread { median: 2.0, worst: 3.0 });
        assert_eq!(Spread::of([4.0, 1.0, f64::INFINITY, 2.0]).median, 3.0);
    }
}
