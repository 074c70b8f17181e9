//! Trusted authorities and client certificates for TLS connections to Redis and PostgreSQL.
//!
//! # When to use
//!
//! Through the builders of stores, with their features `redis-tls` and `postgres-tls`, which take
//! the same certificates and report the same errors.
//!
//! # Example
//!
//! ```no_run
//! use tr_tls::Settings;
//!
//! # fn f() -> Result<(), Box<dyn std::error::Error>> {
//! let mut settings = Settings::default(); // Trusts the system's authorities.
//! settings.set_roots(std::fs::read("authority.pem")?); // Trusts these instead.
//! let config = settings.client_config()?;
//! # let _: rustls::ClientConfig = config;
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//!
//! - A server's certificate has to be signed by a trusted authority, be valid now, and name the
//!   host of the address. This check cannot be disabled.
//! - TLS 1.2 or 1.3, by rustls, with ring unless the process has installed another crypto provider.
//! - [`Settings::client_config`] reports invalid settings before any connection.
//!
//! The feature `redis`, off by default, applies the settings to Redis addresses.
//!
//! This crate knows nothing of any store or layer, and connects to nothing.

mod error;
#[cfg(feature = "redis")]
pub mod redis;
mod refusal;
mod settings;

pub use self::{error::Error, refusal::is_refusal, settings::Settings};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
