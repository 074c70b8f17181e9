//! Tries a tool call again where that is safe.
mod bucket;
mod budget;
mod chance;
mod config;
mod decide;
mod error;
pub mod future;
mod layer;
mod policy;
mod run;
mod service;
mod sync;

pub use self::{
    budget::{Budget, BudgetBuilder},
    chance::Stream,
    config::ConfigError,
    decide::{Decision, Failed, Why, decide},
    error::RetryExhausted,
    layer::{Builder, RetryLayer},
    policy::{Anchor, Policy},
    service::Retry,
};
