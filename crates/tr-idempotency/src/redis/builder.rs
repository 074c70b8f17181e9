//! The settings of the Redis store.
use super::{
    check::Accepted,
    durability::Durability,
    link::{Discovery, Link},
    sentinels,
    store::{Inner, Redis},
    tls::Tls,
};
use crate::store::StoreError;
use redis::{Client, ConnectionInfo, ProtocolVersion, RedisError};
use std::{sync::Arc, time::Duration};
use tokio::sync::Mutex;
use tr_core::setters;

/// The default timeout of a reply.
const TIMEOUT: Duration = Duration::from_millis(500);

/// The default prefix of keys.
const PREFIX: &str = "tr:calls:";

/// The settings of the Redis store; from [`Redis::builder`].
#[must_use]
pub struct Builder {
    address: String,
    sentinels: Option<Vec<String>>,
    prefix: String,
    timeout: Duration,
    durability: Durability,
    accepted: Accepted,
    tls: Tls,
}

impl Redis {
    /// Connects to the server at this address (`redis://user:password@host:port/database`) with the
    /// default settings, and checks it. [`builder`](Self::builder) has the settings.
    ///
    /// # Errors
    /// See [`Builder::connect`].
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and a timer.
    pub async fn connect(address: impl Into<String>) -> Result<Self, StoreError> {
        Self::builder(address).connect().await
    }

    /// Starts with the defaults: keys under `tr:calls:`, replies within 500 ms, no wait for
    /// replicas.
    pub fn builder(address: impl Into<String>) -> Builder {
        Builder {
            address: address.into(),
            sentinels: None,
            prefix: PREFIX.into(),
            timeout: TIMEOUT,
            durability: Durability::Local,
            accepted: Accepted::default(),
            tls: Tls::default(),
        }
    }
}

impl Builder {
    /// Asks these sentinels for the primary, at the start and whenever it may have changed. The
    /// host of the address given to [`Redis::builder`] is then the primary's name; its user,
    /// password, database and TLS are those of the server. Each sentinel's address has its own.
    ///
    /// ```
    /// # use std::num::NonZeroU8;
    /// # use tr_idempotency::{redis::{Builder, Durability, Redis}};
    /// # fn builder() -> Builder {
    /// Redis::builder("redis://:password@records")
    ///     .sentinels(["redis://10.0.0.1:26379", "redis://10.0.0.2:26379", "redis://10.0.0.3:26379"])
    ///     .durability(Durability::wait_for(NonZeroU8::MIN))
    /// # }
    /// ```
    pub fn sentinels<A: Into<String>>(mut self, addresses: impl IntoIterator<Item = A>) -> Self {
        self.sentinels = Some(addresses.into_iter().map(Into::into).collect());
        self
    }

    setters! {
        /// Trusts the authorities of this PEM text instead of the system's, for `rediss://…` addresses.
        /// All sentinels then need the same user and password.
        #[cfg(feature = "redis-tls")]
        fn tls_roots(pem: impl Into<Vec<u8>>) { tls.settings.set_roots(pem) }

        /// Presents this client certificate to servers that ask for one (`tls-auth-clients`): PEM texts
        /// of the certificate chain, and of its key.
        #[cfg(feature = "redis-tls")]
        fn tls_certificate(chain: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) {
            tls.settings.set_certificate(chain, key)
        }

        /// Sets the prefix of keys, `tr:calls:` by default: letters, digits and `:._-/`. Stores with
        /// the same prefix share their records. To delete all of them, delete the keys with this
        /// prefix.
        fn prefix(prefix: impl Into<String>) { prefix = prefix.into() }

        /// Sets how far a claim and an end are replicated before they count; by default only on the
        /// primary.
        fn durability(durability: Durability) { durability = durability }

        /// Sets the timeout of a reply and of a connection: 500 ms by default. The wait for replicas
        /// comes on top of it.
        ///
        /// The sum of both should be far below the lease (2 min): a claim whose reply is lost is sent
        /// again, and a slower server counts as unreachable.
        fn response_timeout(timeout: Duration) { timeout = timeout }

        /// Accepts a server that evicts keys when its memory is full (`maxmemory-policy` other than
        /// `noeviction`), with a warning. It may evict a call in flight, which then runs twice.
        fn evicting_at_my_own_risk() { accepted.eviction = true }

        /// Accepts a server that does not write each change to its disk, without a warning. A restart
        /// then loses records, and repeats of their calls run again.
        fn forgetting_on_restart() { accepted.no_persistence = true }
    }

