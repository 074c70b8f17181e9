//! Empties the write-ahead log into the file, and marks the file as one that a log belongs to.
//!
//! ```text
//! 1  the mark is set      committed to the log
//! 2  checkpoint           the file itself has the mark; the log begins again
//! 3  the mark is removed  the first commit of the new log
//! ```
//!
//! Read through its log, the file has no mark, and so it is once the log is checkpointed as a whole, by whomever. A
//! file that is read without the log that belongs to it has the mark: the log, with all commits since, is missing.
//! Between 2 and 3 the log has the frames of before, so that a crash there looks like no such loss. Other checkpoints
//! would write the removal of the mark to the file while the log goes on, so SQLite makes none by itself.
use crate::{
    backoff::Backoff,
    error::{Error, ErrorKind, Result},
    group::step,
};
use rusqlite::{Connection, OptionalExtension};
use std::time::Duration;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS tr_log (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    mark INTEGER NOT NULL
) STRICT";

/// Empties the log, as far as other processes let it; `false` if one reads it now.
pub(crate) fn reset(connection: &Connection, lock_wait: Duration) -> Result<bool> {
    // Of two processes that do this at once, the one must not remove the other's mark.
    let mark = fastrand::i64(1..);
    exclusively(connection, lock_wait, || {
        connection.execute_batch(TABLE)?;
        let sql = "INSERT INTO tr_log VALUES (1, ?1) \
                   ON CONFLICT (one) DO UPDATE SET mark = excluded.mark";
        connection.execute(sql, [mark])?;
        Ok(())
    })?;
    let checkpointed = connection
        .query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get::<_, i64>(0))
        .map_err(Error::from);
    exclusively(connection, lock_wait, || {
        connection.execute("UPDATE tr_log SET mark = 0 WHERE mark = ?1", [mark])?;
        Ok(())
    })?;
    match checkpointed {
        Err(error) if *error.kind() != ErrorKind::Locked => Err(error),
        busy => Ok(busy.is_ok_and(|busy| busy == 0)),
    }
}

/// Removes the mark of a process that was killed as it emptied the log, before the log is deleted.
pub(crate) fn finish(connection: &Connection, lock_wait: Duration) -> Result<()> {
    exclusively(connection, lock_wait, || {
        if is_marked(connection)? {
            connection.execute("UPDATE tr_log SET mark = 0", [])?;
        }
        Ok(())
    })
}

/// Whether the file has the mark.
pub(crate) fn is_marked(connection: &Connection) -> Result<bool> {
    let table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'tr_log'";
    if !connection.prepare(table)?.exists([])? {
        return Ok(false);
    }
    let mark = connection.query_row("SELECT mark FROM tr_log", [], |row| row.get::<_, i64>(0));
    Ok(mark.optional()?.is_some_and(|mark| mark != 0))
}

/// Does this while no other process writes.
pub(crate) fn exclusively<T>(
    connection: &Connection,
    lock_wait: Duration,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let mut backoff = Backoff::new(lock_wait);
    while let Err(error) = step(connection, "BEGIN IMMEDIATE") {
        if *error.kind() != ErrorKind::Locked || !backoff.wait() {
            return Err(error);
        }
    }
    let done = work().and_then(|done| step(connection, "COMMIT").map(|()| done));
    if done.is_err() && !connection.is_autocommit() {
        // It fails only if there is nothing to roll back.
        drop(step(connection, "ROLLBACK"));
    }
    done
}
