//! Runs as criterion sees them: a group for each file, a name for each work, a value for each kind of request.
use crate::run::Make;
use ::criterion::{BenchmarkId, Criterion};

/// One work at each kind of request: the kind's name, and the run.
pub type Work<'a> = (&'a str, &'a [(&'a str, Make)]);

/// Measures each run of a group on its own. Times are the [thread's](crate::run::worked).
pub fn group(criterion: &mut Criterion, name: &str, works: &[Work<'_>]) {
    let mut group = criterion.benchmark_group(name);
    for (work, kinds) in works {
        for (kind, make) in *kinds {
            // Made when it is wanted: criterion leaves out what the user's filter does.
            let mut made = None;
            group.bench_function(BenchmarkId::new(*work, kind), |bencher| {
                let run = made.get_or_insert_with(|| make().warm());
                bencher.iter_custom(|times| run.timed(times));
            });
        }
    }
}

/// The same work at several kinds of requests.
#[macro_export]
macro_rules! kinds {
    ($work:path: $($kind:ty),+) => {{
        use $work as work;
        &[$((<$kind as $crate::kind::Kind>::NAME, work::<$kind> as $crate::run::Make)),+]
    }};
}
