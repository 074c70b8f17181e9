//! Several layers together beside tower-resilience's and tower's.
use benches::{criterion::compare, ours, peers};
use criterion::{Criterion, criterion_group, criterion_main};

fn stack(criterion: &mut Criterion) {
    compare(
        criterion,
        "stack",
        &[
            ("three, first", ours::trio_first),
            ("three, miss, tower-resilience", peers::trio_miss),
            ("three, replay", ours::trio_replay),
            ("three, hit, tower-resilience", peers::trio_hit),
            ("all, first", ours::stack_first),
            ("all, replay", ours::stack_replay),
            ("timeout, limit and retry, tower", peers::tower_stack),
        ],
    );
}

criterion_group!(benches, stack);
criterion_main!(benches);
