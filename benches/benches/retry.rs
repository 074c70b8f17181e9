//! Retry beside tower's and tower-resilience's.
use benches::{criterion::compare, ours, peers};
use criterion::{Criterion, criterion_group, criterion_main};

fn retry(criterion: &mut Criterion) {
    compare(
        criterion,
        "retry",
        &[
            ("success", ours::retry),
            ("success, tower", peers::tower_retry),
            ("success, tower-resilience", peers::tower_resilience_retry),
            ("budget", ours::retry_budget),
            ("budget, tower", peers::tower_retry_budget),
        ],
    );
}

criterion_group!(benches, retry);
criterion_main!(benches);
