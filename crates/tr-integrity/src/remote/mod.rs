//! The way to a store: sessions as logs, and what becomes of what was sent.
//!
//! All that happened to a session since it was written last becomes one entry. Who waits for the
//! store waits for one writer at a time: the first sends what all have done, and the others find
//! it sent. What was sent and not answered is sent again, as it was, before anything else: so a
//! future that is dropped loses and doubles nothing.
mod cycle;
mod guard;
mod load;
mod manage;

pub(crate) use cycle::Ended;

use crate::{
    session::{
        CycleId, Session, Sessions, Slot,
        journal::{Change, encode},
    },
    store::{Entry, Revision, SessionStore, StoreError, StoreErrorKind},
};
use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};
use tr_core::WallClock;

/// How often a call is begun or recorded anew because other writers were first.
const TRIES: u32 = 8;

/// What the sessions of a process share on their way to the store.
pub(crate) struct Remote {
    pub(crate) store: Arc<dyn SessionStore>,
    clock: Arc<dyn WallClock>,
    /// Tells this process's cycles from others'.
    pub(crate) driver: u64,
    stamps: AtomicU64,
}

/// One session's way to the store.
pub(crate) struct Log {
    session: Box<str>,
    remote: Arc<Remote>,
    writer: tokio::sync::Mutex<Writer>,
    /// Counts those who want to write.
    tickets: AtomicU64,
    /// Another writer was first: nothing of this copy is kept any more.
    lost: OnceLock<Lost>,
    /// An earlier copy was lost, and those whose changes went with it are still to be told.
    owed: Mutex<Option<StoreError>>,
    /// Cycles whose futures live.
    live: Mutex<Vec<CycleId>>,
}

/// What is written, and what is on its way.
#[derive(Debug)]
struct Writer {
    head: Option<Revision>,
    unsent: Option<Unsent>,
    /// Whose changes are all written: theirs who came up to here.
    served: u64,
}

/// Sent and not answered, or not sent yet.
#[derive(Debug)]
struct Unsent {
    entry: Entry,
    holds_more: bool,
    serves: u64,
}

#[derive(Debug)]
struct Lost {
    head: Option<Revision>,
    /// With changes that nobody makes anew.
    with_more: bool,
    is_told: AtomicBool,
}

impl Remote {
    pub(crate) fn new(store: Arc<dyn SessionStore>, clock: Arc<dyn WallClock>) -> Self {
        let random = RandomState::new();
        let stamps = AtomicU64::new(random.hash_one("stamps"));
        Self { store, clock, driver: random.hash_one("driver"), stamps }
    }

    /// Behind this one.
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
            writer: Writer { head, unsent: None, served: 0 }.into(),
            tickets: AtomicU64::new(0),
            lost: OnceLock::new(),
            owed: Mutex::default(),
            live: Mutex::default(),
        }
    }

    /// Whether another writer was first.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.get().is_some()
    }

    /// Whether all is written, and nobody writes.
    pub(crate) fn is_written(&self, session: &Session) -> bool {
        let is_sent = |writer: &Writer| writer.unsent.is_none();
        !session.has_changes() && self.writer.try_lock().is_ok_and(|writer| is_sent(&writer))
    }

    /// Writes what is not written yet. Ends at once if that is nothing.
    pub(crate) async fn flush(&self, session: &Mutex<Session>) -> Result<(), StoreError> {
        self.tell()?;
        let end = self.write(session).await;
        if let (Err(_), Some(lost)) = (&end, self.lost.get()) {
            lost.is_told.store(true, Relaxed);
        }
        end
    }

    async fn write(&self, session: &Mutex<Session>) -> Result<(), StoreError> {
        let ticket = self.tickets.fetch_add(1, Relaxed) + 1;
        let mut writer = self.writer.lock().await;
        self.send(&mut writer, session).await?;
        if writer.served < ticket && self.take(&mut writer, session) {
            self.send(&mut writer, session).await?;
        }
        Ok(())
    }

    /// Makes an entry of what has happened; whether anything has.
    fn take(&self, writer: &mut Writer, session: &Mutex<Session>) -> bool {
        // Who has a ticket made the changes before it; the lock orders both.
        let (changes, holds_more, serves) = {
            let mut session = lock(session);
            let serves = self.tickets.load(Relaxed);
            let (changes, holds_more) = session.take_changes();
            (changes, holds_more, serves)
        };
        if changes.is_empty() {
            return false;
        }
        let entry = self.entry(self.remote.next(writer.head), &changes);
        writer.unsent = Some(Unsent { entry, holds_more, serves });
        true
    }

    fn entry(&self, revision: Revision, changes: &[Change]) -> Entry {
        let body = encode(&self.session, revision, changes);
        Entry { revision, at: self.remote.clock.unix_ms(), body }
    }

    /// Sends what was not answered.
    async fn send(&self, writer: &mut Writer, session: &Mutex<Session>) -> Result<(), StoreError> {
        if let Some(lost) = self.lost.get() {
            return Err(StoreError::conflict(lost.head));
        }
        let Some(Unsent { entry, serves, .. }) = &writer.unsent else { return Ok(()) };
        match self.remote.store.append(&self.session, writer.head, entry).await {
            Ok(()) => {
                (writer.head, writer.served) = (Some(entry.revision), *serves);
                writer.unsent = None;
                Ok(())
            }
            Err(error) => {
                if let StoreErrorKind::Conflict { head } = error.kind() {
                    let held_more = writer.unsent.as_ref().is_some_and(|it| it.holds_more);
                    let with_more = held_more || lock(session).holds_more();
                    let is_told = AtomicBool::new(false);
                    drop(self.lost.set(Lost { head, with_more, is_told }));
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

impl Slot {
    /// Writes what is not written yet.
    pub(crate) async fn flush(&self) -> Result<(), StoreError> {
        match &self.log {
            Some(log) => log.flush(&self.session).await,
            None => Ok(()),
        }
    }

    /// The store did not take what was to be written; it is written with the next change.
    fn not_recorded(&self, sessions: &Sessions) {
        let note = |session: &mut Session, now| session.note("not_recorded", None, None, now);
        sessions.work_on_cycle(&self.session, note);
    }

    /// Whether nothing was lost to another writer but what will be done anew.
    fn is_alone(&self) -> bool {
        let lost = self.log.as_ref().and_then(|log| log.lost.get());
        lost.is_some_and(|lost| !lost.with_more)
    }
}

/// A panic elsewhere leaves what is locked as it was between two operations.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("session", &self.session).finish_non_exhaustive()
    }
}
