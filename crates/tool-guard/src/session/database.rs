//! A database of durable sessions, as `tr-integrity` writes it.
use super::{
    document::{Document, messages::Messages},
    stored::{NotReplaced, SessionDatabase},
    verdict::Failure,
};
use crate::files::{CliError, writer_of};
use std::{
    path::{Path, PathBuf},
    rc::Rc,
};
use tokio::runtime::{self, Runtime};
use tr_integrity::{
    Layer0Config, Operation, Session, Sessions,
    sqlite::{Error, ErrorKind, Sqlite},
    store::{SessionStore as _, StoreError, StoreErrorKind},
};
use tr_transcript::Format;

/// The page size for listing sessions.
const PAGE: usize = 1_000;

/// An open database. It is closed on drop, so that SQLite removes its auxiliary files.
pub(crate) struct Database {
    /// The path with all links resolved.
    file: PathBuf,
    runtime: Runtime,
    store: Sqlite,
    sessions: Sessions,
}

impl Database {
    /// Opens a database for reading, next to its writers. Does not change it.
    pub(crate) fn open(file: &Path) -> Result<Self, Failure> {
        Self::opened(file, Sqlite::open_read_only)
    }

    /// Opens a database to change one of its sessions. Refuses if a call may be running in that
    /// session.
    fn open_to_change(file: &Path, id: &str) -> Result<Self, Failure> {
        let database = Self::opened(file, Sqlite::open)?;
        let session = database.session(id)?;
        let running = session.cycles().iter().filter(|cycle| !cycle.abandoned);
        let running: Vec<_> = running.map(|cycle| &*cycle.tool_use.id).collect();
        if !running.is_empty()
            && let Some(other) = writer_of(file)
        {
            let what = format!(
                "has a running tool call, {}, and {other} has the database open; nothing was changed",
                running.join(", ")
            );
            return Err(
                CliError::new(what, "wait until the call has ended, or stop that program").into()
            );
        }
        let loaded = database.runtime.block_on(database.sessions.load(id));
        loaded.map_err(|error| cli_error(&database.file, &error))?;
        Ok(database)
    }

    fn opened<F>(file: &Path, open: impl FnOnce(PathBuf) -> F) -> Result<Self, Failure>
    where
        F: Future<Output = Result<Sqlite, Error>>,
    {
        let reading = |error| CliError::reading(file, &error);
        // Backups and open file descriptors refer to the resolved path.
        let file = file.canonicalize().map_err(reading)?;
        let runtime = runtime::Builder::new_current_thread().build().map_err(reading)?;
        let store = runtime.block_on(open(file.clone())).map_err(|error| match error.kind() {
            ErrorKind::Foreign => Failure::NoSession("it is another program's database".into()),
            ErrorKind::Older { found: 0, .. } => {
                Failure::NoSession("it is a database without sessions".into())
            }
            _ => of_engine(&file, &error).into(),
        })?;
        // The owner decides how many checkpoints are kept, so this command prunes none.
        let mut config = Layer0Config::default();
        config.checkpoint_retention = 10_000;
        let sessions = Sessions::builder(Format::AnthropicMessages).config(config);
        let sessions = sessions.store(store.clone()).build().expect("the configuration is valid");
        Ok(Self { file, runtime, store, sessions })
    }

    /// A copy of a session as it is stored. A call whose process died is settled in it when the
    /// session is written.
    fn session(&self, id: &str) -> Result<Session, CliError> {
        let stored = self.runtime.block_on(self.sessions.stored(id));
        let help = "there is nothing left to do; check the database";
        let stored = stored.map_err(|error| cli_error(&self.file, &error))?;
        stored.ok_or_else(|| CliError::new("was deleted meanwhile", help))
    }
}

impl SessionDatabase for Database {
    fn file(&self) -> &Path {
        &self.file
    }

    fn ids(&self) -> Result<Vec<String>, CliError> {
        let mut ids: Vec<String> = Vec::new();
        loop {
            let page = self.store.list(ids.last().map(String::as_str), PAGE);
            let page = self.runtime.block_on(page).map_err(|it| cli_error(&self.file, &it))?;
            let is_last = page.len() < PAGE;
            ids.extend(page.into_iter().map(|head| head.session));
            if is_last {
                return Ok(ids);
            }
        }
    }

