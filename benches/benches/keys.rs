//! Keys of 1 KiB of params beside `serde_json_canonicalizer` and BLAKE3.
#[cfg(feature = "peers")]
use benches::peers::keys as peers;
use benches::{criterion::group, ours::keys};
use criterion::{Criterion, criterion_group, criterion_main};

const PARAMS: &str = "1 KiB of params";

fn all(criterion: &mut Criterion) {
    group(
        criterion,
        "keys",
        &[
            ("key", &[(PARAMS, keys::key)]),
            #[cfg(feature = "peers")]
            ("serde_json_canonicalizer and BLAKE3", &[(PARAMS, peers::jcs_and_blake3)]),
        ],
    );
}

criterion_group!(benches, all);
criterion_main!(benches);
