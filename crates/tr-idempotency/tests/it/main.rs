//! Behaviour of the idempotency layer.
mod bounds;
mod cancelling;
mod cases;
mod conflicts;
mod derived;
mod failures;
mod faults;
mod operators;
mod own_types;
mod peers;
mod records;
mod store_drops;
mod store_failures;
mod stores;
mod support;
mod unknown;
mod waiting;
