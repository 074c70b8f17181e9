//! The loop guard, of which there is no peer in Rust, beside the bare tool.
use benches::{criterion::compare, ours};
use criterion::{Criterion, criterion_group, criterion_main};

fn loopguard(criterion: &mut Criterion) {
    compare(
        criterion,
        "loopguard",
        &[("success", ours::loop_guard), ("bare tool", ours::floor_call)],
    );
}

criterion_group!(benches, loopguard);
criterion_main!(benches);
