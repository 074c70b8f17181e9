//! The client of a layer's store. The store says under which key its records were written, or that it was none: with
//! another key, nothing gets through its gate. In a sealed store, keys and digests have other names.
use super::{Settings, probe::Prober};
use crate::{
    clock::millis,
    codec::{Found, Names, Place, SealingKey, body::Format},
    local::{notes::RequestNote, table::LocalClaim},
    protocol::{Millis, Token},
    record::{DedupeRecord, StateCount},
    store::{
        Change, ClaimRequest, Claimed, Listing, Query, RecordStore, Seen, Selector, StoreError,
        Stored, UnreadableRecord,
    },
};
use std::{
    collections::HashSet,
    future::Future,
    hash::{BuildHasher, RandomState},
    ops::RangeInclusive,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};
use tr_core::{CallInfo, Effect, Observer, Ran, RecordRef, canonical::Key};

/// A layer's store and its settings.
pub(crate) struct Client<V> {
    pub(crate) gate: Arc<Gate>,
    pub(crate) format: Format<V>,
    pub(crate) settings: Settings,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) probe: Option<Arc<Prober<V>>>,
}

impl<V> Client<V> {
    /// The record as operators see it. Parts that cannot be read are left empty.
    pub(crate) fn shown(&self, stored: &Stored) -> DedupeRecord {
        let record = &stored.record;
        let mut note = RequestNote::read(stored, &self.format.frames).unwrap_or_default();
        note.tool = (&*stored.tool).into();
        let found = Found::body(&stored.key, record);
        let history = self.format.history(&found);
        let (earlier, failure, settled) = history.unwrap_or_default();
        let failure = failure.as_deref();
        DedupeRecord::new(&stored.key, record, &note, &earlier, failure, settled, |at| at)
    }
}

/// An owner's number: random, and not [`BY_HAND`](Token::BY_HAND).
pub(crate) fn new_owner() -> u64 {
    const { assert!(Token::BY_HAND == 0) }
    RandomState::new().hash_one("owner").max(1)
}

tr_core::debug_parts! { Client<V>, |it| gate = it.gate, settings = it.settings, probe = it.probe }

/// A caller's claim, and how long the caller can wait.
pub(crate) struct StoreCall<V> {
    pub(crate) remote: Arc<Client<V>>,
    pub(crate) claim: Arc<ClaimRequest>,
    pub(crate) effect: Effect,
    /// Whether to wait for another process's run.
    pub(super) wait: bool,
    pub(crate) deadline: Option<Instant>,
    /// The longest wait, whatever the deadline; and its end, once the wait has begun.
    pub(super) max_wait: Duration,
    pub(crate) until: Option<Instant>,
    /// Whether the store has reported that another process runs the call, or may have run it.
    pub(super) found: AtomicBool,
}

impl<V> StoreCall<V> {
    /// For a call that is claimed in this process.
    #[cold]
    pub(crate) fn new(
        remote: &Arc<Client<V>>,
        local: &LocalClaim<'_>,
        effect: Effect,
        (info, record): (&CallInfo<'_>, &RecordRef<'_>),
        (deadline, max_wait): (Option<Instant>, Duration),
    ) -> Box<Self> {
        let LocalClaim { id, mutating, again, corrects, ttls, wait, .. } = *local;
        let (key, digest, frames) = (id.key, id.digest, &remote.format.frames);
        let place = Place { key, digest, mutating, epoch: 0, by_hand: false };
        let claim = Arc::new(ClaimRequest {
            key,
            digest,
            mutating,
            again,
            corrects,
            owner: new_owner(),
            ttls,
            tool: info.tool.to_owned(),
            session: record.session.or(info.session).map(|session| frames.session(session)),
            notes: RequestNote::of(info, record).write(&place, frames),
        });
        let (remote, until, found) = (remote.clone(), None, AtomicBool::new(false));
        Box::new(Self { remote, claim, effect, wait, deadline, max_wait, until, found })
    }

    /// Becomes the claim of another owner: the first one was lost before the call started.
    pub(crate) fn claim_again(&mut self) {
        self.claim = Arc::new(ClaimRequest { owner: new_owner(), ..(*self.claim).clone() });
    }

    /// Whether the tool may have run in another process.
    pub(crate) fn ran(&self) -> Ran {
        if self.found.load(Relaxed) { Ran::Unknown } else { Ran::No }
    }

    /// How long this process replays a recorded success without a request.
    pub(crate) fn memory(&self) -> Option<Millis> {
        self.remote.settings.memory.map(millis)
    }
}

