//! How to keep records in Redis.
use super::{
    Durability, Inner, Redis,
    check::Accepted,
    fault::store_error,
    link::{Link, Way},
    sentinels::Sentinels,
    tls::Tls,
};
use crate::store::StoreError;
use redis::{Client, ConnectionInfo, ProtocolVersion, RedisError};
use std::{fmt, sync::Arc, time::Duration};

/// A reply is overdue after this.
const TIMEOUT: Duration = Duration::from_millis(500);

/// What keys begin with.
const PREFIX: &str = "tr:calls:";

/// How to keep records in Redis; from [`Redis::builder`].
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

impl Builder {
    pub(super) fn new(address: String) -> Self {
        Self {
            address,
            sentinels: None,
            prefix: PREFIX.into(),
            timeout: TIMEOUT,
            durability: Durability::Local,
            accepted: Accepted::default(),
            tls: Tls::default(),
        }
    }

    /// Asks these sentinels which server is the primary, now and whenever it may be another one. The
    /// host of the address given to [`Redis::builder`] is then the primary's name; its user,
    /// password, database and TLS are those for the server. Each sentinel's address has its own.
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

    /// Trusts the authorities of this PEM text, and not the system's, where an address is
    /// `rediss://…`. With sentinels, all of these then have the same user and password.
    #[cfg(feature = "redis-tls")]
    pub fn tls_roots(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.tls.settings.set_roots(pem);
        self
    }

    /// Shows this certificate to servers that ask for one (`tls-auth-clients`): PEM texts of the
    /// certificate, with those that lead to its authority, and of its key.
    #[cfg(feature = "redis-tls")]
    pub fn tls_certificate(mut self, chain: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.tls.settings.set_certificate(chain, key);
        self
    }

    /// What keys begin with, `tr:calls:` by default: letters, digits and `:._-/`. Stores with the
    /// same prefix share their records. To delete all of them, delete the keys that begin so.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// How far a claim and an end have got before they count; by default to the server.
    pub const fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// How long a reply, or a connection, may take before it counts as lost: 500 ms by default.
    /// Replicas' time comes on top of it.
    ///
    /// The sum of both should be far below the lease (2 min): a claim whose reply is lost is sent
    /// again, and a server that is slow beyond this is taken for one that is gone.
    pub const fn response_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Accepts a server that forgets keys when its memory is full (`maxmemory-policy` other than
    /// `noeviction`), with a warning. It may forget a call in flight, which then runs twice.
    pub const fn evicting_at_my_own_risk(mut self) -> Self {
        self.accepted.eviction = true;
        self
    }

    /// Takes no offence at a server that does not write each change to its disk. A restart then
    /// forgets calls, and a repeat of one runs it again.
    pub const fn forgetting_on_restart(mut self) -> Self {
        self.accepted.no_persistence = true;
        self
    }

    /// Connects, and checks the server as [`check`](crate::store::RecordStore::check) does.
    ///
    /// # Errors
    /// [`Refused`](crate::store::StoreErrorKind::Refused), naming everything that is wrong: with
    /// the address or the prefix, or with how the server is set up. Else as any operation's: the
    /// server cannot be reached.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and a timer.
    pub async fn connect(self) -> Result<Redis, StoreError> {
        let store = self.build()?;
        crate::store::RecordStore::check(&store).await?;
        Ok(store)
    }

    /// The store, connected when first used and not checked: for programs that have to start while
    /// the server is down.
    ///
    /// # Errors
    /// [`Refused`](crate::store::StoreErrorKind::Refused): the address or the prefix is wrong, or
    /// what secures the way to it.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and a timer.
    pub fn build(self) -> Result<Redis, StoreError> {
        let Self { address, sentinels, prefix, timeout, durability, accepted, tls } = self;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || ":._-/".contains(c);
        let wrong_prefix = prefix.is_empty() || !prefix.chars().all(is_plain);
        let wrong_prefix = wrong_prefix
            .then(|| format!("the prefix {prefix:?}: it may hold letters, digits and `:._-/`"));
        let wrong_time =
            timeout.is_zero().then(|| "the response timeout: it must not be zero".to_owned());
        let way = way(&address, sentinels, &tls);
        let wrong_address = way.as_ref().err().cloned();
        let wrong: Vec<_> =
            [wrong_address, wrong_prefix, wrong_time].into_iter().flatten().collect();
        let (Ok(way), []) = (way, &wrong[..]) else {
            return Err(StoreError::refused(wrong.join("; ")));
        };
        let link = |durability| Link::new(way.clone(), timeout, durability).map(Arc::new);
        let changes = link(durability).map_err(store_error)?;
        // Who waits for replicas holds up whatever comes after it on its connection.
        let looks = match durability {
            Durability::Local => changes.clone(),
            Durability::Wait { .. } => link(Durability::Local).map_err(store_error)?,
        };
        Ok(Redis(Arc::new(Inner { changes, looks, prefix, accepted })))
    }
}

/// How the server is found, or what is wrong with that.
fn way(address: &str, sentinels: Option<Vec<String>>, tls: &Tls) -> Result<Way, String> {
    let of_address = |error| format!("the address: {error}");
    let info = tls.info(address).map_err(of_address)?;
    let Some(sentinels) = sentinels else {
        tls.check_use(&[&info]).map_err(of_address)?;
        let client = client(info).map_err(|error| of_address(error.to_string()))?;
        return Ok(Way::Address(Box::new(client)));
    };
    let of_sentinels = |error| format!("the sentinels: {error}");
    let sentinels = sentinels.iter().map(|address| tls.info(address));
    let sentinels = sentinels.collect::<Result<Vec<_>, _>>().map_err(of_sentinels)?;
    let all: Vec<_> = sentinels.iter().chain([&info]).collect();
    tls.check_use(&all).map_err(of_address)?;
    let sentinels = Sentinels::new(sentinels, &info, tls);
    let sentinels = sentinels.map_err(|error| of_sentinels(error.to_string()))?;
    Ok(Way::Sentinels(Arc::new(sentinels)))
}

/// A client that speaks the protocol's third version, in which one connection carries commands and
/// what is published.
fn client(info: ConnectionInfo) -> Result<Client, RedisError> {
    let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    Client::open(info.set_redis_settings(settings))
}

impl fmt::Debug for Builder {
    /// Shows all but the addresses: they may hold passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("prefix", &self.prefix)
            .field("timeout", &self.timeout)
            .field("durability", &self.durability)
            .field("accepted", &self.accepted)
            .finish_non_exhaustive()
    }
}
