//! Writes sessions to a store as logs, and handles lost and unconfirmed writes.
//!
//! All changes of a session since its last write become one entry. Writers of a session are
//! serialized: the first one sends the changes of all, and the others find them sent. An
//! unconfirmed entry is sent again unchanged before anything else, so dropping a future neither
//! loses nor duplicates a change.
mod cycle;
mod guard;
mod load;
mod manage;
mod slot;

use crate::{
    session::{
        CycleId, Session,
        journal::{Batch, Change, encode},
    },
    store::{Entry, Revision, SessionStore, StoreError, StoreErrorKind},
};
use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};
use tr_core::{WallClock, internal::lock};

/// How often a call is started or recorded again after other writers' changes.
const TRIES: u32 = 8;

/// The store connection that the sessions of a process share.
pub(crate) struct Remote {
    pub(crate) store: Arc<dyn SessionStore>,
    clock: Arc<dyn WallClock>,
    /// Distinguishes this process's cycles from those of others.
    pub(crate) driver: u64,
    stamps: AtomicU64,
}

/// The log of one session.
pub(crate) struct Log {
    session: Box<str>,
    remote: Arc<Remote>,
    writer: tokio::sync::Mutex<Writer>,
    /// Set after another writer's change: this copy is not written any more.
    lost: OnceLock<LostChanges>,
    /// The error that the next write must report, because an earlier copy was lost with other
    /// changes.
    owed: Mutex<Option<StoreError>>,
    /// Cycles whose futures are alive.
    live: Mutex<Vec<CycleId>>,
}

/// The stored head, and the entry being written.
struct Writer {
    head: Option<Revision>,
    unsent: Option<UnsentEntry>,
    /// The last batch of changes that is written.
    written: u64,
}

/// An entry that is not sent, or not confirmed.
struct UnsentEntry {
    entry: Entry,
    holds_more: bool,
    /// The batch of changes in it.
    batch: u64,
}

/// Changes that are not known to be written.
struct Unwritten {
    error: StoreError,
    /// The entry with these changes, if it was sent.
    sent: Option<Revision>,
}

struct LostChanges {
    head: Option<Revision>,
    /// Whether changes were lost that no call makes again.
    with_more: bool,
    is_reported: AtomicBool,
}

impl Remote {
    pub(crate) fn new(store: Arc<dyn SessionStore>, clock: Arc<dyn WallClock>) -> Self {
        let random = RandomState::new();
        let stamps = AtomicU64::new(random.hash_one("stamps"));
        Self { store, clock, driver: random.hash_one("driver"), stamps }
    }

    /// The revision after `head`.
    fn next(&self, head: Option<Revision>) -> Revision {
        let number = head.map_or(1, |head| head.number + 1);
        let drawn = self.stamps.fetch_add(1, Relaxed);
        Revision { number, stamp: self.driver.rotate_left(32) ^ drawn }
    }
}

impl Log {
    pub(crate) fn new(session: &str, remote: Arc<Remote>, head: Option<Revision>) -> Self {
        Self {
            session: session.into(),
            remote,
            writer: Writer { head, unsent: None, written: 0 }.into(),
            lost: OnceLock::new(),
            owed: Mutex::default(),
            live: Mutex::default(),
        }
    }

    /// Whether another writer changed the session.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.get().is_some()
    }

    /// Whether all changes are written and no write is running.
    pub(crate) fn is_written(&self, session: &Session) -> bool {
        let is_sent = |writer: &Writer| writer.unsent.is_none();
        !session.has_changes() && self.writer.try_lock().is_ok_and(|writer| is_sent(&writer))
    }

    /// Writes pending changes. Returns at once if there are none.
    pub(crate) async fn flush(&self, session: &Mutex<Session>) -> Result<(), StoreError> {
        self.tell()?;
        let batch = lock(session).next_batch();
        let end = self.write(session, batch).await.map_err(|unwritten| unwritten.error);
        if let (Err(_), Some(lost)) = (&end, self.lost.get()) {
            lost.is_reported.store(true, Relaxed);
        }
        end
    }

    /// Writes changes up to this batch.
    async fn write(&self, session: &Mutex<Session>, batch: u64) -> Result<(), Unwritten> {
        let mut writer = self.writer.lock().await;
        if writer.written >= batch {
            return Ok(());
        }
        let mut sent = self.send(&mut writer, session).await;
        if sent.is_ok() && writer.written < batch && self.take(&mut writer, session) {
            sent = self.send(&mut writer, session).await;
        }
        let has_these = |unsent: &&UnsentEntry| unsent.batch >= batch;
        sent.map_err(|error| Unwritten {
            error,
            sent: writer.unsent.as_ref().filter(has_these).map(|it| it.entry.revision),
        })
    }

    /// Makes an entry of the pending changes; returns whether there were any.
    fn take(&self, writer: &mut Writer, session: &Mutex<Session>) -> bool {
        let Some(Batch { changes, holds_more, number }) = lock(session).take_changes() else {
            return false;
        };
        let entry = self.entry(self.remote.next(writer.head), &changes);
        writer.unsent = Some(UnsentEntry { entry, holds_more, batch: number });
        true
    }

    fn entry(&self, revision: Revision, changes: &[Change]) -> Entry {
        let body = encode(&self.session, revision, changes);
        Entry { revision, at: self.remote.clock.unix_ms(), body }
    }

    /// Sends the unconfirmed entry.
    async fn send(&self, writer: &mut Writer, session: &Mutex<Session>) -> Result<(), StoreError> {
        if let Some(lost) = self.lost.get() {
            return Err(StoreError::conflict(lost.head));
        }
        let Some(UnsentEntry { entry, batch, .. }) = &writer.unsent else { return Ok(()) };
        match self.remote.store.append(&self.session, writer.head, entry).await {
            Ok(()) => {
                (writer.head, writer.written) = (Some(entry.revision), *batch);
                lock(session).holds_entry(entry.revision);
                writer.unsent = None;
                Ok(())
            }
            Err(error) => {
                if let StoreErrorKind::Conflict { head } = error.kind() {
                    let held_more = writer.unsent.as_ref().is_some_and(|it| it.holds_more);
                    let with_more = held_more || lock(session).holds_more();
                    let is_reported = AtomicBool::new(false);
                    drop(self.lost.set(LostChanges { head, with_more, is_reported }));
                }
                Err(error)
            }
        }
    }

    pub(crate) fn set_live(&self, id: CycleId) {
        lock(&self.live).push(id);
    }

    pub(crate) fn unset_live(&self, id: CycleId) {
        lock(&self.live).retain(|live| *live != id);
    }
}
