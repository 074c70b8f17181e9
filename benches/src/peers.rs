//! The peers at the same work.
mod breaker;
mod key;
mod records;
mod retry;
mod stack;
pub mod telemetry;

pub use self::{
    breaker::{
        failsafe_consecutive, recloser_closed, tower_resilience_closed, tower_resilience_open,
    },
    key::jcs_and_blake3,
    records::{moka_hit, quick_cache_miss, tower_resilience_hit, tower_resilience_miss},
    retry::{tower_resilience_retry, tower_retry, tower_retry_budget},
    stack::{tower_stack, tower_timeout, trio_call_hit, trio_call_miss, trio_hit, trio_miss},
};
