//! Idempotency beside tower-resilience's cache, moka and quick_cache.
use benches::{criterion::compare, ours, peers};
use criterion::{Criterion, criterion_group, criterion_main};

fn idempotency(criterion: &mut Criterion) {
    compare(
        criterion,
        "idempotency",
        &[
            ("replay", ours::replay),
            ("replay, with a janitor", ours::replay_kept),
            ("hit, tower-resilience", peers::tower_resilience_hit),
            ("hit, moka", peers::moka_hit),
            ("first", ours::first),
            ("miss, tower-resilience", peers::tower_resilience_miss),
            ("miss, quick_cache", peers::quick_cache_miss),
        ],
    );
}

criterion_group!(benches, idempotency);
criterion_main!(benches);
