//! The reader thread: each job reads one snapshot of the file.
use crate::{group::step, job::Job, queue::Queue};
use rusqlite::Connection;

/// Works until the queue is closed and empty.
pub(crate) fn run(mut queue: Queue, connection: Connection) {
    while let Some(job) = queue.wait() {
        read(&connection, job);
    }
    // Closed before the queue is dropped, which [`JobSender::close`](crate::queue::JobSender::close) waits for.
    drop(connection);
}

fn read(connection: &Connection, mut job: Box<dyn Job>) {
    let begun = step(connection, "BEGIN");
    if begun.is_ok() {
        job.run(connection);
    }
    if !connection.is_autocommit() {
        // It fails only if there is nothing to end.
        drop(step(connection, "ROLLBACK"));
    }
    job.end(begun.as_ref().copied());
}
