//! What the testkit promises to those who test layers.
mod alloc;
mod broken;
mod drops;
#[cfg(all(unix, feature = "faults"))]
mod faults;
mod good;
mod ledger;
#[cfg(feature = "logs")]
mod logs;
mod overhead;
mod tool;

use tr_testkit::alloc::CountingAllocator;

/// It counts for each thread, so one test does not disturb another.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
