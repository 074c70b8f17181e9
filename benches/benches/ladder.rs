//! The stack, one layer more at each rung.
use benches::ladder::{Calls, RUNGS, Rung};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

fn all(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ladder");
    for calls in Calls::ALL {
        for (nth, Rung { layer, run }) in RUNGS.iter().enumerate() {
            let mut made = None;
            let id = BenchmarkId::new(calls.name(), format!("{nth:02} {layer}"));
            group.bench_function(id, |bencher| {
                let run = made.get_or_insert_with(|| run(calls).warm());
                bencher.iter_custom(|times| run.timed(times));
            });
        }
    }
}

criterion_group!(benches, all);
criterion_main!(benches);
