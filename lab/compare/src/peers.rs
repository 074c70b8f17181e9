//! The peers at the same work.
pub mod breaker;
pub mod keys;
pub mod records;
pub mod retry;
pub mod stack;
pub mod telemetry;
