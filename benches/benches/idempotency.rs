//! Idempotency beside tower-resilience's cache, moka and quick_cache.
#[cfg(feature = "peers")]
use benches::peers::records as peers;
use benches::{
    call::Leaf as Call,
    criterion::group,
    kinds,
    ours::{bare, idempotency},
    small::Leaf as Small,
};
use criterion::{Criterion, criterion_group, criterion_main};

fn all(criterion: &mut Criterion) {
    group(
        criterion,
        "idempotency",
        &[
            ("no layer", kinds!(bare: Small, Call)),
            ("first call", kinds!(idempotency::first: Small, Call)),
            #[cfg(feature = "peers")]
            ("miss, tower-resilience", kinds!(peers::tower_resilience_miss: Small, Call)),
            #[cfg(feature = "peers")]
            ("miss, quick_cache", kinds!(peers::quick_cache_miss: Small, Call)),
            ("replay", kinds!(idempotency::replay: Small, Call)),
            ("replay, with a janitor", kinds!(idempotency::replay_kept: Small, Call)),
            #[cfg(feature = "peers")]
            ("hit, tower-resilience", kinds!(peers::tower_resilience_hit: Small, Call)),
            #[cfg(feature = "peers")]
            ("hit, moka", kinds!(peers::moka_hit: Small, Call)),
        ],
    );
}

criterion_group!(benches, all);
criterion_main!(benches);
