//! The stack and all that the facade adds to its layers, in one binary.
mod accuracy;
#[cfg(feature = "admin")]
mod admin;
mod agent_loop;
mod any_type;
mod auto_traits;
mod cases;
mod common;
mod config;
mod deadline;
mod envelopes;
mod environment;
mod evidence;
mod fold;
mod found;
mod http_clients;
#[cfg(all(feature = "http-server", feature = "sqlite"))]
mod http_server;
mod measured;
#[path = "../../../tr-telemetry/tests/it/metered.rs"]
mod metered;
mod metrics;
mod observe;
mod order;
mod overhead;
mod overhead_envelopes;
mod refusals;
mod rollout;
#[cfg(feature = "input-schema")]
mod schema;
#[cfg(feature = "input-schema")]
mod settings;
mod shown;
mod silent;
mod spawned;
mod stores;
#[cfg(feature = "sqlite")]
mod stream_of_many;
#[cfg(feature = "sqlite")]
mod streaming;
mod switch;
mod telemetry_config;
mod threads;
mod together;
mod trace;

use tr_testkit::alloc::CountingAllocator;

/// It counts for each thread, so one test does not disturb another.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
