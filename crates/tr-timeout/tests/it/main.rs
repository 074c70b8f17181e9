//! The attempt timeout and the deadlines.
mod alloc;
mod attempt;
mod common;
mod deadline;
mod laws;
mod requests;
mod stream;

use tr_testkit::alloc::CountingAllocator;

/// It counts for each thread, so one test does not disturb another.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
