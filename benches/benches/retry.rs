//! Retry beside tower's and tower-resilience's, where the first attempt succeeds.
#[cfg(feature = "peers")]
use benches::peers::retry as peers;
use benches::{
    call::Leaf as Call,
    criterion::group,
    http::Leaf as Http,
    kinds,
    ours::{bare, retry},
    small::Leaf as Small,
};
use criterion::{Criterion, criterion_group, criterion_main};

fn all(criterion: &mut Criterion) {
    group(
        criterion,
        "retry",
        &[
            ("no layer", kinds!(bare: Small, Call, Http)),
            ("success", kinds!(retry::success: Small, Call, Http)),
            #[cfg(feature = "peers")]
            ("success, tower", kinds!(peers::tower: Small, Call, Http)),
            #[cfg(feature = "peers")]
            ("success, tower-resilience", kinds!(peers::tower_resilience: Small, Call, Http)),
            ("success, budget", kinds!(retry::budget: Small, Call, Http)),
            #[cfg(feature = "peers")]
            ("success, budget, tower", kinds!(peers::tower_budget: Small, Call, Http)),
        ],
    );
}

criterion_group!(benches, all);
criterion_main!(benches);
