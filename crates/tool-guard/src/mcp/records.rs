//! The store of the records of calls, which must outlive the guard.
use super::private;
use crate::{files::Folder, terminal::quoted};
use anyhow::{Context as _, anyhow, bail};
use rustix::fs::OFlags;
use std::{
    env,
    error::Error,
    ffi::{OsStr, OsString},
    fmt, fs, io,
    os::unix::{ffi::OsStrExt as _, fs::DirBuilderExt as _},
    path::{self, Path, PathBuf},
    sync::Arc,
    time::Duration,
};
pub(crate) use tool_reliability::config::RecordPlace as Place;
use tool_reliability::idempotency::{
    self,
    redis::Redis,
    sqlite::{Database, ErrorKind, Sqlite},
    store::{RecordStore, SealingKey, StoreError},
};
use tr_core::{
    canonical::{Digest, Key},
    printable,
};

/// How long a call of unknown outcome blocks its repeats by default: until a person has settled it, or a
/// month.
pub(crate) const UNKNOWN: Duration = Duration::from_secs(30 * 24 * 3600);

/// How long a claim waits for another process's lock: a mutating call that cannot be recorded is refused
/// within 3 s.
const LOCK_WAIT: Duration = Duration::from_millis(800);

/// How many digits of an ID distinguish records.
pub(crate) const SHORT: usize = 12;

/// The place as a word for a shell, without a server's password.
fn word_of(place: &Place) -> String {
    match place {
        Place::Memory => "memory".to_owned(),
        Place::File(file) => quoted(&path::absolute(file).unwrap_or_else(|_| file.clone())),
        Place::Redis(url) => place_of(url),
    }
}

/// The server's address without its password.
fn place_of(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("redis", url));
    let rest = rest.rsplit_once('@').map_or(rest.to_owned(), |(_, at)| format!("***@{at}"));
    quoted(Path::new(&format!("{scheme}://{rest}")))
}

/// The command by which a person reaches the same records, for messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordsCommand(Option<Box<str>>);

impl RecordsCommand {
    /// For the records at `place`; the default ones need no option.
    pub(crate) fn of(place: Option<&Place>) -> Self {
        Self(place.map(|place| word_of(place).into()))
    }
}

impl fmt::Display for RecordsCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tool-guard records")?;
        match &self.0 {
            Some(place) => write!(f, " --records {place}"),
            None => Ok(()),
        }
    }
}

/// Opens the store at `place`, or the default one; `None` for records in memory. If the default store cannot
/// be used, the guard says so, and records stay in memory.
///
/// # Errors
/// If the store was named and cannot be used.
pub(crate) async fn open(place: Option<Place>) -> anyhow::Result<Option<Arc<dyn RecordStore>>> {
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
            Ok(Some(Arc::new(redis)))
        }
        Some(Place::File(file)) => {
            let store = sqlite(&file, false).await;
            let store =
                store.with_context(|| format!("records cannot be kept in {}", file.display()))?;
            Ok(Some(Arc::new(store)))
        }
        None => match by_default().await {
            Ok(store) => Ok(Some(Arc::new(store))),
            Err(error) => {
                let said = format!(
                    "records stay in memory, and a repeat after the guard's end may run a call twice: {error:#}; name a store with --records"
                );
                eprintln!("tool-guard: {}", printable(&said));
                Ok(None)
            }
        },
    }
}

/// Connects, and reports on standard error what the server may lose.
async fn connected(url: &str) -> Result<Redis, StoreError> {
    let redis = Redis::builder(url).build()?;
    for warning in redis.check().await? {
        let said = format!("the records' server {}: {warning}", place_of(url));
        eprintln!("tool-guard: {}", printable(&said));
    }
    Ok(redis)
}

/// Opens the records at `place` to read them: nothing is written, so a full disk or another process's lock
/// does not matter. Only a file of an older version, or an empty one, is migrated, which writes.
///
/// # Errors
/// If they cannot be read.
pub(crate) async fn open_to_read(place: Place) -> anyhow::Result<Option<Arc<dyn RecordStore>>> {
    let Place::File(file) = &place else { return open(Some(place)).await };
    let read = async {
        let database = Database::builder(file).lock_wait(LOCK_WAIT).read_only().open().await?;
        Sqlite::builder().owners(beside(file, ".guards")).on(database).await
    };
    match read.await {
        Ok(store) => Ok(Some(Arc::new(store))),
        Err(error) if matches!(error.kind(), ErrorKind::Older { .. }) => open(Some(place)).await,
        // Its guard was killed as it made it.
        Err(_) if file.metadata().is_ok_and(|file| file.len() == 0) => open(Some(place)).await,
        Err(error) => {
            bail!("the records in {} cannot be read: {error}", file.display())
        }
    }
}

async fn by_default() -> anyhow::Result<Sqlite> {
    let file = default_file()?;
    sqlite(&file, true).await.with_context(|| format!("{} cannot be used", file.display()))
}

/// Opens the default records as a guard does, and writes to them; returns their file.
///
/// # Errors
/// If a guard could not keep its records there.
pub(crate) async fn check_default() -> anyhow::Result<PathBuf> {
    let swept = by_default().await?.sweep().await;
    let file = default_file()?;
    // The error's text has that of its cause.
    swept.map_err(|error| anyhow!("{} cannot be written: {error}", file.display()))?;
    Ok(file)
}

/// `$XDG_STATE_HOME/tool-guard/records.db`.
pub(crate) fn default_file() -> anyhow::Result<PathBuf> {
    in_state("records.db", ", or give --records")
}

