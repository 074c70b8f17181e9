//! The breaker as its users see it.
mod alloc;
mod cases;
mod contract;
mod peers;
mod readiness;
mod registry;
mod restart;
mod rig;
mod targets;
mod wedges;

use tr_testkit::alloc::CountingAllocator;

/// It counts for each thread, so one test does not disturb another.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
