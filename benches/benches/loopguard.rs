//! The loop guard, of which there is no peer in Rust.
use benches::{
    call::Leaf as Call,
    criterion::group,
    kind::Kind,
    ours::{bare, loopguard},
};
use criterion::{Criterion, criterion_group, criterion_main};

fn all(criterion: &mut Criterion) {
    group(
        criterion,
        "loop guard",
        &[
            ("no layer", &[(Call::NAME, bare::<Call>)]),
            ("success", &[(Call::NAME, loopguard::success)]),
            ("success, with signals", &[(Call::NAME, loopguard::signals)]),
        ],
    );
}

criterion_group!(benches, all);
criterion_main!(benches);
