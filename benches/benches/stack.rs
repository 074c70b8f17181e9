//! Several layers together beside tower-resilience's and tower's.
#[cfg(feature = "peers")]
use benches::peers::stack as peers;
use benches::{call::Leaf as Call, criterion::group, kind::Kind, ours::stack, small};
#[cfg(feature = "peers")]
use benches::{kinds, small::Leaf as Small};
use criterion::{Criterion, criterion_group, criterion_main};

fn all(criterion: &mut Criterion) {
    const SMALL: &str = small::Leaf::NAME;
    group(
        criterion,
        "stack",
        &[
            ("idempotency, retry, breaker, first call", &[(SMALL, stack::trio_first)]),
            ("idempotency, retry, breaker, replay", &[(SMALL, stack::trio_replay)]),
            #[cfg(feature = "peers")]
            (
                "cache, retry, breaker of tower-resilience, miss",
                kinds!(peers::trio_miss: Small, Call),
            ),
            #[cfg(feature = "peers")]
            (
                "cache, retry, breaker of tower-resilience, hit",
                kinds!(peers::trio_hit: Small, Call),
            ),
            #[cfg(feature = "peers")]
            ("timeout, retry, limit of tower", &[(Call::NAME, peers::tower)]),
            ("ToolStack, first call", &[(Call::NAME, stack::first)]),
            ("ToolStack, first call, key to be hashed", &[(Call::NAME, stack::new_key)]),
            ("ToolStack behind envelopes", &[(Call::NAME, stack::envelopes)]),
            ("ToolStack, replay", &[(Call::NAME, stack::replay)]),
            ("ToolStack, without a key", &[(Call::NAME, stack::without_key)]),
            ("ToolStack, with signals of loops", &[(Call::NAME, stack::signals)]),
        ],
    );
}

criterion_group!(benches, all);
criterion_main!(benches);
