//! Contract laws, scripted tools and an allocation counter for testing tower layers.
//!
//! | to show that a layer … | use |
//! |---|---|
//! | keeps the contract of `Service`: readiness, clones, drops, wake-ups, panics, errors | [`laws`] |
//! | does the right thing around a tool that fails, hangs, panics or answers late | [`tool`] |
//! | leaks nothing when its futures are dropped anywhere | [`drops`] |
//! | allocates nothing on its fast path | [`mod@alloc`] |
//! | ran the tool once, even across a killed process | [`ledger`] |
//! | syncs no more than needed, and copes with a slow or failing disk (feature `syncs`, Linux) | `syncs` |
//! | logs as documented (feature `logs`) | `logs::Logs` |
//! | works with a real Redis server that is killed, paused and restarted (feature `redis`) | `redis::Server` |
//! | works with a real PostgreSQL server that is killed and restarted (feature `postgres`) | `postgres::Server` |
//! | trusts only the right authorities (feature `tls`) | `tls::Authority`, and the servers' `Options::tls` |
//! | works over a bad network (feature `faults`) | `faults::Proxy` |
//! | works with session files of any size | [`sessions`] |
//! | costs how much, beside the bare service | [`overhead`] |
//! | works for many rounds, a few in every run and all in a soak | [`fn@rounds`] |
//!
//! All of it works for any request and response; [`calls`] adds what tr-core's `ToolCall` and `ToolOutcome` need.
//!
//! # Example
//!
//! All laws, checked for tower's own concurrency limit, from a plain `#[test]`:
//!
//! ```
//! use tower::limit::ConcurrencyLimit;
//! use tr_testkit::laws::Laws;
//!
//! Laws::new(|n| n, |request: &u64| request * 10).check(|inner| ConcurrencyLimit::new(inner, 1));
//! ```
//!
//! Nothing here sleeps: time is tokio's paused clock, and randomness is seeded. [`overhead`] measures real time, and
//! modules with a feature use real programs, in real time.
//!
//! This crate knows nothing of any layer.

pub mod alloc;
pub mod calls;
mod drive;
pub mod drops;
#[cfg(all(unix, feature = "faults"))]
pub mod faults;
#[cfg(all(unix, any(feature = "postgres", feature = "redis")))]
mod launch;
pub mod laws;
pub mod ledger;
#[cfg(feature = "logs")]
pub mod logs;
pub mod overhead;
#[cfg(all(unix, feature = "postgres"))]
pub mod postgres;
#[cfg(all(unix, feature = "redis"))]
pub mod redis;
#[cfg(all(unix, feature = "redis"))]
mod resp;
mod rounds;
pub mod sessions;
#[cfg(all(feature = "syncs", target_os = "linux"))]
pub mod syncs;
#[cfg(feature = "tls")]
pub mod tls;
pub mod tool;

pub use rounds::{SOAK, rounds};
pub use tr_core::BoxError;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