/// A file of this program in the user's state folder.
pub(super) fn in_state(name: &str, elsewhere: &str) -> anyhow::Result<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".local/state")))
        .ok_or_else(|| anyhow!("no folder for {name} is known: set XDG_STATE_HOME or HOME to an absolute path{elsewhere}"))?;
    Ok(state.join("tool-guard").join(name))
}

/// Opens the SQLite file; creates it with mode 0600 if it does not exist.
async fn sqlite(file: &Path, is_default: bool) -> anyhow::Result<Sqlite> {
    if let Some(folder) = file.parent().filter(|folder| *folder != Path::new("")) {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let is_new = make(file, is_default)?;
    let opened = async {
        let database = Database::builder(file).lock_wait(LOCK_WAIT).open().await?;
        Sqlite::builder().owners(beside(file, ".guards")).on(database).await
    };
    // The error's text has that of its cause.
    let store = opened.await.map_err(|error| anyhow!("{error}"))?;
    if is_new {
        let place = Place::File(file.to_owned());
        let command = RecordsCommand::of((!is_default).then_some(&place));
        let said = format!(
            "keeps the mutating calls that have an id, with their answers, in {} (mode 0600): settled ones for 24 h, those of unknown outcome for 30 days. --records memory keeps none; {command} list shows them",
            file.display()
        );
        eprintln!("tool-guard: {}", printable(&said));
    }
    Ok(store)
}

/// The store of records that outlive the guard.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) store: Option<Arc<dyn RecordStore>>,
    pub(crate) key: Option<SealingKey>,
    pub(crate) keep_answers: bool,
    /// For calls that name no conversation.
    pub(crate) instance: Box<str>,
}

impl Records {
    /// Makes a layer keep its records there.
    pub(crate) fn keep(self, mut layer: idempotency::Builder) -> idempotency::Builder {
        if let Some(store) = self.store {
            layer =
                layer.shared_store(store).instance(self.instance).keep_answers(self.keep_answers);
        }
        match self.key {
            Some(key) => layer.sealed_with(key),
            None => layer,
        }
    }
}

/// The beginning of a record's ID that messages show.
pub(crate) fn short(key: &Key) -> String {
    let mut text = key.to_string();
    text.truncate(SHORT);
    text
}

/// The alternative to a file of records that other users can write.
const ELSEWHERE: &str = "name a file in a folder of your own (--records)";

/// Creates the file with mode 0600; `false` if it exists. A link is not followed, and a file that another
/// user can write is refused.
fn make(file: &Path, is_default: bool) -> anyhow::Result<bool> {
    let (folder, name) = Folder::of(file)?;
    if is_default {
        private::close(&folder)?;
    }
    let (open, is_new) = match folder.open_file(&name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
    {
        Ok(open) => (open, true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            (folder.open_file(&name, OFlags::RDWR)?, false)
        }
        Err(error) => return Err(error.into()),
    };
    if let Err(error) = private::refuse_others(&folder, file, &open, ELSEWHERE) {
        if is_new {
            folder.remove(&name);
        }
        return Err(error);
    }
    Ok(is_new)
}

fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    file.with_file_name(name)
}

/// A name for the server that this command starts: the same command has the same name in every connection.
pub(crate) fn name_of(command: &[OsString]) -> String {
    let mut whole = Vec::new();
    for part in command {
        let part = OsStr::as_bytes(part);
        whole.extend_from_slice(&(part.len() as u64).to_le_bytes());
        whole.extend_from_slice(part);
    }
    format!("command-{}", &Digest::of_bytes(whole).to_string()[..32])
}

/// The key with which records are sealed.
pub(crate) fn key(file: &Path) -> anyhow::Result<SealingKey> {
    Ok(SealingKey::new(1, secret_in(file)?))
}

/// A secret: 64 hexadecimal digits in a file that only its user can read.
pub(crate) fn secret_in(file: &Path) -> anyhow::Result<[u8; 32]> {
    let read = || -> anyhow::Result<[u8; 32]> {
        let (folder, name) = Folder::of(file)?;
        let held = folder.open_file(&name, OFlags::RDONLY)?;
        let mode = std::os::unix::fs::MetadataExt::mode(&held.metadata()?);
        if mode & 0o077 != 0 {
            bail!("other users can read it: run chmod 600 on it");
        }
        let mut text = String::new();
        io::Read::read_to_string(&mut io::Read::take(held, 1024), &mut text)?;
        let digest: Digest = text.trim().parse().map_err(|_| {
            anyhow!("expected 64 hexadecimal digits, such as those of: openssl rand -hex 32")
        })?;
        Ok(*digest.as_bytes())
    };
    read().with_context(|| format!("the file {} cannot be used", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_the_records_unless_they_are_the_default_ones() {
        let command = |place: &str| RecordsCommand::of(Some(&place.parse().unwrap())).to_string();
        assert_eq!(RecordsCommand::default().to_string(), "tool-guard records");
        assert_eq!(command("/a b/c.db"), "tool-guard records --records '/a b/c.db'");
        assert!(command("c.db").ends_with("/c.db") && command("c.db").contains("--records /"));
        assert_eq!(command("redis://h:1/2"), "tool-guard records --records redis://h:1/2");
        let hidden = command("rediss://user:p@ss/w@h:1");
        assert_eq!(hidden, "tool-guard records --records 'rediss://***@h:1'");
    }

    #[test]
    fn a_command_is_named_by_its_words_and_where_they_end() {
        let name = |words: &[&str]| name_of(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(name(&["npx", "pay"]), name(&["npx", "pay"]));
        assert_ne!(name(&["npx", "pay"]), name(&["npxpay"]));
        assert_ne!(name(&["a", "bc"]), name(&["ab", "c"]));
    }
}
