//! A folder for one test, and what the tests keep in it.
use std::{
    env, fs,
    path::{Path, PathBuf},
    process,
    sync::mpsc::{Sender, channel},
    time::Duration,
};
use tr_sqlite::{Database, Error, Pending, Schema};

pub(crate) const NUMBERS: Schema =
    Schema::new("numbers", &["CREATE TABLE numbers (n INTEGER NOT NULL PRIMARY KEY) STRICT"]);

/// How long a lock is waited for: longer than several busy processes keep it from one another.
pub(crate) const LOCK_WAIT: Duration = Duration::from_secs(300);

/// Removed in the end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("tr-sqlite-{name}-{}", process::id()));
        drop(fs::remove_dir_all(&folder));
        fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("numbers.db")
    }

    /// The database with its table.
    pub(crate) async fn open(&self) -> Database {
        numbers(&self.file()).await
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

pub(crate) async fn numbers(file: &Path) -> Database {
    let database = Database::builder(file).lock_wait(LOCK_WAIT).open().await.unwrap();
    database.migrate(NUMBERS).await.unwrap();
    database
}

pub(crate) fn insert(database: &Database, n: u64) -> Pending<()> {
    database.write(move |connection| {
        connection.prepare_cached("INSERT INTO numbers VALUES (?1)")?.execute([n.cast_signed()])?;
        Ok(())
    })
}

pub(crate) async fn all(database: &Database) -> Vec<u64> {
    let read = database.read(|connection| {
        let mut all = connection.prepare("SELECT n FROM numbers ORDER BY n")?;
        let rows = all.query_map([], |row| row.get::<_, i64>(0))?;
        Ok::<_, Error>(rows.collect::<Result<Vec<_>, _>>()?)
    });
    read.await.unwrap().into_iter().map(i64::cast_unsigned).collect()
}

/// Keeps the writer busy until it is released or dropped.
pub(crate) fn hold(database: &Database) -> Sender<()> {
    let (go, wait) = channel();
    let (held, is_held) = channel();
    drop(database.write(move |_| {
        held.send(()).unwrap();
        let _ = wait.recv();
        Ok::<_, Error>(())
    }));
    is_held.recv().unwrap();
    go
}
