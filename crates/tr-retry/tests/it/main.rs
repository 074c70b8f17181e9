//! Behavior of retry.
mod alloc;
mod attempts;
mod budget;
mod common;
mod decide;
mod delays;
mod effect;
mod laws;
mod peers;
mod requests;
mod stops;
mod waiting;

use tr_testkit::alloc::CountingAllocator;

/// It counts for each thread, so one test does not disturb another.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
