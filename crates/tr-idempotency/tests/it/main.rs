//! Behavior of the idempotency layer.
mod alloc;
mod between;
mod bounds;
#[cfg(feature = "conformance")]
mod broken_stores;
mod cancelling;
mod cases;
mod chaos;
mod conflicts;
#[cfg(feature = "conformance")]
mod conformance;
#[cfg(feature = "sqlite")]
mod crash;
mod derived;
mod failures;
mod faults;
mod giving_back;
mod in_flight;
mod instances;
mod late;
mod laws;
mod operators;
mod own_types;
mod panics;
mod peers;
mod probes;
mod records;
#[cfg(feature = "encryption")]
mod sealing;
#[cfg(all(feature = "conformance", feature = "sqlite"))]
mod sqlite;
mod store_drops;
mod store_failures;
mod store_waits;
mod stores;
mod support;
mod unknown;
mod waiting;

use tr_testkit::alloc::CountingAllocator;

/// It counts for each thread, so one test does not disturb another.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
