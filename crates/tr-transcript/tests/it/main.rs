//! Behavior of the validator, the repair, and of session files.
mod answers;
mod common;
mod copies;
mod damaged;
mod emptied;
mod file;
mod hostile;
mod lossless;
mod members;
mod not_known;
mod repair;
mod repair_memory;
mod requests;
mod server_tools;
mod strays;

use tr_testkit::alloc::CountingAllocator;

/// It counts for each thread, so one test does not disturb another.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
