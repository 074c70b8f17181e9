//! The handle of an open database.
use crate::{
    connect::{Durability, Place},
    error::{Error, ErrorKind, Result},
    job::{Pending, job},
    queue::{JobSender, Queue, queue},
    reader,
    schema::Schema,
    writer::Writer,
};
use rusqlite::Connection;
use std::{
    path::{self, Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};
use tokio::sync::oneshot;

/// An open database. A clone is another handle of the same one.
///
/// Writes and reads are closures on a [`rusqlite::Connection`] that run on threads of their own.
/// When the last handle is dropped, pending writes are still made, in the background;
/// [`close`](Self::close) waits for them.
#[derive(Clone, Debug)]
pub struct Database {
    /// `None` if the database is opened read-only.
    writes: Option<JobSender>,
    reads: JobSender,
    path: Arc<Path>,
    durability: Durability,
}

/// How to open a [`Database`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    place: Place,
    limit: usize,
    is_read_only: bool,
}

impl Database {
    /// Opens or creates this file with the default settings; [`builder`](Self::builder) has the
    /// settings.
    ///
    /// # Errors
    /// See [`Builder::open`].
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self> {
        Self::builder(path).open().await
    }

    /// Starts with the defaults: [`Durability::Power`], 5 s for other processes' locks, 10,000
    /// waiting jobs.
    pub fn builder(path: impl Into<PathBuf>) -> Builder {
        let (path, durability) = (path.into(), Durability::default());
        let place =
            Place { path, durability, lock_wait: Duration::from_secs(5), accepts_loss: false };
        Builder { place, limit: 10_000, is_read_only: false }
    }

    /// Migrates one part's tables to the newest format. Await it before they are used.
    ///
    /// A migration is one transaction: if it fails or the process dies, nothing is changed. Several
    /// processes may migrate at once. A database that is opened [read-only](Builder::read_only)
    /// must have the newest format.
    ///
    /// # Errors
    /// [`Newer`](crate::ErrorKind::Newer) if a newer program has written this part,
    /// [`Older`](crate::ErrorKind::Older) if a read-only database has an older format, and the
    /// errors of a write.
    pub fn migrate(&self, schema: Schema) -> Pending<()> {
        if self.is_read_only() {
            return self.read(move |connection| schema.require(connection));
        }
        self.write(move |connection| schema.migrate(connection))
    }

    /// Runs `work` in a transaction that it shares with other writes, and resolves once it is
    /// committed.
    ///
    /// Writes take effect in the order of these calls. If `work` fails or panics, only its own
    /// changes are rolled back. It must not end the transaction or change the connection's
    /// settings, and should be short: all other writes wait for it.
    ///
    /// # Cancellation
    /// This call sends the job; dropping the returned future changes nothing.
    ///
    /// # Errors
    /// What `work` returned, or an [`Error`] if it was not run or not committed.
    pub fn write<T, E, F>(&self, work: F) -> Pending<T, E>
    where
        F: FnOnce(&Connection) -> std::result::Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (job, pending) = job(work);
        match &self.writes {
            Some(writes) => writes.send(job),
            None => job.end(Err(&Error::new(ErrorKind::ReadOnly))),
        }
        pending
    }

    /// Runs `work` on a read-only connection, concurrently with the writes. It reads one snapshot
    /// of the file, not older than the last write that was confirmed before this call.
    ///
    /// # Cancellation
    /// As with [`write`](Self::write).
    ///
    /// # Errors
    /// What `work` returned, or an [`Error`] if it was not run.
    pub fn read<T, E, F>(&self, work: F) -> Pending<T, E>
    where
        F: FnOnce(&Connection) -> std::result::Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (job, pending) = job(work);
        self.reads.send(job);
        pending
    }

    /// Reads a table, or the whole file, with the indexes: in a damaged one a row may be there and not be found. Some
    /// 5 ms for each MiB.
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt), with what SQLite finds damaged; those of a read.
    pub async fn verify(&self, table: Option<&'static str>) -> Result<()> {
        const CHECK: &str =
            "SELECT group_concat(integrity_check, '; ') FROM pragma_integrity_check(?1)";
        let found: Pending<String> =
            self.read(move |it| Ok(it.query_row(CHECK, [table], |row| row.get(0))?));
        match found.await? {
            found if found == "ok" => Ok(()),
            faults => Err(Error::saying(ErrorKind::Corrupt, faults).at(&self.path)),
        }
    }

    /// Runs the pending jobs, then closes the file, for all handles.
    ///
    /// Later jobs are refused as [`Closed`](crate::ErrorKind::Closed). If the future is dropped,
    /// closing continues in the background.
    pub async fn close(&self) {
        self.reads.close().await;
        // Last: SQLite then checkpoints everything into the one file.
        if let Some(writes) = &self.writes {
            writes.close().await;
        }
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it was opened [read-only](Builder::read_only).
    #[must_use]
    pub const fn is_read_only(&self) -> bool {
        self.writes.is_none()
    }

    /// What a confirmed write survives.
    #[must_use]
    pub const fn durability(&self) -> Durability {
        self.durability
    }
}

