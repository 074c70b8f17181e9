//! Shares the state of breakers between processes through Redis.
//!
//! # When to use
//!
//! Where several processes call the same tools: once a breaker opens in one of them, it opens in the others,
//! too. Without Redis, or while it is down, each process uses its own breakers only. No call ever waits for Redis.
//!
//! # Example
//!
//! ```no_run
//! use tr_breaker::{BreakerLayer, share::Sharing};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tr_breaker::ConfigError> {
//! let layer = BreakerLayer::default();
//! let sharing = Sharing::builder("redis://127.0.0.1/").namespace("checkout").build(layer.registry())?;
//! let mut health = sharing.health();
//! tokio::spawn(sharing.run());
//!
//! while let Some(status) = health.changed().await {
//!     println!("breakers are shared: {}, {:?}", status.connected, status.error);
//! }
//! # Ok(()) }
//! ```
//!
//! # What is shared
//!
//! That a breaker opens (with the time left), closes, is forced open, is reset, and the mode that it is given by hand.
//! Each breaker is known by its name within the namespace. What it has counted is not shared, nor is `HALF_OPEN`: it
//! follows from the clock, and each process lets a probe of its own through. The first that fails opens all again, the
//! process whose probes succeed closes all. The breaker of overflowing keys is not shared.
//!
//! # Which decision holds
//!
//! The later one. Decisions about a breaker are numbered by Redis, and each says which one it knew of: one that did not
//! know of the last is not taken, and its process looks which of the two was later. Only durations travel, and only
//! Redis's clock is read, so the clocks of the machines don't matter. Two exceptions:
//!
//! - What an operator has ordered (`force_open`, `disable`, `shadow`, `enforce`) is undone only by
//!   those who know of it.
//! - What a layer's own configuration forces open stays so in that process until it is reset there.
//!
//! What a process decided before it first heard of the others yields to what they know.
//!
//! # When Redis is away
//!
//! Calls continue, breakers open and close, and their last state is published when Redis is back:
//! nothing queues up. After a loss of data in Redis, each process publishes its state again; a
//! decision of a process that never saw an operator's order then overrides the order. [`Health`]
//! says how it stands.
//!
//! # In Redis
//!
//! Three keys, `tr-breaker:{NAMESPACE}:v1:state`, `…:log` and `…:meta`, and a channel, `…:bell`.
//! They are gone a day after the last process; a breaker that is closed takes no room after ten
//! minutes. Redis 6.2 or later, or Valkey; one primary. `rediss://` needs the feature `redis-tls`:
//! Redis's certificate has to be signed by an authority of the system's, or by one given to
//! `Builder::tls_roots`, and to name the address's host. Nothing switches this off.

mod backoff;
mod entry;
mod fleet;
mod health;
mod merge;
mod rounds;
mod store;

pub use self::health::{Health, Status};

use self::{backoff::Backoff, fleet::Fleet, health::Reporter, store::Store};
use crate::{Registry, changed::ChangedBreakers, settings::own_seed};
use redis::ConnectionInfo;
use std::{fmt, ops::RangeInclusive, sync::Arc, time::Duration};
use tr_core::ConfigError;

/// Shares the breakers of one layer; works while [`run`](Self::run) is polled.
#[must_use = "nothing is shared unless it runs"]
pub struct Sharing {
    store: Store,
    fleet: Fleet,
    changed: Arc<ChangedBreakers>,
    reporter: Reporter,
    backoff: Backoff,
    every: Duration,
}

/// Configures a [`Sharing`].
#[derive(Clone)]
#[must_use]
pub struct Builder {
    url: String,
    namespace: String,
    every: Duration,
    #[cfg(feature = "redis-tls")]
    tls: tr_tls::Settings,
}

/// The allowed polling intervals.
const EVERY: RangeInclusive<Duration> = Duration::from_millis(50)..=Duration::from_secs(60);

/// Bytes of a namespace.
const NAMESPACE: RangeInclusive<usize> = 1..=100;

impl Sharing {
    /// Starts from the defaults: the namespace `default`, and a poll of Redis every 500 ms even without a notification.
    ///
    /// `url` is `redis://[user][:password@]host[:port][/database]`, the same with `rediss://` for TLS, or `unix:` and a
    /// path.
    pub fn builder(url: impl Into<String>) -> Builder {
        let (namespace, every) = ("default".to_owned(), Duration::from_millis(500));
        Builder {
            url: url.into(),
            namespace,
            every,
            #[cfg(feature = "redis-tls")]
            tls: tr_tls::Settings::default(),
        }
    }

