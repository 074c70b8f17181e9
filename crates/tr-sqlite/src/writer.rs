//! The writer thread: many jobs, one transaction, one sync.
use crate::{
    backoff::{now, while_locked},
    connect::{Identity, LOG_BYTES, Place},
    error::{Error, ErrorKind, Result},
    group::Group,
    job::Job,
    queue::Queue,
    reset::reset,
};
use rusqlite::Connection;
use std::{fs, path::PathBuf, time::Duration};

/// The most jobs of a group, since the first waits for the commit.
const JOBS: usize = 512;

/// The log is emptied into the file after so many commits, or at [`LOG_BYTES`].
const COMMITS: u32 = 256;

/// After so many more, if another process is reading it.
const COMMITS_MORE: u32 = 16;

/// The precision of a timer: shorter waits are skipped.
const SHORTEST_WAIT: Duration = Duration::from_micros(50);

/// The writer and the measurements of its last group. The connection is closed before the queue is
/// dropped, which [`JobSender::close`](crate::queue::JobSender::close) waits for.
pub(crate) struct Writer {
    connection: Connection,
    place: Place,
    log: PathBuf,
    /// The identity of the opened file.
    file: Option<Identity>,
    last: LastGroup,
    /// The commits until the log is emptied.
    until_reset: u32,
    /// Whether the file knows of its log.
    is_marked: bool,
    queue: Queue,
}

/// The size of the last group, and the duration of its commit.
#[derive(Clone, Copy, Default)]
struct LastGroup {
    jobs: usize,
    commit: Duration,
}

impl Writer {
    pub(crate) fn new(connection: Connection, place: Place, queue: Queue) -> Self {
        let (file, log) = (Identity::of(&place.path), place.log());
        let (last, until_reset) = (LastGroup::default(), COMMITS);
        Self { connection, place, log, file, last, until_reset, is_marked: false, queue }
    }

    /// Works until the queue is closed and empty.
    pub(crate) fn run(mut self) {
        while let Some(job) = self.queue.wait() {
            let waiting = self.queue.len();
            match begin(&self.connection, &self.place, self.file) {
                Ok(group) => {
                    let group = fill(group, job, &mut self.queue, self.last);
                    let (connection, place) = (&self.connection, &self.place);
                    self.last = finish(group, place, || {
                        // Before a caller learns of the first write, the file knows of its log. One that is opened and
                        // not written stays as it is.
                        if !self.is_marked && connection.total_changes() > 0 {
                            let is_reset = reset(connection, || place.connect(), place.lock_wait);
                            self.is_marked = is_reset.is_ok();
                            self.until_reset = commits_until_next(is_reset);
                        }
                    });
                    self.shorten_log();
                }
                Err(error) => refuse(job, waiting, &mut self.queue, &self.place.said(error)),
            }
        }
    }

    /// Empties the log into the file from time to time. If that fails, the log goes on, and holds all writes.
    fn shorten_log(&mut self) {
        self.until_reset = self.until_reset.saturating_sub(1);
        let is_long = |log: fs::Metadata| log.len() > u64::from(LOG_BYTES);
        // Where it could not be emptied a moment ago, its length is no reason to try again.
        let is_due = self.until_reset == 0
            || self.until_reset > COMMITS_MORE && self.log.metadata().is_ok_and(is_long);
        if !is_due {
            return;
        }
        let is_reset = reset(&self.connection, || self.place.connect(), self.place.lock_wait);
        self.until_reset = commits_until_next(is_reset);
    }
}

fn commits_until_next(is_reset: Result<bool>) -> u32 {
    if is_reset.is_ok_and(|is_reset| is_reset) { COMMITS } else { COMMITS_MORE }
}

/// Starts a group once no other process writes.
fn begin<'c>(
    connection: &'c Connection,
    place: &Place,
    file: Option<Identity>,
) -> Result<Group<'c>> {
    if Identity::of(&place.path) != file {
        return Err(Error::new(ErrorKind::Moved));
    }
    while_locked(place.lock_wait, || Group::begin(connection))
}

/// Runs the first job, and further jobs while there are any.
///
/// Callers of the last group may be about to write again. So a group that is smaller than the last
/// one stays open for a quarter of the cost of its sync: less than a separate sync would cost late
/// jobs.
fn fill<'c>(
    mut group: Group<'c>,
    first: Box<dyn Job>,
    queue: &mut Queue,
    last: LastGroup,
) -> Group<'c> {
    let longest_wait = last.commit / 4;
    let mut until = None;
    let mut next = Some(first);
    while let Some(job) = next {
        group.add(job);
        if group.is_broken() || group.len() >= JOBS {
            break;
        }
        next = queue.poll();
        if next.is_none() && group.len() < last.jobs && longest_wait >= SHORTEST_WAIT {
            let until = *until.get_or_insert_with(|| now() + longest_wait);
            next = queue.wait_for(until.saturating_duration_since(now()));
        }
    }
    group
}

fn finish(group: Group<'_>, place: &Place, committed: impl FnOnce()) -> LastGroup {
    let (jobs, begun) = (group.len(), now());
    let (ended, fate) = group.commit();
    let fate = fate.map_err(|error| error.at(&place.path));
    let last = LastGroup { jobs, commit: begun.elapsed() };
    committed();
    ended.into_iter().for_each(|job| job.end(fate.as_ref().copied()));
    last
}

/// Fails all jobs that have waited. Jobs that arrived meanwhile get a wait of their own.
fn refuse(first: Box<dyn Job>, waiting: usize, queue: &mut Queue, error: &Error) {
    first.end(Err(error));
    for _ in 0..waiting {
        let Some(job) = queue.poll() else { return };
        job.end(Err(error));
    }
}