impl Builder {
    /// What a confirmed write survives. [`Durability::Power`] by default.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.place.durability = durability;
        self
    }

    /// Sets how long to wait while another process writes; 5 s by default.
    pub fn lock_wait(mut self, lock_wait: Duration) -> Self {
        self.place.lock_wait = lock_wait;
        self
    }

    /// Sets how many writes may wait, and how many reads; 10,000 by default. Further jobs are
    /// refused as [`Overloaded`](crate::ErrorKind::Overloaded).
    pub fn max_waiting(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Opens an existing file read-only, beside its writers: its bytes do not change. Off by
    /// default.
    ///
    /// All writes are refused as [`ReadOnly`](crate::ErrorKind::ReadOnly). Until
    /// [`close`](Database::close), SQLite may keep its two files beside it.
    pub fn read_only(mut self) -> Self {
        self.is_read_only = true;
        self
    }

    /// Opens the files although confirmed writes are lost ([`Lost`](crate::ErrorKind::Lost)), with what can be read
    /// of them. Off by default. What cannot be read is deleted.
    pub fn accept_loss(mut self) -> Self {
        self.place.accepts_loss = true;
        self
    }

    /// Checks that no confirmed write is lost, without opening the file for writes. Blocks; other processes may have
    /// it open.
    ///
    /// # Errors
    /// [`Lost`](crate::ErrorKind::Lost), and the errors of [`open`](Self::open).
    pub fn check(&self) -> Result<()> {
        self.place.check()
    }

    /// Copies the database, as it is now, into a new file, which must be missing or empty. Blocks; other processes
    /// may write meanwhile.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn copy_to(&self, copy: &Path) -> Result<()> {
        self.place.copy_to(copy)
    }

    /// Opens the file, or creates it (readable by its owner only) in an existing folder.
    ///
    /// # Cancellation
    /// If the future is dropped, at most an empty database is left.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound), [`Denied`](crate::ErrorKind::Denied),
    /// [`NotADatabase`](crate::ErrorKind::NotADatabase), [`Foreign`](crate::ErrorKind::Foreign),
    /// [`Corrupt`](crate::ErrorKind::Corrupt), [`Lost`](crate::ErrorKind::Lost), [`Full`](crate::ErrorKind::Full),
    /// [`Locked`](crate::ErrorKind::Locked), [`Unsuitable`](crate::ErrorKind::Unsuitable) and
    /// [`Io`](crate::ErrorKind::Io). A file that is refused is not changed.
    pub async fn open(self) -> Result<Database> {
        let Self { mut place, limit, is_read_only } = self;
        // Absolute, since it is checked again later, when the working directory may differ. An
        // empty path fails below.
        place.path = path::absolute(&place.path).unwrap_or(place.path);
        let (reads, read_queue) = queue(limit);
        let durability = place.durability;
        let path: Arc<Path> = place.path.as_path().into();
        let writes = if is_read_only {
            let open = move || place.open_read_only();
            let work = move |connection| reader::run(read_queue, connection);
            start("tr-sqlite reader", &path, open, work).await?;
            None
        } else {
            let (writes, write_queue) = queue(limit);
            let open = move || {
                let connection = connect(&place, read_queue)?;
                Ok(Writer::new(connection, place, write_queue))
            };
            start("tr-sqlite writer", &path, open, Writer::run).await?;
            Some(writes)
        };
        Ok(Database { writes, reads, path, durability })
    }
}

/// Opens the writer's connection, and starts a reader with a connection of its own.
fn connect(place: &Place, reads: Queue) -> Result<Connection> {
    let connection = place.open()?;
    let reader = place.open_reader()?;
    spawn("tr-sqlite reader", move || reader::run(reads, reader))?;
    Ok(connection)
}

/// Opens on a new thread, which then works until its queue is closed.
async fn start<W>(
    name: &str,
    path: &Path,
    open: impl FnOnce() -> Result<W> + Send + 'static,
    work: impl FnOnce(W) + Send + 'static,
) -> Result<()> {
    let (opened, opening) = oneshot::channel();
    spawn(name, move || match open() {
        Ok(worker) => {
            drop(opened.send(Ok(())));
            work(worker);
        }
        Err(error) => drop(opened.send(Err(error))),
    })
    .map_err(|error| error.at(path))?;
    opening.await.unwrap_or_else(|_| Err(Error::closed()))
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    thread::Builder::new().name(name.into()).spawn(work)?;
    Ok(())
}
