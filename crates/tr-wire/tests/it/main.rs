//! The envelopes: what is read, what is refused, what is written.
mod faults;
#[cfg(feature = "schema")]
mod generated;
mod into_call;
mod normalise;
mod normalise_allocations;
mod outcomes;
mod round_trip;
mod samples;
#[cfg(feature = "schema")]
mod schemas;

use tr_testkit::alloc::CountingAllocator;

/// It counts for each thread, so one test does not disturb another.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