/// The mark of a store whose records are not sealed.
const PLAIN: &[u8] = b"plain";

/// Why a store may not be used with a key, or without one.
const NO_KEY: &str =
    "its records are encrypted, and no key was given: give the key with which they were written";
const NOT_ENCRYPTED: &str = "its records are not encrypted, and a key was given: give none, or keep encrypted records \
     in another store";
const UNMARKED: &str = "it has records that do not say whether they are encrypted, and a key was given: keep \
     encrypted records in another store";

/// What a request to the store has, however near the call's deadline is: an end for want of time is not the store's failure.
const LEAST: Duration = Duration::from_millis(100);

/// The most releases, and records of vanished calls, that run at the same time.
const AT_ONCE: usize = 1_024;

/// The most ends that may wait to be recorded later.
const LATER: usize = 1_024;

/// A store behind the check of its key, and what waits for it.
pub(crate) struct Gate {
    store: Arc<dyn RecordStore>,
    seal: Option<SealingKey>,
    /// Set once the key has been found to be the right one: the names in a sealed store.
    names: OnceLock<Option<Names>>,
    /// The timeout of one request.
    patience: Duration,
    pub(super) places: Arc<Semaphore>,
    /// The number of claims that were left to their leases.
    pub(crate) left: AtomicU64,
    pub(super) later: Arc<Semaphore>,
    /// Calls that have ended in this process, with an end that the store has not recorded.
    pub(crate) unrecorded: Mutex<HashSet<Key>>,
}

tr_core::debug_parts! { Gate, |it| store = it.store, seal = it.seal, patience = it.patience }

impl Gate {
    pub(crate) fn new(
        store: Arc<dyn RecordStore>,
        seal: Option<SealingKey>,
        patience: Duration,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            seal,
            names: OnceLock::new(),
            patience,
            places: Arc::new(Semaphore::new(AT_ONCE)),
            left: AtomicU64::new(0),
            later: Arc::new(Semaphore::new(LATER)),
            unrecorded: Mutex::default(),
        })
    }

    /// Runs one request within the store timeout and the deadline, but for 100 ms at least.
    pub(crate) async fn within<T>(
        &self,
        deadline: Option<Instant>,
        request: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let now = Instant::now();
        // The layer that enforces deadlines says that one has passed; a record replays all the same.
        let patience = now + self.patience;
        let until = deadline.map_or(patience, |deadline| deadline.max(now + LEAST).min(patience));
        match timeout_at(until, request).await {
            Ok(end) => end,
            Err(_) => Err(StoreError::uncertain(
                "the store did not reply within its timeout, or before the call's deadline",
            )),
        }
    }

    /// Checks that the store's records were written with this key, or without one as now; marks a new store.
    pub(crate) async fn enter(&self) -> Result<Option<&Names>, StoreError> {
        if self.names.get().is_none() {
            // Several callers may do so at once, since a slow one must not hold up the others.
            let names = self.check_mark().await?;
            let _ = self.names.set(names);
        }
        Ok(self.names.get().and_then(Option::as_ref))
    }

    async fn check_mark(&self) -> Result<Option<Names>, StoreError> {
        let Some(seal) = &self.seal else {
            let mark = self.store.mark(&[], PLAIN).await?;
            // One that is read only may have no mark yet.
            let is_plain = mark == PLAIN || mark.is_empty();
            return if is_plain { Ok(None) } else { Err(StoreError::refused(NO_KEY)) };
        };
        let mark = match self.store.mark(&[], &[]).await? {
            none if none.is_empty() => {
                if self.store.count(&Query::ALL).await? > 0 {
                    return Err(StoreError::refused(UNMARKED));
                }
                self.store.mark(&[], &seal.mark(&seal.names())).await?
            }
            mark => mark,
        };
        if mark.is_empty() {
            return Ok(Some(seal.names())); // It can only be read, and holds nothing.
        }
        if mark == PLAIN {
            return Err(StoreError::refused(NOT_ENCRYPTED));
        }
        let (names, is_current) = seal.open_mark(&mark).map_err(StoreError::refused)?;
        if !is_current {
            // From now on the new key opens it. If another process was faster, it did the same.
            self.store.mark(&mark, &seal.mark(&names)).await?;
        }
        Ok(Some(names))
    }

    /// The name of this key in the store.
    async fn name(&self, key: &Key) -> Result<Key, StoreError> {
        Ok(self.enter().await?.map_or(*key, |names| names.key(key)))
    }

    /// The query in the store's names, and the range of keys that it asks for: names have another order.
    async fn named(
        &self,
        query: &Query,
    ) -> Result<(Query, Option<RangeInclusive<Key>>), StoreError> {
        let mut query = query.clone();
        let Some(names) = self.enter().await? else { return Ok((query, None)) };
        let mut range = None;
        query.selector = match query.selector {
            Selector::Key(key) => Selector::Key(names.key(&key)),
            Selector::Equal(session, digest) => Selector::Equal(session, names.digest(&digest)),
            Selector::Keys(keys) => {
                range = Some(keys);
                Selector::All
            }
            other => other,
        };
        Ok((query, range))
    }
}

