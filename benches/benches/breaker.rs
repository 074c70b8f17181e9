//! The breaker beside tower-resilience's, recloser and failsafe.
use benches::{criterion::compare, ours, peers};
use criterion::{Criterion, criterion_group, criterion_main};

fn breaker(criterion: &mut Criterion) {
    compare(
        criterion,
        "breaker",
        &[
            ("closed", ours::breaker_closed),
            ("closed, tower-resilience", peers::tower_resilience_closed),
            ("closed, recloser", peers::recloser_closed),
            ("closed, consecutive", ours::breaker_consecutive),
            ("closed, failsafe", peers::failsafe_consecutive),
            ("open", ours::breaker_open),
            ("open, tower-resilience", peers::tower_resilience_open),
        ],
    );
}

criterion_group!(benches, breaker);
criterion_main!(benches);
