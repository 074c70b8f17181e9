//! The store of the records of calls: opened at the start, closed at the end.
use super::{
    record_file,
    records::{Place, RecordsCommand, default_file, place_of},
    unusable::Unusable,
};
use crate::files::beside;
use anyhow::{Context as _, anyhow, bail};
use std::{
    error::Error,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::time::timeout;
use tool_reliability::{
    idempotency::{
        self, IdempotencyLayer, StoreHandle,
        redis::Redis,
        sqlite::{self, ErrorKind, Sqlite},
        store::{RecordStore, SealingKey, StoreError, StoreErrorKind},
    },
    telemetry::TARGET,
};
use tr_core::{ToolOutcome, printable};

/// How long the start waits for another process's lock on the file.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long the end waits for the file to be closed.
const GRACE: Duration = Duration::from_secs(5);

/// A store of records that outlive the guard.
#[derive(Clone, Debug)]
pub(crate) enum Store {
    File(Sqlite),
    /// The default file, which cannot be used.
    Unusable(Arc<Unusable>),
    Redis(Arc<Redis>),
}

impl Store {
    /// What a layer keeps its records in.
    pub(crate) fn shared(&self) -> Arc<dyn RecordStore> {
        match self {
            Self::File(file) => Arc::new(file.clone()),
            Self::Unusable(file) => file.clone(),
            Self::Redis(redis) => redis.clone(),
        }
    }

    /// What a person or a program finds in it; records that are encrypted, with this key.
    pub(crate) fn records(
        &self,
        key: Option<SealingKey>,
    ) -> anyhow::Result<StoreHandle<ToolOutcome>> {
        let mut layer = IdempotencyLayer::builder().shared_store(self.shared());
        if let Some(key) = key {
            layer = layer.sealed_with(key);
        }
        layer.build()?.handle().in_store().context("the layer has a store")
    }

    /// Closes the file, after all calls have ended: the last guard of a file leaves all records in that one file.
    pub(crate) async fn close(&self) {
        let closed = async {
            match self {
                Self::File(file) => file.close().await,
                Self::Unusable(file) => file.close().await,
                Self::Redis(_) => {}
            }
        };
        let _ = timeout(GRACE, closed).await;
    }
}

/// The store of records that outlive the guard.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records {
    pub(crate) store: Option<Store>,
    pub(crate) key: Option<SealingKey>,
    pub(crate) keep_answers: bool,
    /// For calls that name no conversation.
    pub(crate) instance: Box<str>,
    /// How long a repeat waits for the call that runs, if not as long as the layer lets it.
    pub(crate) max_wait: Option<Duration>,
}

impl Records {
    /// Makes a layer keep its records there.
    pub(crate) fn keep(self, mut layer: idempotency::Builder) -> idempotency::Builder {
        if let Some(store) = self.store {
            layer = layer
                .shared_store(store.shared())
                .instance(self.instance)
                .keep_answers(self.keep_answers);
        }
        if let Some(max_wait) = self.max_wait {
            layer = layer.max_wait(max_wait);
        }
        match self.key {
            Some(key) => layer.sealed_with(key),
            None => layer,
        }
    }
}

/// Opens the store at `place`, or the default one; `None` for records in memory.
///
/// # Errors
/// If the store was named and cannot be used.
pub(crate) async fn open(place: Option<Place>) -> anyhow::Result<Option<Store>> {
    match place {
        Some(Place::Memory) => Ok(None),
        Some(Place::Redis(url)) => {
            let redis = connected(&url).await.map_err(|error| {
                // The kind of error is about calls. The cause's text has those of its own causes.
                let why =
                    Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
                let advice = match error.is_transient() {
                    true => ": start it, or name another store with --records",
                    false => "",
                };
                anyhow!("the records' server {} cannot be used: {why}{advice}", place_of(&url))
            })?;
            Ok(Some(Store::Redis(Arc::new(redis))))
        }
        Some(Place::File(file)) => match record_file::open(&file, false, PATIENCE).await {
            Ok(store) => Ok(Some(Store::File(store))),
            Err(error) => {
                bail!("records cannot be kept in {}: {}", file.display(), in_full(&error))
            }
        },
        None => by_default().await,
    }
}