/// A record as the layer knows it.
fn shown(names: Option<&Names>, mut stored: Stored) -> Stored {
    if let Some(names) = names {
        stored.key = names.key_of(&stored.key);
        stored.record.digest = names.digest_of(&stored.record.digest);
    }
    stored
}

impl Gate {
    pub(crate) async fn claim(&self, claim: &ClaimRequest) -> Result<Claimed, StoreError> {
        let Some(names) = self.enter().await? else { return self.store.claim(claim).await };
        let (key, digest) = (names.key(&claim.key), names.digest(&claim.digest));
        let claimed = self.store.claim(&ClaimRequest { key, digest, ..claim.clone() }).await?;
        let shown = |stored: Box<Stored>| Box::new(shown(Some(names), *stored));
        Ok(match claimed {
            Claimed::Settled(stored) => Claimed::Settled(shown(stored)),
            Claimed::Unknown(stored) => Claimed::Unknown(shown(stored)),
            other => other,
        })
    }

    pub(crate) async fn change(&self, key: &Key, change: Change<'_>) -> Result<bool, StoreError> {
        self.store.change(&self.name(key).await?, change).await
    }

    pub(crate) async fn read(&self, key: &Key) -> Result<Option<Stored>, StoreError> {
        let names = self.enter().await?;
        let name = names.map_or(*key, |names| names.key(key));
        Ok(self.store.read(&name).await?.map(|stored| shown(names, stored)))
    }

    pub(super) async fn watch(&self, key: &Key, seen: Seen) -> Result<(), StoreError> {
        self.store.watch(&self.name(key).await?, seen).await
    }

    pub(crate) async fn list(
        &self,
        query: &Query,
        limit: usize,
        is_brief: bool,
    ) -> Result<Listing, StoreError> {
        let (named, range) = self.named(query).await?;
        let names = self.enter().await?;
        let most = if range.is_some() { usize::MAX } else { limit };
        let Listing { records, unreadable } = self.store.list(&named, most, is_brief).await?;
        let is_meant = |key: &Key| range.as_ref().is_none_or(|keys| keys.contains(key));
        let records = records.into_iter().map(|stored| shown(names, stored));
        let unreadable = unreadable.into_iter().map(|record| UnreadableRecord {
            key: names.map_or(record.key, |names| names.key_of(&record.key)),
            ..record
        });
        Ok(Listing {
            records: records.filter(|it| is_meant(&it.key)).take(limit).collect(),
            unreadable: unreadable.filter(|it| is_meant(&it.key)).take(limit).collect(),
        })
    }

    /// The selection is by key, session or tool.
    pub(crate) async fn count(&self, query: &Query) -> Result<u64, StoreError> {
        self.store.count(&self.named(query).await?.0).await
    }

    pub(crate) async fn state_counts(&self) -> Result<Vec<StateCount>, StoreError> {
        self.store.state_counts().await
    }

    /// The selection is by key, session or tool.
    pub(crate) async fn flush(&self, query: &Query) -> Result<u64, StoreError> {
        self.store.flush(&self.named(query).await?.0).await
    }

    pub(crate) async fn clear(&self, key: &Key) -> Result<bool, StoreError> {
        self.store.clear(&self.name(key).await?).await
    }

    /// Also marks a sealed store that has lost its mark, as a server does with all that it has.
    pub(crate) async fn sweep(&self) -> Result<u64, StoreError> {
        if let (Some(names), Some(seal)) = (self.enter().await?, &self.seal) {
            self.store.mark(&[], &seal.mark(names)).await?;
        }
        self.store.sweep().await
    }

    pub(crate) async fn check(&self) -> Result<Vec<String>, StoreError> {
        self.enter().await?;
        self.store.check().await
    }

    pub(crate) async fn is_owner_alive(&self, key: &Key) -> Result<Option<bool>, StoreError> {
        self.store.is_owner_alive(&self.name(key).await?).await
    }
}
