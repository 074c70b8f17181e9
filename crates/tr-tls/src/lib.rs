//! Whom connections over TLS trust, and what they show: for clients of Redis and of PostgreSQL.
//!
//! # When to use
//!
//! Through the builders of stores, by their features `redis-tls` and `postgres-tls`; they take the
//! same certificates, and say the same of those that are wrong.
//!
//! # Example
//!
//! ```no_run
//! use tr_tls::Settings;
//!
//! # fn f() -> Result<(), Box<dyn std::error::Error>> {
//! let mut settings = Settings::default(); // The system's authorities.
//! settings.set_roots(std::fs::read("authority.pem")?); // Instead of them.
//! let config = settings.client_config()?;
//! # let _: rustls::ClientConfig = config;
//! # Ok(())
//! # }
//! ```
//!
//! # What holds
//!
//! - A server's certificate has to be signed by an authority that is trusted, be valid now, and name
//!   the host of the address. Nothing switches this off.
//! - TLS 1.2 or 1.3, by rustls. The cryptography is ring's, unless the process has installed another
//!   provider of rustls' before.
//! - Settings that cannot work are found by [`Settings::client_config`], before any connection.
//!
//! The feature `redis`, off by default, has the same for addresses of Redis.
//!
//! This crate knows nothing of any store or layer, and connects to nothing.

mod error;
#[cfg(feature = "redis")]
pub mod redis;
mod refusal;
mod settings;

pub use self::{error::Error, refusal::is_refusal, settings::Settings};
