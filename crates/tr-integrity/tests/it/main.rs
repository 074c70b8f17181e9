//! Behavior of sessions and both layers.
mod agent;
mod alloc;
#[cfg(feature = "conformance")]
mod broken_stores;
mod common;
mod config;
#[cfg(feature = "conformance")]
mod conformance;
#[cfg(feature = "sqlite")]
mod crash;
mod cycle;
mod durable;
mod gemini;
mod guard;
mod life;
mod property;
mod recovery;
mod responses;
mod reused;
mod session;
#[cfg(all(feature = "conformance", feature = "sqlite"))]
mod sqlite;
mod steps;
#[cfg(all(feature = "http", feature = "stream"))]
mod streamed;
mod system;
mod unready;
mod validate;

use tr_testkit::alloc::CountingAllocator;

/// It counts for each thread, so one test does not disturb another.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
