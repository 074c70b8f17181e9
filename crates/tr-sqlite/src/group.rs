//! One transaction and the jobs in it.
use crate::{
    error::{Error, ErrorKind, Result},
    job::Job,
};
use rusqlite::Connection;

/// Jobs that are kept together, and each of which can fail alone.
pub(crate) struct Group<'c> {
    connection: &'c Connection,
    jobs: Vec<Box<dyn Job>>,
    /// SQLite has undone it all.
    broken: Option<Error>,
}

impl<'c> Group<'c> {
    /// Takes the lock; [`ErrorKind::Locked`] if another process holds it.
    pub(crate) fn begin(connection: &'c Connection) -> Result<Self> {
        step(connection, "BEGIN IMMEDIATE")?;
        Ok(Self { connection, jobs: Vec::new(), broken: None })
    }

    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Nothing more can be added.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Does a job. If it fails, what it has changed is undone, and nothing else.
    ///
    /// The first needs no savepoint, which costs it a copy of each page that it changes: while there
    /// is nothing else, all can be undone.
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

    /// Keeps it all, or nothing.
    pub(crate) fn commit(self, at: impl FnOnce(Error) -> Error) -> Ended {
        let Self { connection, jobs, broken } = self;
        let fate = match broken {
            Some(error) => Err(error),
            None => step(connection, "COMMIT").map_err(Error::of_commit),
        };
        let fate = fate.map_err(at);
        if fate.is_err() && !connection.is_autocommit() {
            // It fails only if there is nothing left to undo.
            drop(step(connection, "ROLLBACK"));
        }
        Ended { jobs, fate }
    }
}

/// Jobs whose fate is known, and to be told.
#[must_use]
pub(crate) struct Ended {
    jobs: Vec<Box<dyn Job>>,
    fate: Result<()>,
}

impl Ended {
    pub(crate) fn answer(self) {
        for job in self.jobs {
            job.end(self.fate.as_ref().copied());
        }
    }
}

/// A statement without parameters and rows.
pub(crate) fn step(connection: &Connection, sql: &str) -> Result<()> {
    connection.prepare_cached(sql)?.execute([])?;
    Ok(())
}