    /// Its health; take it before it runs.
    #[must_use]
    pub fn health(&self) -> Health {
        self.reporter.health()
    }

    /// Shares until it is dropped, which is safe at any time: the breakers stay as they are.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with I/O and time: the connection needs it.
    pub async fn run(mut self) {
        self.fleet.begin(crate::clock::now());
        loop {
            let error = self.connect_and_share().await;
            self.reporter.failed(&format_args!("Redis at {}: {error}", self.store.addr()));
            self.wait().await;
        }
    }
}

impl Builder {
    /// Sets the namespace: layers of the same namespace share, in all processes. Only one layer of
    /// a process may use it.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// How late a decision may be noticed if its notification is lost: 50 ms to 60 s.
    pub fn every(mut self, every: Duration) -> Self {
        self.every = every;
        self
    }

    /// Trusts the authorities of this PEM text, and not the system's, where the address is `rediss://…`.
    #[cfg(feature = "redis-tls")]
    pub fn tls_roots(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.tls.set_roots(pem);
        self
    }

    /// Shows this certificate to a Redis that asks for one (`tls-auth-clients`): PEM texts of the certificate, with
    /// those that lead to its authority, and of its key.
    #[cfg(feature = "redis-tls")]
    pub fn tls_certificate(mut self, chain: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.tls.set_certificate(chain, key);
        self
    }

    #[cfg(not(feature = "redis-tls"))]
    fn info(&self) -> Result<ConnectionInfo, String> {
        if ["rediss:", "valkeys:"].iter().any(|scheme| self.url.starts_with(scheme)) {
            return Err("it asks for TLS: switch on the feature `redis-tls`".into());
        }
        redis::IntoConnectionInfo::into_connection_info(&*self.url)
            .map_err(|error| error.to_string())
    }

    #[cfg(feature = "redis-tls")]
    fn info(&self) -> Result<ConnectionInfo, String> {
        let info = tr_tls::redis::connection_info(&self.url, &self.tls);
        let info = info.map_err(|error| error.to_string())?;
        if !self.tls.is_default() && !tr_tls::redis::is_secure(&info) {
            return Err(
                "certificates are given, and it does not ask for TLS: write `rediss://`".into()
            );
        }
        Ok(info)
    }

    /// Validates the settings. Does not connect yet.
    ///
    /// # Errors
    ///
    /// Names each fault: an address that is none, a namespace that is empty, longer than 100 bytes
    /// or holds other than letters, digits and `-_.:/`, an interval out of range, certificates that
    /// cannot be used, breakers that are shared already.
    pub fn build(self, registry: &Registry) -> Result<Sharing, ConfigError> {
        let mut faults = Vec::new();
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:/".contains(c);
        if !NAMESPACE.contains(&self.namespace.len()) || !self.namespace.chars().all(is_allowed) {
            faults.push(format!(
                "`namespace` is {:?}, must be 1 to 100 characters of a-z A-Z 0-9 - _ . : /",
                self.namespace
            ));
        }
        if !EVERY.contains(&self.every) {
            faults.push(format!("`every` is {:?}, must be 50ms to 60s", self.every));
        }
        let origin = format!("{:016x}", own_seed());
        let store = self.info().and_then(|info| {
            Store::new(info, &self.namespace, origin).map_err(|error| error.to_string())
        });
        let store = match store {
            Ok(store) => Some(store),
            // The address may hold a password.
            Err(error) => {
                faults.push(format!("invalid Redis URL: {error}"));
                None
            }
        };
        ConfigError::check("breaker sharing", faults)?;
        let store = store.expect("without a store there is a fault");
        let (breakers, changed) = (registry.breakers(), Arc::<ChangedBreakers>::default());
        if !breakers.observers().set_changes(&changed) {
            let fault = "the registry is already shared: use one `Sharing` for each registry";
            ConfigError::check("breaker sharing", vec![fault.into()])?;
        }
        Ok(Sharing {
            store,
            fleet: Fleet::new(breakers),
            changed,
            reporter: Reporter::default(),
            backoff: Backoff::new(fastrand::Rng::with_seed(own_seed())),
            every: self.every,
        })
    }
}

/// Without the address, which may hold a password.
impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("namespace", &self.namespace)
            .field("every", &self.every)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sharing")
            .field("addr", &self.store.addr())
            .field("namespace", &self.store.namespace())
            .field("every", &self.every)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
