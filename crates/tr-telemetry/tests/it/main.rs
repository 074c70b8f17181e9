//! The layers and the observer, with listeners in memory.
mod alloc;
mod common;
mod docs;
#[cfg(feature = "json")]
mod events;
mod laws;
#[cfg(feature = "json")]
mod lines;
mod metered;
mod metrics;
mod prometheus;
#[cfg(feature = "json")]
mod redaction;
mod redaction_corpus;
mod requests;
mod spans;
#[cfg(feature = "json")]
mod transitions;

use tr_testkit::alloc::CountingAllocator;

/// It counts for each thread, so one test does not disturb another.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
