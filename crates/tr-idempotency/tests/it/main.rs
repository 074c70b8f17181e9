//! Behaviour of the idempotency layer.
mod bounds;
mod cancelling;
mod cases;
mod conflicts;
mod derived;
mod failures;
mod own_types;
mod records;
mod support;
mod unknown;
mod waiting;
