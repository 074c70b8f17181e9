//! Integrity, of which there is no peer in Rust: tool cycles in a session in memory, and whole transcripts.
use benches::{
    call::Leaf as Call,
    criterion::group,
    kind::Kind,
    ours::{bare, integrity},
};
use criterion::{Criterion, criterion_group, criterion_main};

const MESSAGES: &str = "1,000 messages";

fn all(criterion: &mut Criterion) {
    group(
        criterion,
        "integrity",
        &[
            ("no layer", &[(Call::NAME, bare::<Call>)]),
            ("call that no model made", &[(Call::NAME, integrity::passed)]),
            ("use and result recorded", &[(Call::NAME, integrity::cycle)]),
            ("validation", &[(MESSAGES, integrity::validate)]),
            ("plan of a repair", &[(MESSAGES, integrity::plan)]),
        ],
    );
}

criterion_group!(benches, all);
criterion_main!(benches);