    /// Connects, and checks the server as [`check`](crate::store::RecordStore::check) does.
    ///
    /// # Errors
    /// [`Refused`](crate::store::StoreErrorKind::Refused), with every fault of the address, the
    /// prefix or the server's configuration. Otherwise the errors of any operation, such as an
    /// unreachable server.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and a timer.
    pub async fn connect(self) -> Result<Redis, StoreError> {
        let store = self.build()?;
        crate::store::RecordStore::check(&store).await?;
        Ok(store)
    }

    /// Builds a store that connects when it is first used, and is not checked: for programs that
    /// have to start while the server is down.
    ///
    /// # Errors
    /// [`Refused`](crate::store::StoreErrorKind::Refused), with every fault of the address, the
    /// prefix or the TLS settings.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and a timer.
    pub fn build(self) -> Result<Redis, StoreError> {
        let Self { address, sentinels, prefix, timeout, durability, accepted, tls } = self;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || ":._-/".contains(c);
        let discovery = discovery(&address, sentinels, &tls);
        let mut wrong: Vec<_> = discovery.as_ref().err().cloned().into_iter().collect();
        if prefix.is_empty() || !prefix.chars().all(is_plain) {
            wrong.push(format!("invalid prefix {prefix:?}: use letters, digits and `:._-/`"));
        }
        if timeout.is_zero() {
            wrong.push("`response_timeout` is 0, must be positive".to_owned());
        }
        let (Ok(discovery), []) = (discovery, &wrong[..]) else {
            return Err(StoreError::refused(wrong.join("; ")));
        };
        let link = |durability| Arc::new(Link::new(discovery.clone(), timeout, durability));
        let changes = link(durability);
        // `WAIT` blocks the commands that follow it on its connection.
        let looks = match durability {
            Durability::Local => changes.clone(),
            Durability::Wait { .. } => link(Durability::Local),
        };
        Ok(Redis(Arc::new(Inner { changes, looks, prefix, accepted })))
    }
}

/// How to find the server, or the fault of the address.
fn discovery(
    address: &str,
    addresses: Option<Vec<String>>,
    tls: &Tls,
) -> Result<Discovery, String> {
    let of_address = |error| format!("invalid address: {error}");
    let info = tls.info(address).map_err(of_address)?;
    let Some(addresses) = addresses else {
        tls.check_use(&[&info]).map_err(of_address)?;
        let client = client(info).map_err(|error| of_address(error.to_string()))?;
        return Ok(Discovery::Address(Box::new(client)));
    };
    let of_sentinels = |error| format!("invalid sentinels: {error}");
    let addresses = addresses.iter().map(|address| tls.info(address));
    let addresses = addresses.collect::<Result<Vec<_>, _>>().map_err(of_sentinels)?;
    let all: Vec<_> = addresses.iter().chain([&info]).collect();
    tls.check_use(&all).map_err(of_address)?;
    let sentinels = sentinels::client(addresses, &info, tls);
    let sentinels = sentinels.map_err(|error| of_sentinels(error.to_string()))?;
    Ok(Discovery::Sentinels(Arc::new(Mutex::new(sentinels))))
}

/// A client for RESP3, in which one connection carries commands and published messages.
fn client(info: ConnectionInfo) -> Result<Client, RedisError> {
    let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    Client::open(info.set_redis_settings(settings))
}

tr_core::debug_parts! { Builder, |it|
    prefix = it.prefix,
    timeout = it.timeout,
    durability = it.durability,
    accepted = it.accepted
}
