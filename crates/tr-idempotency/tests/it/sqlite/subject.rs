//! A SQLite store in a folder of its own, which crashes and passes time as a test wishes.
use std::{
    env, fs,
    path::{Path, PathBuf},
    process,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tr_core::{
    SetClock, SystemClock, WallClock,
    canonical::{Digest, Key},
};
use tr_idempotency::{
    conformance::Subject,
    protocol::Ttls,
    sqlite::{Database, Sqlite},
    store::{ClaimRequest, RecordStore},
};

const NOON: u64 = 1_772_366_400_000;
pub(crate) const HOUR: u64 = 3_600_000;

/// Removed in the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("tr-calls-{}-{}", process::id(), COUNT.fetch_add(1, Relaxed));
        let folder = env::temp_dir().join(name);
        drop(fs::remove_dir_all(&folder));
        fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("calls.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// A time that tests move.
pub(crate) struct Time(Arc<SetClock>);

impl Time {
    pub(crate) fn new() -> Self {
        Self(Arc::new(SetClock::at(NOON)))
    }

    pub(crate) fn an_hour_ago() -> Self {
        Self(Arc::new(SetClock::at(SystemClock.unix_ms() - HOUR)))
    }

    pub(crate) fn clock(&self) -> Arc<dyn WallClock> {
        self.0.clone()
    }

    pub(crate) fn pass(&self, ms: u64) {
        self.0.set(self.0.unix_ms() + ms);
    }

    pub(crate) fn fall_back(&self, ms: u64) {
        self.0.set(self.0.unix_ms() - ms);
    }
}

pub(crate) async fn open(file: &Path, time: &Time, capacity: u64) -> Sqlite {
    let database = Database::open(file).await.unwrap();
    Sqlite::builder().capacity(capacity).clock(time.clock()).on(database).await.unwrap()
}

/// A claim of a mutating call, by an owner of its own.
pub(crate) fn claim(key: &str) -> ClaimRequest {
    static OWNERS: AtomicU64 = AtomicU64::new(1);
    ClaimRequest {
        key: Key::from_bytes(*Digest::of_bytes(key).as_bytes()),
        digest: Digest::of_bytes("params"),
        mutating: true,
        again: false,
        corrects: false,
        owner: OWNERS.fetch_add(1, Relaxed) | u64::from(process::id()) << 32,
        ttls: Ttls { done: 24 * HOUR, failed: HOUR, inflight: 120_000, unknown: 24 * HOUR },
        tool: "pay.card".into(),
        session: Some("s-1".into()),
        notes: Vec::new(),
    }
}

/// What the conformance suite examines.
pub(crate) struct File {
    time: Time,
    at: Mutex<At>,
}

struct At {
    folder: Folder,
    /// Two processes have a connection each; so do these.
    clients: [Sqlite; 2],
    /// Stores of other sizes, and where they are.
    others: Vec<Folder>,
}

impl File {
    pub(crate) async fn new() -> Self {
        let (folder, time) = (Folder::new(), Time::new());
        let clients = Self::clients(&folder, &time).await;
        Self { time, at: Mutex::new(At { folder, clients, others: Vec::new() }) }
    }

    async fn clients(folder: &Folder, time: &Time) -> [Sqlite; 2] {
        [open(&folder.file(), time, 1_000).await, open(&folder.file(), time, 1_000).await]
    }
}

impl Subject for File {
    fn store(&self) -> Arc<dyn RecordStore> {
        Arc::new(self.at.lock().unwrap().clients[0].clone())
    }

    fn another(&self) -> Arc<dyn RecordStore> {
        Arc::new(self.at.lock().unwrap().clients[1].clone())
    }

    async fn with_room_for(&self, records: usize) -> Option<Arc<dyn RecordStore>> {
        let folder = Folder::new();
        let store = open(&folder.file(), &self.time, records as u64).await;
        self.at.lock().unwrap().others.push(folder);
        Some(Arc::new(store))
    }

    /// What a `kill -9` leaves is what the files hold at that moment.
    async fn restart(&self) -> bool {
        let crashed = Folder::new();
        {
            let at = self.at.lock().unwrap();
            for file in ["calls.db", "calls.db-wal"] {
                fs::copy(at.folder.0.join(file), crashed.0.join(file)).unwrap();
            }
        }
        let clients = Self::clients(&crashed, &self.time).await;
        let mut at = self.at.lock().unwrap();
        (at.folder, at.clients) = (crashed, clients);
        true
    }

    async fn pass(&self, time: Duration) {
        self.time.pass(u64::try_from(time.as_millis()).unwrap());
    }
}
