//! The same runs as criterion sees them.
use crate::run::Make;
use ::criterion::Criterion;

/// Measures each side of a group on its own.
pub fn compare(criterion: &mut Criterion, group: &str, sides: &[(&str, Make)]) {
    let mut group = criterion.benchmark_group(group);
    for (name, run) in sides {
        let mut run = run().warm();
        group.bench_function(*name, |bencher| bencher.iter_custom(|times| run.timed(times)));
    }
}
