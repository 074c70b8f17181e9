//! The attempt timeout beside tower's.
use benches::{criterion::compare, ours, peers};
use criterion::{Criterion, criterion_group, criterion_main};

fn timeout(criterion: &mut Criterion) {
    compare(
        criterion,
        "timeout",
        &[("success", ours::timeout), ("success, tower", peers::tower_timeout)],
    );
}

criterion_group!(benches, timeout);
criterion_main!(benches);
