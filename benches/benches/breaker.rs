//! The breaker beside tower-resilience's, recloser and failsafe.
#[cfg(feature = "peers")]
use benches::peers::breaker as peers;
use benches::{
    call::Leaf as Call,
    criterion::group,
    http::Leaf as Http,
    kinds,
    ours::{bare, breaker},
    small::Leaf as Small,
};
use criterion::{Criterion, criterion_group, criterion_main};

fn all(criterion: &mut Criterion) {
    group(
        criterion,
        "breaker",
        &[
            ("no layer", kinds!(bare: Small, Call, Http)),
            ("closed", kinds!(breaker::closed: Small, Call, Http)),
            ("closed, window by number", kinds!(breaker::by_number: Small, Call, Http)),
            #[cfg(feature = "peers")]
            ("closed, tower-resilience", kinds!(peers::tower_resilience: Small, Call, Http)),
            #[cfg(feature = "peers")]
            ("closed, recloser", kinds!(peers::recloser: Small, Call, Http)),
            ("closed, consecutive failures", kinds!(breaker::consecutive: Small, Call, Http)),
            #[cfg(feature = "peers")]
            ("closed, failsafe", kinds!(peers::failsafe: Small, Call, Http)),
            ("open", kinds!(breaker::open: Small, Call, Http)),
            #[cfg(feature = "peers")]
            ("open, tower-resilience", kinds!(peers::tower_resilience_open: Small, Call, Http)),
        ],
    );
}

criterion_group!(benches, all);
criterion_main!(benches);
