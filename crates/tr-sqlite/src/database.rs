//! The handle of an open database.
use crate::{
    connect::Place,
    error::{Error, ErrorKind, Result},
    job::Pending,
    queue::{Entrance, Queue, queue},
    reader::Reader,
    schema::Schema,
    writer::Writer,
};
use rusqlite::Connection;
use std::{
    fmt,
    path::{self, Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};
use tokio::sync::oneshot;

/// What a confirmed write outlives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// A loss of power: the disk is made to write before a write is confirmed (`synchronous =
    /// FULL`, one sync for each group).
    #[default]
    Power,
    /// The end of the process, by `kill -9` too (`synchronous = NORMAL`). A loss of power may
    /// take the last confirmed writes, never damages the file.
    Process,
}

/// An open database. A clone is another handle of the same one.
///
/// Writes and reads are closures on a [`rusqlite::Connection`] that run on threads of their own.
/// When the last handle is dropped, what was sent is still written, in the background;
/// [`close`](Self::close) waits for it.
#[derive(Clone)]
pub struct Database {
    /// None where it is only read.
    writes: Option<Entrance>,
    reads: Entrance,
    path: Arc<Path>,
    durability: Durability,
    counters: Arc<Counters>,
}

/// How to open a [`Database`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    place: Place,
    limit: usize,
    is_read_only: bool,
}

/// How much was written since the database was opened, by this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Writes, the failed ones too.
    pub jobs: u64,
    /// Commits: each is one sync, where [`Durability::Power`] is asked for.
    pub commits: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) jobs: AtomicU64,
    pub(crate) commits: AtomicU64,
}

impl Database {
    /// Opens this file with the defaults, or makes it; [`builder`](Self::builder) has choices.
    ///
    /// # Errors
    /// See [`Builder::open`].
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self> {
        Self::builder(path).open().await
    }

    /// Begins with the defaults: [`Durability::Power`], 5 s for other processes' locks, 10,000
    /// jobs that may wait.
    pub fn builder(path: impl Into<PathBuf>) -> Builder {
        let (path, durability) = (path.into(), Durability::default());
        let place = Place { path, durability, lock_wait: Duration::from_secs(5) };
        Builder { place, limit: 10_000, is_read_only: false }
    }

    /// Brings one part's tables to the newest format. To be awaited before they are used.
    ///
    /// All of it is one transaction: if it fails or the process dies, nothing of it was done.
    /// Several processes may do it at once. A database that is [only read](Builder::read_only) must
    /// have the newest format.
    ///
    /// # Errors
    /// [`Newer`](crate::ErrorKind::Newer) if a newer program has written this part,
    /// [`Older`](crate::ErrorKind::Older) if it is not in the newest format and is only read, and what
    /// a write can fail with.
    pub fn migrate(&self, schema: Schema) -> Pending<()> {
        match &self.writes {
            Some(writes) => writes.send(move |connection| schema.migrate(connection)),
            None => self.read(move |connection| schema.require(connection)),
        }
    }

    /// Runs `work` in a transaction that it shares with others' and answers once it is committed.
    ///
    /// Writes take effect in the order of these calls. If `work` fails or panics, its changes are
    /// undone, and nobody else's. It must not end the transaction or change the connection's
    /// settings, and should be short: all other writes wait for it.
    ///
    /// # Cancellation
    /// The job is sent by this very call; dropping what it gives back changes nothing.
    ///
    /// # Errors
    /// What `work` returned, or an [`Error`] if it was not done or not kept.
    pub fn write<T, E, F>(&self, work: F) -> Pending<T, E>
    where
        F: FnOnce(&Connection) -> std::result::Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        match &self.writes {
            Some(writes) => writes.send(work),
            None => Pending::refused(Error::new(ErrorKind::ReadOnly)),
        }
    }

    /// Runs `work` on a connection that only reads, beside the writes. All of it sees one moment
    /// of the file, not older than the last write that was confirmed before this call.
    ///
    /// # Cancellation
    /// As with [`write`](Self::write).
    ///
    /// # Errors
    /// What `work` returned, or an [`Error`] if it was not done.
    pub fn read<T, E, F>(&self, work: F) -> Pending<T, E>
    where
        F: FnOnce(&Connection) -> std::result::Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        self.reads.send(work)
    }

    /// Writes what was sent, then closes the file, for all handles.
    ///
    /// What is sent later is refused as [`Closed`](crate::ErrorKind::Closed). Dropped, this goes on in
    /// the background.
    pub async fn close(&self) {
        self.reads.close().await;
        // Last: SQLite then moves everything into the one file.
        if let Some(writes) = &self.writes {
            writes.close().await;
        }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What a confirmed write outlives.
    #[must_use]
    pub const fn durability(&self) -> Durability {
        self.durability
    }

    /// How much was written.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let Counters { jobs, commits } = &*self.counters;
        Stats { jobs: jobs.load(Relaxed), commits: commits.load(Relaxed) }
    }
}

