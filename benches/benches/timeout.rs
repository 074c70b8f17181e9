//! The timeouts beside tower's, around a service that answers at once.
#[cfg(feature = "peers")]
use benches::peers::stack as peers;
use benches::{
    call::Leaf as Call,
    criterion::group,
    http::Leaf as Http,
    kind::Kind,
    kinds,
    ours::{bare, timeout},
    small::Leaf as Small,
};
use criterion::{Criterion, criterion_group, criterion_main};

fn all(criterion: &mut Criterion) {
    group(
        criterion,
        "timeout",
        &[
            ("no layer", kinds!(bare: Small, Call, Http)),
            ("attempt timeout", kinds!(timeout::attempt: Small, Call, Http)),
            #[cfg(feature = "peers")]
            ("timeout, tower", kinds!(peers::tower_timeout: Small, Call, Http)),
            ("deadline", &[(Call::NAME, timeout::deadline)]),
        ],
    );
}

criterion_group!(benches, all);
criterion_main!(benches);
