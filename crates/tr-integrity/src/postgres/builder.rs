//! How to keep sessions in PostgreSQL.
use super::{Postgres, fault::Told};
use crate::store::StoreError;
use deadpool_postgres::{ConfigConnectImpl, Connect, Manager, ManagerConfig, Pool};
use std::{fmt, str::FromStr, time::Duration};
use tokio::sync::OnceCell;
use tokio_postgres::{
    Config, NoTls, Socket,
    config::SslMode,
    tls::{MakeTlsConnect, TlsConnect},
};

/// How to keep sessions in PostgreSQL; from [`Postgres::builder`].
#[must_use]
pub struct Builder {
    address: String,
    timeout: Duration,
    connections: usize,
}

impl Builder {
    pub(super) const fn new(address: String) -> Self {
        Self { address, timeout: Duration::from_secs(2), connections: 8 }
    }

    /// How long a connection, and then a reply, may take: 2 s by default, 1 ms at least. What is
    /// overdue counts as lost, and its connection goes.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How many connections there may be at once: 8 by default, 1 at least. Who finds none free
    /// waits.
    pub const fn connections(mut self, most: usize) -> Self {
        self.connections = most;
        self
    }

    /// The store, connected when first used; without TLS.
    ///
    /// # Errors
    /// [`Refused`](crate::store::StoreErrorKind::Refused), naming everything that is wrong with
    /// the settings.
    pub fn build(self) -> Result<Postgres, StoreError> {
        let is_wanted = |config: &Config| config.get_ssl_mode() == SslMode::Require;
        self.finish(ConfigConnectImpl { tls: NoTls }, |config| {
            is_wanted(config).then_some(
                "the address: it asks for TLS (sslmode=require); build the store with `build_with_tls`",
            )
        })
    }

    /// The same with connections that TLS secures, for example by `tokio-postgres-rustls`; the
    /// address says whether they must be (`sslmode=require`).
    ///
    /// # Errors
    /// [`Refused`](crate::store::StoreErrorKind::Refused), naming everything that is wrong with
    /// the settings.
    pub fn build_with_tls<T>(self, tls: T) -> Result<Postgres, StoreError>
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send + Sync,
        T::TlsConnect: Send + Sync,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        self.finish(ConfigConnectImpl { tls }, |_| None)
    }

    fn finish(
        self,
        connect: impl Connect + 'static,
        objection: impl Fn(&Config) -> Option<&'static str>,
    ) -> Result<Postgres, StoreError> {
        let config = Config::from_str(&self.address);
        let config = config.map_err(|error| format!("the address: {}", Told(error)));
        let wrong_address = match &config {
            Ok(config) => objection(config).map(Into::into),
            Err(wrong) => Some(wrong.clone()),
        };
        let wrong_timeout = (self.timeout < Duration::from_millis(1))
            .then(|| "the timeout: it must be 1 ms at least".to_owned());
        let wrong_connections =
            (self.connections == 0).then(|| "the connections: there must be 1 at least".to_owned());
        let wrong: Vec<_> =
            [wrong_address, wrong_timeout, wrong_connections].into_iter().flatten().collect();
        let (Ok(mut config), []) = (config, &wrong[..]) else {
            return Err(StoreError::refused(wrong.join("; ")));
        };
        if config.get_application_name().is_none() {
            config.application_name("tr-integrity");
        }
        // Its timeouts are ours, so it needs no runtime of its own.
        let manager = Manager::from_connect(config, connect, ManagerConfig::default());
        let pool = Pool::builder(manager).max_size(self.connections).build();
        let pool = pool.map_err(StoreError::refused)?;
        Ok(Postgres { pool, patience: self.timeout, made: OnceCell::new() })
    }
}

/// Without the address: it may hold a password.
impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("timeout", &self.timeout)
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}
