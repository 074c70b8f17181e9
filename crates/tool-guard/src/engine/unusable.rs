//! The default records while their file cannot be used. A call may be recorded in it, so none is claimed: what can be
//! read is replayed, all others are refused. A claim tries the file again, so that the guard goes on once a person has
//! mended it.
use super::record_file;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{sync::Mutex, time::Instant};
use tool_reliability::idempotency::{
    StateCount,
    sqlite::{Error, Sqlite},
    store::{
        Change, ClaimRequest, Claimed, Listing, Query, RecordStore, Seen, StoreError, StoreFuture,
        Stored,
    },
};
use tr_core::{canonical::Key, causes};

/// How long after a failure the file is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// Records in a file that could not be used when the guard started.
pub(crate) struct Unusable {
    file: PathBuf,
    standing: Mutex<Standing>,
}

/// What is known of the file.
struct Standing {
    /// Open, or why not.
    store: Result<Sqlite, Refused>,
    /// Open to be read.
    reader: Option<Sqlite>,
    tried: Instant,
}

/// Why no call is claimed, in words for the model: it learns neither a path nor a command.
#[derive(Clone, Debug, thiserror::Error)]
#[error("earlier calls may be recorded in a file that cannot be used now ({0}): ask the user")]
struct Refused(String);

impl Refused {
    fn because(error: &anyhow::Error) -> Self {
        let sqlite = causes(&**error).find_map(|cause| cause.downcast_ref::<Error>());
        Self(match sqlite {
            Some(error) => error.kind().what().to_owned(),
            None => "it is not its user's alone, or not a file".to_owned(),
        })
    }
}

impl Unusable {
    /// For a file that cannot be used, because of `error`.
    pub(super) async fn new(file: &Path, error: &anyhow::Error) -> Self {
        // What another user can write is not read, either.
        let is_trusted = causes(&**error).any(<dyn std::error::Error>::is::<Error>);
        let reader = match is_trusted {
            true => record_file::open_to_read(file).await.ok(),
            false => None,
        };
        let store = Err(Refused::because(error));
        let standing = Standing { store, reader, tried: Instant::now() };
        Self { file: file.to_owned(), standing: Mutex::new(standing) }
    }

    /// Closes the file.
    pub(super) async fn close(&self) {
        let standing = self.standing.lock().await;
        for store in standing.store.iter().chain(&standing.reader) {
            store.close().await;
        }
    }

    /// The store, if the file can be used by now; else why not, and what can be read.
    async fn tried(&self) -> Result<Sqlite, (Refused, Option<Sqlite>)> {
        let mut standing = self.standing.lock().await;
        if standing.store.is_err() && standing.tried.elapsed() >= AGAIN {
            standing.tried = Instant::now();
            match record_file::open(&self.file, true, Duration::ZERO).await {
                Ok(store) => standing.store = Ok(store),
                Err(error) => standing.store = Err(Refused::because(&error)),
            }
        }
        match &standing.store {
            Ok(store) => Ok(store.clone()),
            Err(refused) => Err((refused.clone(), standing.reader.clone())),
        }
    }

    /// The store, to change it.
    async fn store(&self) -> Result<Sqlite, StoreError> {
        self.tried().await.map_err(|(refused, _)| StoreError::refused(refused))
    }

    /// The store, to read it.
    async fn reader(&self) -> Result<Sqlite, StoreError> {
        match self.tried().await {
            Ok(store) | Err((_, Some(store))) => Ok(store),
            Err((refused, None)) => Err(StoreError::refused(refused)),
        }
    }
}

/// Claims a call in the file; where it cannot be written, only if its record says how it ended.
async fn claim(it: &Unusable, claim: &ClaimRequest) -> Result<Claimed, StoreError> {
    let (refused, reader) = match it.tried().await {
        Ok(store) => return store.claim(claim).await,
        Err(refused) => refused,
    };
    let found = match reader {
        Some(reader) => reader.read(&claim.key).await.ok().flatten(),
        None => None,
    };
    if let Some(found) = found {
        let now = found.now;
        match claim.apply(&mut Some(found), u64::MAX, now) {
            Claimed::Run(_) => {}
            claimed => return Ok(claimed),
        }
    }
    Err(StoreError::refused(refused))
}

/// The operations that the file's own store has, once it can be used (`store`) or read (`reader`).
macro_rules! forwarded {
    ($($by:ident: fn $name:ident($($arg:ident: $type:ty),*) -> $end:ty;)*) => {$(
        fn $name<'s>(&'s self, $($arg: $type),*) -> StoreFuture<'s, $end> {
            Box::pin(async move { self.$by().await?.$name($($arg),*).await })
        }
    )*};
}

impl RecordStore for Unusable {
    fn claim<'s>(&'s self, request: &'s ClaimRequest) -> StoreFuture<'s, Claimed> {
        Box::pin(claim(self, request))
    }

    forwarded! {
        store: fn change(key: &'s Key, change: Change<'s>) -> bool;
        reader: fn read(key: &'s Key) -> Option<Stored>;
        reader: fn watch(key: &'s Key, seen: Seen) -> ();
        reader: fn list(query: &'s Query, limit: usize, is_brief: bool) -> Listing;
        reader: fn count(query: &'s Query) -> u64;
        reader: fn state_counts() -> Vec<StateCount>;
        store: fn flush(query: &'s Query) -> u64;
        store: fn clear(key: &'s Key) -> bool;
        store: fn sweep() -> u64;
        store: fn check() -> Vec<String>;
        reader: fn mark(from: &'s [u8], to: &'s [u8]) -> Vec<u8>;
        reader: fn is_owner_alive(key: &'s Key) -> Option<bool>;
    }
}

tr_core::debug_parts! { Unusable, |it| file = it.file }
