//! Behaviour of the idempotency layer.
#[path = "../between/mod.rs"]
mod between;
mod bounds;
mod cancelling;
mod cases;
mod chaos;
mod conflicts;
mod derived;
mod failures;
mod faults;
mod giving_back;
mod instances;
mod late;
mod operators;
mod own_types;
mod panics;
mod peers;
mod probes;
mod records;
#[cfg(feature = "encryption")]
mod sealing;
mod store_drops;
mod store_failures;
mod store_waits;
mod stores;
mod support;
mod unknown;
mod waiting;
