//! The loop guard, its signals and its log.
mod call_limits;
mod corpus;
mod guard;
mod laws;
mod log_file;
mod signals;
mod without_turns;

use tr_testkit::alloc::CountingAllocator;

/// It counts for each thread, so one test does not disturb another.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
