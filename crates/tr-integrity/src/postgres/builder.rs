//! The settings of a PostgreSQL store.
use super::{Postgres, address::read};
use crate::store::StoreError;
use deadpool_postgres::{ConfigConnectImpl, Connect, Manager, ManagerConfig, Pool};
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio_postgres::{
    Config, NoTls, Socket,
    tls::{MakeTlsConnect, TlsConnect},
};
use tr_core::{debug_parts, setters};

/// Configures a [`Postgres`] store; from [`Postgres::builder`].
#[must_use]
pub struct Builder {
    address: String,
    timeout: Duration,
    connections: usize,
    #[cfg(feature = "postgres-tls")]
    tls: tr_tls::Settings,
}

impl Postgres {
    /// Configures the store at this address: a URL or `key=value` pairs, as `libpq` accepts them.
    pub fn builder(address: impl Into<String>) -> Builder {
        Builder {
            address: address.into(),
            timeout: Duration::from_secs(2),
            connections: 8,
            #[cfg(feature = "postgres-tls")]
            tls: tr_tls::Settings::default(),
        }
    }
}

impl Builder {
    setters! {
        /// The timeout for connecting, and for each reply: 2 s by default, at least 1 ms. A reply
        /// that is overdue counts as lost, and its connection is closed.
        fn timeout(timeout: Duration) { timeout = timeout }

        /// The maximum number of connections: 8 by default, at least 1. When all are in use,
        /// operations wait.
        fn connections(most: usize) { connections = most }

        /// Trusts the certificate authorities of this PEM text instead of the system's. Connections
        /// then use TLS; an address that says otherwise is an error.
        #[cfg(feature = "postgres-tls")]
        fn tls_roots(pem: impl Into<Vec<u8>>) { tls.set_roots(pem) }

        /// The client certificate for servers that ask for one: PEM texts of the certificate with its
        /// chain, and of its key. Connections use TLS as with `tls_roots`.
        #[cfg(feature = "postgres-tls")]
        fn tls_certificate(chain: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) {
            tls.set_certificate(chain, key)
        }
    }

    /// Builds the store, which connects at the first use: over TLS where the address says
    /// `sslmode=require` or `verify-full`, which both verify the server's certificate and name,
    /// else in plain text.
    ///
    /// # Errors
    /// [`Refused`](crate::store::StoreErrorKind::Refused), listing all invalid settings: also
    /// `sslmode=prefer`, which could fall back to plain text, and TLS without the feature
    /// `postgres-tls`.
    #[cfg(not(feature = "postgres-tls"))]
    pub fn build(self) -> Result<Postgres, StoreError> {
        let address = read(&self.address, false);
        let address = address.and_then(|(config, is_secure)| match is_secure {
            true => Err("it asks for TLS: switch on the feature `postgres-tls`".into()),
            false => Ok((config, ConfigConnectImpl { tls: NoTls })),
        });
        self.finish(address)
    }

    /// Builds the store, which connects at the first use: over TLS where the address says
    /// `sslmode=require` or `verify-full`, which both verify the server's certificate and name, or
    /// where [`tls_roots`](Self::tls_roots) or [`tls_certificate`](Self::tls_certificate) is given;
    /// else in plain text.
    ///
    /// # Errors
    /// [`Refused`](crate::store::StoreErrorKind::Refused), listing all invalid settings: also
    /// `sslmode=prefer`, which could fall back to plain text.
    #[cfg(feature = "postgres-tls")]
    pub fn build(self) -> Result<Postgres, StoreError> {
        match read(&self.address, !self.tls.is_default()) {
            Ok((config, true)) => {
                let tls = self.tls.client_config().map_err(|error| error.to_string());
                let tls = tls.map(tokio_postgres_rustls::MakeRustlsConnect::new);
                self.finish(tls.map(|tls| (config, ConfigConnectImpl { tls })))
            }
            Ok((config, false)) => self.finish(Ok((config, ConfigConnectImpl { tls: NoTls }))),
            Err(wrong) => self.finish::<ConfigConnectImpl<NoTls>>(Err(wrong)),
        }
    }

    /// Builds the store with another TLS implementation, which is always used: an address with
    /// `sslmode=disable` or `prefer` is an error. That implementation decides what it verifies.
    ///
    /// # Errors
    /// [`Refused`](crate::store::StoreErrorKind::Refused), listing all invalid settings.
    pub fn build_with_tls<T>(self, tls: T) -> Result<Postgres, StoreError>
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send + Sync,
        T::TlsConnect: Send + Sync,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let address = read(&self.address, true);
        self.finish(address.map(|(config, _)| (config, ConfigConnectImpl { tls })))
    }

    fn finish<C: Connect + 'static>(
        self,
        address: Result<(Config, C), String>,
    ) -> Result<Postgres, StoreError> {
        let wrong_address = address.as_ref().err().map(|wrong| format!("the address: {wrong}"));
        let wrong_timeout = (self.timeout < Duration::from_millis(1))
            .then(|| "the timeout must be at least 1 ms".to_owned());
        let wrong_connections =
            (self.connections == 0).then(|| "at least 1 connection is required".to_owned());
        let wrong: Vec<_> =
            [wrong_address, wrong_timeout, wrong_connections].into_iter().flatten().collect();
        let (Ok((mut config, connect)), []) = (address, &wrong[..]) else {
            return Err(StoreError::refused(wrong.join("; ")));
        };
        if config.get_application_name().is_none() {
            config.application_name("tr-integrity");
        }
        // The store applies the timeouts itself, so the pool needs no runtime.
        let manager = Manager::from_connect(config, connect, ManagerConfig::default());
        let pool = Pool::builder(manager).max_size(self.connections).build();
        let pool = pool.map_err(StoreError::refused)?;
        Ok(Postgres { pool, patience: self.timeout, made: OnceCell::new() })
    }
}

// Omits the address, which may hold a password.
debug_parts! { Builder, |it| timeout = it.timeout, connections = it.connections }

#[cfg(all(test, not(feature = "postgres-tls")))]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_asks_for_tls_is_an_error_that_names_the_feature() {
        for mode in ["require", "verify-full"] {
            let address = format!("postgresql://me:secret@host/db?sslmode={mode}");
            let error = Postgres::builder(address).build().unwrap_err().to_string();
            assert!(error.contains("`postgres-tls`") && !error.contains("secret"), "{error}");
        }
    }
}
