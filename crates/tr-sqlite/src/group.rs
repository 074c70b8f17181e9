//! One transaction and its jobs.
use crate::{
    error::{Error, ErrorKind, Result},
    job::Job,
};
use rusqlite::Connection;

/// Jobs that commit together, and each of which can fail alone.
pub(crate) struct Group<'c> {
    connection: &'c Connection,
    jobs: Vec<Box<dyn Job>>,
    /// Set once SQLite has rolled the transaction back.
    broken: Option<Error>,
}

impl<'c> Group<'c> {
    /// Takes the write lock; [`ErrorKind::Locked`] if another process holds it.
    pub(crate) fn begin(connection: &'c Connection) -> Result<Self> {
        step(connection, "BEGIN IMMEDIATE")?;
        Ok(Self { connection, jobs: Vec::new(), broken: None })
    }

    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether no more jobs can be added.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Runs a job. If it fails, only its own changes are rolled back.
    ///
    /// The first job needs no savepoint, which would copy each page that it changes: while it is
    /// alone, the whole transaction can be rolled back.
    pub(crate) fn add(&mut self, mut job: Box<dyn Job>) {
        let connection = self.connection;
        let is_first = self.jobs.is_empty();
        let mut run = || {
            if !is_first {
                step(connection, "SAVEPOINT job")?;
            }
            let is_kept = job.run(connection);
            if connection.is_autocommit() {
                return Err(Error::new(ErrorKind::Undone));
            }
            match (is_first, is_kept) {
                (true, true) => Ok(()),
                (true, false) => {
                    step(connection, "ROLLBACK")?;
                    step(connection, "BEGIN IMMEDIATE")
                }
                (false, true) => step(connection, "RELEASE job"),
                (false, false) => {
                    step(connection, "ROLLBACK TO job")?;
                    step(connection, "RELEASE job")
                }
            }
        };
        self.broken = run().err();
        self.jobs.push(job);
    }

    /// Commits all jobs, or none.
    ///
    /// Returns the ended jobs, whose results have to be sent with this one.
    pub(crate) fn commit(self) -> (Vec<Box<dyn Job>>, Result<()>) {
        let Self { connection, jobs, broken } = self;
        let fate = match broken {
            Some(error) => Err(error),
            None => step(connection, "COMMIT").map_err(Error::of_commit),
        };
        if fate.is_err() && !connection.is_autocommit() {
            // It fails only if there is nothing to roll back.
            drop(step(connection, "ROLLBACK"));
        }
        (jobs, fate)
    }
}

/// A statement without parameters and rows.
pub(crate) fn step(connection: &Connection, sql: &str) -> Result<()> {
    connection.prepare_cached(sql)?.execute([])?;
    Ok(())
}
