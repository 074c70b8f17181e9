//! The connection to Redis, its keys, and the two scripts that read and publish decisions; `rounds.rs` calls them.
use super::{
    entry::VERSION,
    merge::{KEEP, Offer},
};
use crate::changed::ChangedBreakers;
use redis::{
    AsyncConnectionConfig, Client, ConnectionInfo, ProtocolVersion, RedisError, RedisResult,
    Script, aio::MultiplexedConnection,
};
use std::{
    convert::Infallible,
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

/// How long Redis may take to answer, and to be reached. Nothing waits for it but the sharing task.
const RESPONSE: Duration = Duration::from_millis(500);
const CONNECT: Duration = Duration::from_secs(1);

/// How old the server's time may be when a request that is based on it arrives.
const LATEST: Duration = Duration::from_secs(2);

/// Unused entries expire after this.
const TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// How many breakers Redis keeps of one namespace.
const MAX_BREAKERS: usize = 100_000;

/// Entries of one answer.
const BATCH: usize = 256;

static PUBLISH: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("publish.lua")));
static READ: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("read.lua")));

/// The client for one Redis, and the names of its keys.
pub(super) struct Store {
    client: Client,
    /// State, log and meta; in one slot of a cluster.
    keys: [String; 3],
    bell: String,
    /// What this process is called; no other has the same.
    pub(super) origin: String,
}

/// A connection that works so far. Dropped at the first error, so that no answer comes late.
pub(super) struct Link<'s> {
    store: &'s Store,
    connection: MultiplexedConnection,
}

/// What was decided since some revision.
pub(super) struct Changes {
    /// Identifies the data of this Redis: it changes when the data is lost. Empty while there is none.
    pub(super) era: String,
    /// The last revision of all.
    pub(super) revision: u64,
    pub(super) time: ServerTime,
    /// A breaker's name, its revision, its entry.
    pub(super) entries: Vec<(Vec<u8>, u64, Vec<u8>)>,
}

/// The server's clock, in microseconds, as it was at least at a moment of ours.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerTime {
    pub(super) micros: u64,
    seen: Instant,
}

/// What became of an offer.
pub(super) enum Answer {
    /// It holds, under this epoch, in the Redis of this era.
    Done(u64, String),
    /// Redis has this entry, at this time of its clock.
    Have(Vec<u8>, u64),
    /// Redis keeps enough already.
    Full,
    /// It came too late to be taken.
    Late,
}

impl Changes {
    pub(super) fn is_all(&self) -> bool {
        self.entries.len() < BATCH
    }
}

impl Store {
    pub(super) fn new(info: ConnectionInfo, namespace: &str, origin: String) -> RedisResult<Self> {
        // Only the third version of the protocol rings a bell on the connection that asks.
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let client = Client::open(info.set_redis_settings(settings))?;
        let key = |what: &str| format!("tr-breaker:{{{namespace}}}:v{VERSION}:{what}");
        let keys = [key("state"), key("log"), key("meta")];
        Ok(Self { client, keys, bell: key("bell"), origin })
    }

    /// Where it is, without the password.
    pub(super) fn addr(&self) -> String {
        self.client.get_connection_info().addr().to_string()
    }

    /// The namespace of its keys.
    pub(super) fn namespace(&self) -> &str {
        let inner = self.bell.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
        inner.map_or("", |(namespace, _)| namespace)
    }

    pub(super) async fn connect(&self, changed: Arc<ChangedBreakers>) -> RedisResult<Link<'_>> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout(Some(RESPONSE))
            // Whatever it says, and also that the connection is lost: time to look.
            .set_push_sender(move |_| {
                changed.notify.notify_one();
                Ok::<(), Infallible>(())
            });
        let mut connection =
            self.client.get_multiplexed_async_connection_with_config(&config).await?;
        connection.subscribe(&self.bell).await?;
        Ok(Link { store: self, connection })
    }
}

impl Link<'_> {
    /// What was decided since `revision`.
    pub(super) async fn read(&mut self, revision: u64) -> RedisResult<Changes> {
        let mut script = READ.prepare_invoke();
        for key in &self.store.keys {
            script.key(key);
        }
        script.arg(revision).arg(BATCH).arg(TTL.as_millis() as u64);
        let (era, revision, micros, entries) = script.invoke_async(&mut self.connection).await?;
        let seen = crate::clock::now();
        Ok(Changes { era, revision, time: ServerTime { micros, seen }, entries })
    }

    pub(super) async fn publish(
        &mut self,
        name: &str,
        offer: &Offer,
        time: ServerTime,
    ) -> RedisResult<Answer> {
        let (state, mode) = offer.decision.words();
        let micros = |duration: Duration| duration.min(TTL).as_micros() as u64;
        let elapsed = crate::clock::now().saturating_duration_since(time.seen);
        let latest = time.micros + micros(elapsed) + micros(LATEST);
        let mut script = PUBLISH.prepare_invoke();
        for key in &self.store.keys {
            script.key(key);
        }
        script.arg(name).arg(if offer.is_new { "new" } else { "known" }).arg(offer.epoch);
        script.arg(latest).arg(micros(offer.age)).arg(micros(offer.decision.left()));
        script.arg(state).arg(mode).arg(&self.store.origin).arg(&self.store.bell);
        script.arg(TTL.as_millis() as u64).arg(MAX_BREAKERS).arg(KEEP.as_micros() as u64);
        let answer: Vec<Vec<u8>> = script.invoke_async(&mut self.connection).await?;
        let text = |at: usize| String::from_utf8(answer.get(at)?.clone()).ok();
        let number = |at: usize| text(at)?.parse().ok();
        let read = match answer.first().map(|word| &**word) {
            Some(b"done") => number(1).zip(text(2)).map(|(epoch, era)| Answer::Done(epoch, era)),
            Some(b"have") => {
                answer.get(1).cloned().zip(number(2)).map(|(e, at)| Answer::Have(e, at))
            }
            Some(b"full") => Some(Answer::Full),
            Some(b"late") => Some(Answer::Late),
            _ => None,
        };
        read.ok_or_else(|| {
            RedisError::from((redis::ErrorKind::UnexpectedReturnType, "no answer of ours"))
        })
    }
}
