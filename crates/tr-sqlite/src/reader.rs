//! The reader thread: each job reads one snapshot of the file.
use crate::{group::step, job::Job, queue::Queue};
use rusqlite::Connection;

/// Fields are dropped in order: the connection is closed before the queue is dropped, which
/// [`JobSender::close`](crate::queue::JobSender::close) waits for.
pub(crate) struct Reader {
    connection: Connection,
    queue: Queue,
}

impl Reader {
    pub(crate) const fn new(connection: Connection, queue: Queue) -> Self {
        Self { connection, queue }
    }

    /// Works until the queue is closed and empty.
    pub(crate) fn run(mut self) {
        while let Some(job) = self.queue.wait() {
            read(&self.connection, job);
        }
    }
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
