//! Keys of 1 KiB of params beside `serde_json_canonicalizer` and BLAKE3.
use benches::{criterion::compare, ours, peers};
use criterion::{Criterion, criterion_group, criterion_main};

fn keys(criterion: &mut Criterion) {
    compare(criterion, "keys", &[("key", ours::key), ("jcs and blake3", peers::jcs_and_blake3)]);
}

criterion_group!(benches, keys);
criterion_main!(benches);
