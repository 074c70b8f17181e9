//! A SQLite file with one writer thread that commits in groups, and with migrations.
//!
//! Many tasks write at once; the jobs that they send while the disk is busy become one transaction
//! and one sync. Each job can fail alone, and is confirmed only once it is on the disk.
//!
//! # When to use
//!
//! For records that must outlive the process, without a server: up to a few thousand small writes a
//! second, shared by the processes of one machine. `sqlite3` opens the file.
//!
//! # Example
//!
//! ```
//! use tr_sqlite::{Database, Error, Schema};
//!
//! const NOTES: Schema =
//!     Schema::new("notes", &["CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT) STRICT"]);
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Error> {
//! # let path = std::env::temp_dir().join(format!("tr-sqlite-doc-{}.db", std::process::id()));
//! # let _ = std::fs::remove_file(&path);
//! let notes = Database::open(&path).await?;
//! notes.migrate(NOTES).await?;
//!
//! let id = notes
//!     .write(|connection| {
//!         connection.execute("INSERT INTO notes (text) VALUES (?1)", ["call Ann"])?;
//!         Ok::<_, Error>(connection.last_insert_rowid())
//!     })
//!     .await?;
//! let text: String = notes
//!     .read(move |connection| {
//!         let sql = "SELECT text FROM notes WHERE id = ?1";
//!         Ok::<_, Error>(connection.query_row(sql, [id], |row| row.get(0))?)
//!     })
//!     .await?;
//! assert_eq!(text, "call Ann");
//!
//! notes.close().await;
//! # std::fs::remove_file(&path).unwrap();
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//!
//! - A confirmed write survives the process, and with [`Durability::Power`] (the default) a power
//!   failure. A failed write leaves nothing, unless [`Error::may_be_kept`] says otherwise.
//! - If a job fails or panics, only its own changes are rolled back.
//! - Dropping a [`Pending`] changes nothing: sent jobs run, in the order in which they were sent.
//! - After `kill -9` the file opens at once. After the last [`close`](Database::close) everything is
//!   in the one file.
//! - Confirmed writes that are lost are noticed before the file is opened ([`ErrorKind::Lost`]): its
//!   log is damaged before its last commit, or one of the two is missing. Not noticed is an older set
//!   of files that is whole in itself.
//! - Several processes may share the file, on a local disk. Only one writes at a time; the others
//!   wait, each write up to [`lock_wait`](Builder::lock_wait) (5 s).
//! - A file that another program or a newer version wrote is refused and not changed.
//!
//! # Errors
//!
//! [`Error`] says what failed, whether anything was committed, and what to do. [`ErrorKind`] is for
//! programs; [`Meaning`] has the four cases that a store over the file tells apart.
//!
//! # Knows nothing of
//!
//! tool calls, records and sessions. It needs no async runtime, reads no wall clock, and never
//! repeats a job.
mod backoff;
mod connect;
mod database;
mod error;
mod group;
mod holder;
mod job;
mod log;
mod meaning;
mod queue;
mod read_only;
mod reader;
mod reset;
mod schema;
mod writer;

pub use self::{
    connect::Durability,
    database::{Builder, Database},
    error::{Error, ErrorKind, Result},
    job::Pending,
    meaning::Meaning,
    schema::Schema,
};
pub use rusqlite;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
