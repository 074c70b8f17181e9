//! One SQLite file, one thread that writes it in groups, and the way from each format to the next.
//!
//! Many tasks write at once; what they send while the disk is busy becomes one transaction and
//! one sync. Each job can fail alone, and is confirmed only once it is on the disk.
//!
//! # When to use
//!
//! For records that must outlive the process, without a server: up to some thousand small writes
//! a second, shared by the processes of one machine. Anybody can look into the file with
//! `sqlite3`.
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
//! # What holds
//!
//! - A confirmed write outlives the process, and with [`Durability::Power`] (the default) a loss
//!   of power. One that fails left nothing, unless [`Error::may_be_kept`] says otherwise.
//! - A job that fails or panics undoes its own changes and nobody else's.
//! - Dropping a [`Pending`] changes nothing: what was sent is done, in the order it was sent.
//! - After `kill -9` the file opens at once.
//! - Several processes may share the file, on a local disk. Only one writes at a time; the others
//!   wait, each write up to [`lock_wait`](Builder::lock_wait) (5 s).
//! - A file that another program or a newer version wrote is refused and not touched.
//!
//! # Errors
//!
//! [`Error`] says what is wrong, whether anything was kept, and what to do. [`ErrorKind`] is for
//! programs; [`Meaning`] is all that a store over the file has to tell apart.
//!
//! # Knows nothing of
//!
//! tool calls, records and sessions: it keeps what it is given. It needs no async runtime, reads
//! no wall clock, and never repeats a job.
mod connect;
mod database;
mod error;
mod group;
mod job;
mod meaning;
mod patience;
mod queue;
mod read_only;
mod reader;
mod schema;
mod writer;

pub use self::{
    database::{Builder, Database, Durability, Stats},
    error::{Error, ErrorKind, Result},
    job::Pending,
    meaning::Meaning,
    schema::Schema,
};
pub use rusqlite;