impl Builder {
    /// What a confirmed write outlives. [`Durability::Power`] by default.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.place.durability = durability;
        self
    }

    /// How long to wait while another process writes; 5 s by default.
    pub fn lock_wait(mut self, lock_wait: Duration) -> Self {
        self.place.lock_wait = lock_wait;
        self
    }

    /// How many writes may wait, and how many reads; 10,000 by default. What is sent past it is
    /// refused as [`Overloaded`](crate::ErrorKind::Overloaded).
    pub fn max_waiting(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Opens a file that is there, and only to be read, beside those who write it: its bytes stay as
    /// they are. False by default.
    ///
    /// All writes are refused as [`ReadOnly`](crate::ErrorKind::ReadOnly). While the file is open, and
    /// until [`close`](Database::close), SQLite may keep its two files beside it.
    pub fn read_only(mut self) -> Self {
        self.is_read_only = true;
        self
    }

    /// Opens the file, or makes it (readable by its owner only) in a folder that exists.
    ///
    /// # Cancellation
    /// Dropped, it leaves at most an empty database.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound), [`Denied`](crate::ErrorKind::Denied),
    /// [`NotADatabase`](crate::ErrorKind::NotADatabase), [`Foreign`](crate::ErrorKind::Foreign),
    /// [`Corrupt`](crate::ErrorKind::Corrupt), [`Full`](crate::ErrorKind::Full),
    /// [`Locked`](crate::ErrorKind::Locked), [`Unsuitable`](crate::ErrorKind::Unsuitable) and
    /// [`Io`](crate::ErrorKind::Io). A file that is refused was not changed.
    pub async fn open(self) -> Result<Database> {
        let Self { mut place, limit, is_read_only } = self;
        // It is looked at again later, wherever the process is then. Without a name it fails below.
        place.path = path::absolute(&place.path).unwrap_or(place.path);
        let (reads, read_queue) = queue(limit);
        let counters = Arc::new(Counters::default());
        let durability = place.durability;
        let path: Arc<Path> = place.path.as_path().into();
        let writes = if is_read_only {
            let open = move || Ok(Reader::new(place.open_read_only()?, read_queue));
            start("tr-sqlite reader", &path, open, Reader::run).await?;
            None
        } else {
            let (writes, write_queue) = queue(limit);
            let counted = counters.clone();
            let open = move || {
                let connection = connect(&place, read_queue)?;
                Ok(Writer::new(connection, place, counted, write_queue))
            };
            start("tr-sqlite writer", &path, open, Writer::run).await?;
            Some(writes)
        };
        Ok(Database { writes, reads, path, durability, counters })
    }
}

/// The writer's connection, and a reader that has one of its own.
fn connect(place: &Place, reads: Queue) -> Result<Connection> {
    let connection = place.open()?;
    let reader = Reader::new(place.open_reader()?, reads);
    spawn("tr-sqlite reader", move || reader.run())?;
    Ok(connection)
}

/// Opens on a thread of its own, which then works until its queue is closed.
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

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { writes, reads, path, durability, counters: _ } = self;
        f.debug_struct("Database")
            .field("path", path)
            .field("durability", durability)
            .field("writes", writes)
            .field("reads", reads)
            .field("stats", &self.stats())
            .finish()
    }
}
