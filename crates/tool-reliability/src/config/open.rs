//! The stores that a configuration names.
use super::apply::session_rules;
use crate::{Builder, ConfigError};
#[cfg(any(feature = "encryption", feature = "sqlite"))]
use std::fs;
use std::{io, path::Path, sync::Arc};
use tr_config::{Config, RecordBodies, RecordPlace, SessionPlace};
use tr_core::internal::at_home;
use tr_idempotency::store::RecordStore;

/// A configuration that is good, and of which no stack could be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The settings of a layer are out of range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A store cannot be opened.
    #[error("`{key}` cannot be used: {why}")]
    Store {
        /// The key that names it.
        key: &'static str,
        /// Why, and what to do.
        why: String,
    },
    /// The key that seals records cannot be read.
    #[error("`records.key_file` cannot be used: {0}")]
    KeyFile(#[source] io::Error),
}

/// The stores of a configuration, opened.
#[derive(Debug, Default)]
pub(super) struct Stores {
    records: Option<Arc<dyn RecordStore>>,
    sessions: Option<Sessions>,
    #[cfg(feature = "encryption")]
    seal: Option<tr_idempotency::store::SealingKey>,
    /// What a server may lose.
    pub(super) warnings: Vec<String>,
}

type Sessions = Arc<dyn tr_integrity::store::SessionStore>;

impl Stores {
    pub(super) async fn open(config: &Config) -> Result<Self, OpenError> {
        let mut stores = Self::default();
        stores.records = match &config.records.place {
            Some(RecordPlace::File(file)) => Some(records_in_file(&at_home(file)).await?),
            Some(RecordPlace::Redis(url)) => {
                let (store, warnings) = records_in_redis(url).await?;
                stores.warnings = warnings;
                Some(store)
            }
            Some(RecordPlace::Memory) | None => None,
        };
        if let Some(SessionPlace::File(file)) =
            config.sessions.as_ref().and_then(|sessions| sessions.place.as_ref())
        {
            stores.sessions = Some(sessions_in_file(&at_home(file)).await?);
        }
        if let Some(file) = config.records.key_file.as_deref() {
            stores.read_key(&at_home(Path::new(file)))?;
        }
        Ok(stores)
    }

    /// Gives a stack these stores.
    pub(super) fn keep(self, config: &Config, mut builder: Builder) -> Builder {
        let records = &config.records;
        if let Some(store) = self.records {
            let keeps_answers = records.bodies != Some(RecordBodies::Digest);
            builder = builder.idempotency(|layer| {
                let layer = layer.shared_store(store).keep_answers(keeps_answers);
                set!(layer, instance = records.name.as_deref())
            });
        }
        #[cfg(feature = "encryption")]
        if let Some(key) = self.seal {
            builder = builder.idempotency(|layer| layer.sealed_with(key));
        }
        if let Some((store, sessions)) = self.sessions.zip(config.sessions.as_ref()) {
            let sessions =
                builder.faults.gather(session_rules(sessions).shared_store(store).build());
            builder = set!(builder, sessions = sessions);
        }
        builder
    }

    #[cfg(feature = "encryption")]
    fn read_key(&mut self, file: &Path) -> Result<(), OpenError> {
        let key = read_key(file).map_err(OpenError::KeyFile)?;
        self.seal = Some(tr_idempotency::store::SealingKey::new(1, key));
        Ok(())
    }

    #[cfg(not(feature = "encryption"))]
    fn read_key(&mut self, _: &Path) -> Result<(), OpenError> {
        let why = "it needs the feature `encryption` of tool-reliability".to_owned();
        Err(OpenError::Store { key: "records.key_file", why })
    }
}

/// A key of 64 hexadecimal digits, in a file that only its user can read.
#[cfg(feature = "encryption")]
fn read_key(file: &Path) -> io::Result<[u8; 32]> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if fs::metadata(file)?.permissions().mode() & 0o077 != 0 {
            return Err(io::Error::other("other users can read it: run chmod 600 on it"));
        }
    }
    let text = fs::read_to_string(file)?;
    let digest: tr_core::canonical::Digest = text.trim().parse().map_err(|_| {
        io::Error::other("expected 64 hexadecimal digits, such as those of: openssl rand -hex 32")
    })?;
    Ok(*digest.as_bytes())
}

#[cfg(feature = "sqlite")]
async fn records_in_file(file: &Path) -> Result<Arc<dyn RecordStore>, OpenError> {
    folder(file, "records.where")?;
    let opened = tr_idempotency::sqlite::Sqlite::open(file).await;
    Ok(Arc::new(opened.map_err(|error| store("records.where", &error))?))
}

#[cfg(feature = "sqlite")]
async fn sessions_in_file(file: &Path) -> Result<Sessions, OpenError> {
    folder(file, "sessions.where")?;
    let opened = tr_integrity::sqlite::Sqlite::open(file).await;
    Ok(Arc::new(opened.map_err(|error| store("sessions.where", &error))?))
}

/// Makes the file's folder, for its user alone.
#[cfg(feature = "sqlite")]
fn folder(file: &Path, key: &'static str) -> Result<(), OpenError> {
    let Some(folder) = file.parent().filter(|folder| *folder != Path::new("")) else {
        return Ok(());
    };
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder).map_err(|error| store(key, &error))
}

/// A store, and what it may lose.
type Checked = (Arc<dyn RecordStore>, Vec<String>);

#[cfg(feature = "redis")]
async fn records_in_redis(url: &str) -> Result<Checked, OpenError> {
    let connect = async {
        let redis = tr_idempotency::redis::Redis::builder(url).build()?;
        let warnings = redis.check().await?;
        Ok::<_, tr_idempotency::store::StoreError>((redis, warnings))
    };
    // The kind of error is about calls; its cause says why, and never shows the address's password.
    let (redis, warnings) = connect.await.map_err(|error| {
        let cause = std::error::Error::source(&error);
        let why = cause.map_or_else(|| error.to_string(), ToString::to_string);
        store("records.where", &why)
    })?;
    Ok((Arc::new(redis), warnings))
}

#[cfg(not(feature = "sqlite"))]
async fn records_in_file(_: &Path) -> Result<Arc<dyn RecordStore>, OpenError> {
    Err(store("records.where", &SQLITE))
}

#[cfg(not(feature = "sqlite"))]
async fn sessions_in_file(_: &Path) -> Result<Sessions, OpenError> {
    Err(store("sessions.where", &SQLITE))
}

#[cfg(not(feature = "sqlite"))]
const SQLITE: &str = "a file needs the feature `sqlite` of tool-reliability";

#[cfg(not(feature = "redis"))]
async fn records_in_redis(_: &str) -> Result<Checked, OpenError> {
    Err(store("records.where", &"Redis needs the feature `redis` of tool-reliability"))
}

fn store(key: &'static str, why: &dyn std::fmt::Display) -> OpenError {
    OpenError::Store { key, why: why.to_string() }
}