    fn content(&self, id: &str) -> Result<Box<dyn Document>, Failure> {
        Ok(Box::new(Messages::stored(self.session(id)?)))
    }

    fn to_change(&self, id: &str) -> Result<Rc<dyn SessionDatabase>, Failure> {
        Ok(Rc::new(Self::open_to_change(&self.file, id)?))
    }

    fn replace(&self, id: &str, _: &dyn Document, after: &dyn Document) -> Result<(), NotReplaced> {
        let edit = after.edit().expect("it was made of what is stored");
        let change = self.sessions.change(id, |session, now| edit.make(session, now));
        let changed = self.runtime.block_on(change).map_err(|error| NotReplaced {
            cli_error: cli_error(&self.file, &error),
            is_uncertain: error.kind() == StoreErrorKind::Uncertain,
        })?;
        Ok(changed.map_err(CliError::from)?)
    }

    fn checkpoint(&self, id: &str) -> Result<String, CliError> {
        let make = self.sessions.change(id, |session, now| {
            let made = session.checkpoint(Operation::Manual, now).id;
            // No operation is running after it, so no failure will roll back to it automatically.
            session.commit(&made, now).map(|()| made.into())
        });
        Ok(self.runtime.block_on(make).map_err(|error| cli_error(&self.file, &error))??)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.runtime.block_on(self.store.close());
    }
}

/// Converts an error of the store for this file.
fn cli_error(file: &Path, error: &StoreError) -> CliError {
    let cause = std::error::Error::source(error);
    let engine = cause.and_then(|cause| cause.downcast_ref::<Error>());
    if let Some(engine) = engine.filter(|engine| *engine.kind() != ErrorKind::Unreadable) {
        return of_engine(file, engine);
    }
    match (error.kind(), cause) {
        (StoreErrorKind::Conflict { .. }, _) => CliError::new(
            "was changed by another program meanwhile; it is as that program left it",
            "run the command again",
        ),
        (StoreErrorKind::Unreadable, Some(cause)) => CliError::new(
            format!("cannot be read: {cause}"),
            "if a newer version wrote it, update tool-guard; if it is damaged, put a backup in its \
             place, or let the agent begin a new session",
        ),
        _ => CliError::new(error.to_string(), "look at the disk, and run the command again"),
    }
}

/// Converts an error of SQLite, with advice.
fn of_engine(file: &Path, error: &Error) -> CliError {
    let cause = std::error::Error::source(error).map(|cause| format!(" ({cause})"));
    let cause = cause.unwrap_or_default();
    let path = file.display();
    match error.kind() {
        ErrorKind::NotFound => CliError::new("cannot be read: no such file", "look at the path"),
        ErrorKind::Denied => CliError::new(
            format!("may not be read or written by you{cause}"),
            format!("run as the user that owns it, who may write its folder too: ls -ld {path}"),
        ),
        ErrorKind::NotADatabase | ErrorKind::Corrupt => CliError::new(
            format!("is a damaged database{cause}"),
            "stop all who use it, keep a copy of it with its -wal and -shm, and see the runbook: \
             The file of records, Damaged",
        ),
        ErrorKind::Newer { found, known, .. } => CliError::new(
            format!("was written by a newer version: its format is {found}, known is {known}"),
            "update tool-guard",
        ),
        ErrorKind::Older { found, known, .. } => CliError::new(
            format!("was written by an older version: its format is {found}, read is {known}"),
            "let the agent open it once with the newer version, or take the older tool-guard",
        ),
        ErrorKind::Statement => CliError::new(
            format!("has other tables than its format says{cause}; it is as it was"),
            "take the version of tool-guard that belongs to the program that wrote it",
        ),
        ErrorKind::Locked => CliError::new(
            format!("is locked by another program{cause}; it is as it was"),
            format!("`fuser {path}` names who has it open; end that program, or its transaction"),
        ),
        ErrorKind::Full => CliError::new(
            "cannot be written: no space is left; it is as it was",
            "free some space, and run the command again",
        ),
        ErrorKind::Io => CliError::new(
            format!("cannot be read or written: the disk failed, or is full{cause}"),
            "free some space, check the disk, and run the command again",
        ),
        ErrorKind::Moved => CliError::new(
            "was moved or replaced meanwhile; nothing was changed",
            "run the command again with the file that is there now",
        ),
        _ => CliError::new(error.to_string(), "look at the disk, and run the command again"),
    }
}
