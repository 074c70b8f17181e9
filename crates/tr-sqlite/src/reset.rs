//! Empties the write-ahead log into the file, and marks the file as one that a log belongs to.
//!
//! The mark is two tables of one row each, so two pages: `tr_log`, and `tr_log_end`, which repeats it. They differ in no
//! commit, but in the file:
//!
//! ```text
//! 1  checkpoint           the log is in the file, and begins again
//! 2  both get a new mark  the first commit of the new log, at which a reader stays
//! 3  the second one is touched
//! 4  checkpoint           as far as the reader: only the page of the first one, since of the other a later one is there
//! ```
//!
//! So read through its log, the file has no mark, and so it is once the log is checkpointed as a whole, by any
//! program and after any crash. A file that is read without the log that belongs to it has the mark: the log, with all
//! commits since, is missing. A checkpoint while the log goes on would take the mark away, so SQLite makes none by itself.
use crate::{
    backoff::while_locked,
    error::{Error, ErrorKind, Result},
    group::step,
    schema::has_table,
};
use rusqlite::Connection;
use std::time::Duration;

const TABLES: &str = "CREATE TABLE tr_log (mark INTEGER NOT NULL) STRICT;
    CREATE TABLE tr_log_end (mark INTEGER NOT NULL, touched INTEGER NOT NULL) STRICT;
    INSERT INTO tr_log VALUES (0);
    INSERT INTO tr_log_end VALUES (0, 0);";

const LAST_TABLE: &str = "tr_log_end";

/// Empties the log, and marks the file; `false` if another process was in the way. `connect` makes another connection.
pub(crate) fn reset(
    connection: &Connection,
    connect: impl FnOnce() -> Result<Connection>,
    lock_wait: Duration,
) -> Result<bool> {
    if !has_table(connection, LAST_TABLE)? {
        exclusively(connection, lock_wait, || match has_table(connection, LAST_TABLE)? {
            true => Ok(()),
            false => Ok(connection.execute_batch(TABLES)?),
        })?;
    }
    if !checkpoint(connection, "RESTART")? {
        return Ok(false);
    }
    exclusively(connection, lock_wait, || {
        let mark = fastrand::i64(..);
        connection.execute("UPDATE tr_log SET mark = ?1", [mark])?;
        connection.execute("UPDATE tr_log_end SET mark = ?1", [mark])?;
        Ok(())
    })?;
    let reader = connect()?;
    step(&reader, "BEGIN")?;
    is_marked(&reader)?;
    exclusively(connection, lock_wait, || {
        connection.execute("UPDATE tr_log_end SET touched = touched + 1", [])?;
        Ok(())
    })?;
    checkpoint(connection, "PASSIVE")
}

/// Whether no other process was in the way.
fn checkpoint(connection: &Connection, how: &str) -> Result<bool> {
    let sql = format!("PRAGMA wal_checkpoint({how})");
    let busy = connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).map_err(Error::from);
    match busy {
        Err(error) if *error.kind() != ErrorKind::Locked => Err(error),
        busy => Ok(busy.is_ok_and(|busy| busy == 0)),
    }
}

/// Whether the file, as it is seen, has the mark.
pub(crate) fn is_marked(connection: &Connection) -> Result<bool> {
    if !has_table(connection, LAST_TABLE)? {
        return Ok(false);
    }
    let differ = "SELECT tr_log.mark <> tr_log_end.mark FROM tr_log, tr_log_end";
    Ok(connection.query_row(differ, [], |row| row.get(0))?)
}

/// Does this while no other process writes.
pub(crate) fn exclusively<T>(
    connection: &Connection,
    lock_wait: Duration,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    while_locked(lock_wait, || step(connection, "BEGIN IMMEDIATE"))?;
    let done = work().and_then(|done| step(connection, "COMMIT").map(|()| done));
    if done.is_err() && !connection.is_autocommit() {
        // It fails only if there is nothing to roll back.
        drop(step(connection, "ROLLBACK"));
    }
    done
}
