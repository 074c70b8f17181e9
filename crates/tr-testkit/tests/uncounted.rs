//! Where the counting allocator is not installed, counting refuses to say zero.

use tr_testkit::alloc;

#[test]
#[should_panic(expected = "nothing is counted: install `CountingAllocator`")]
fn counting_without_the_allocator_panics() {
    let _ = alloc::count(|| ());
}
