//! The contract: keys, and what an error says.
mod canonical;
mod classify;
mod classify_allocations;
#[cfg(feature = "input-schema")]
mod input_schema;

use tr_testkit::alloc::CountingAllocator;

/// It counts for each thread, so one test does not disturb another.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