/// Connects, and reports on standard error what the server may lose.
async fn connected(url: &str) -> Result<Redis, StoreError> {
    let redis = Redis::builder(url).build()?;
    for warning in redis.check().await? {
        say(&format!("the records' server {}: {warning}", place_of(url)));
    }
    Ok(redis)
}

/// Opens the records at `place` to read them. Only a file of an older version, or an empty one, is migrated, which
/// writes.
///
/// # Errors
/// If they cannot be read.
pub(crate) async fn open_to_read(place: Place) -> anyhow::Result<Option<Store>> {
    let Place::File(file) = &place else { return open(Some(place)).await };
    match record_file::open_to_read(file).await {
        Ok(store) => Ok(Some(Store::File(store))),
        Err(error) if matches!(error.kind(), ErrorKind::Older { .. }) => open(Some(place)).await,
        // Its guard was killed as it made it.
        Err(_) if file.metadata().is_ok_and(|file| file.len() == 0) => open(Some(place)).await,
        Err(error) => {
            bail!("the records in {} cannot be read: {error}", file.display())
        }
    }
}

/// Refuses records that were written with another key, or without one if there is one now. A store that
/// cannot be reached is found out by the calls.
pub(crate) async fn check_key(records: &StoreHandle<ToolOutcome>) -> anyhow::Result<()> {
    match records.check_key().await {
        Err(error) if error.kind() == StoreErrorKind::Refused => {
            let why = Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            bail!("the store of records cannot be used: {why} (--records-key-file)")
        }
        _ => Ok(()),
    }
}

/// The default store. If its file cannot be used, and a call may be recorded in it, none is claimed. Records stay in
/// memory only where there can be no such file.
async fn by_default() -> anyhow::Result<Option<Store>> {
    let opened = match default_file() {
        Ok(file) => record_file::open(&file, true, PATIENCE).await.map_err(|why| (Some(file), why)),
        Err(error) => Err((None, error)),
    };
    let (file, error) = match opened {
        Ok(store) => return Ok(Some(Store::File(store))),
        Err(failed) => failed,
    };
    let Some(file) = file.filter(|file| may_exist(file)) else {
        say(&format!(
            "records stay in memory, and a repeat after the guard's end may run a call twice: {}; name a store with --records",
            in_full(&error)
        ));
        return Ok(None);
    };
    let why = unusable(&file, &error);
    tracing::error!(target: TARGET, event = "records_unusable", file = %file.display(), why);
    say(&format!(
        "{why}. Until then mutating calls with an id are refused, and recorded ones answered as far as their records can be read"
    ));
    Ok(Some(Store::Unusable(Arc::new(Unusable::new(&file, &error).await))))
}

/// Whether the file, or its log, may be there: also where the folder cannot be looked into.
pub(crate) fn may_exist(file: &Path) -> bool {
    let is_absent = |path: &Path| {
        let found = fs::symlink_metadata(path);
        found.is_err_and(|error| {
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        })
    };
    !(is_absent(file) && is_absent(&beside(file, "-wal")))
}

/// Why the default records cannot be used, and what to do about it.
fn unusable(file: &Path, error: &anyhow::Error) -> String {
    let (file, command) = (file.display().to_string(), RecordsCommand::default());
    let why = in_full(error);
    let why = why.strip_prefix(&format!("{file}: ")).unwrap_or(&why);
    format!("the records in {file} cannot be used: {why} ({command} check says what can be read)")
}

/// Opens the default records as a guard does, and writes to them; returns their file.
///
/// # Errors
/// If a guard could not keep its records there.
pub(crate) async fn check_default() -> anyhow::Result<PathBuf> {
    let file = default_file()?;
    let store = match record_file::open(&file, true, PATIENCE).await {
        Ok(store) => store,
        Err(error) => bail!(unusable(&file, &error)),
    };
    let swept = store.sweep().await;
    store.close().await;
    // The error's text has that of its cause.
    swept.map_err(|error| anyhow!("{} cannot be written: {error}", file.display()))?;
    Ok(file)
}

fn in_full(error: &anyhow::Error) -> String {
    match error.downcast_ref::<sqlite::Error>() {
        // Its text has that of its cause.
        Some(error) => error.to_string(),
        None => format!("{error:#}"),
    }
}

fn say(what: &str) {
    eprintln!("tool-guard: {}", printable(what));
}
