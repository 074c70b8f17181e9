//! Sessions in a SQLite file: a turn beside one bare commit, and what rollbacks cost.
use crate::files::{Folder, SLOWER};
use benches::measure::{Effort, median};
use std::time::Duration;
use tokio::{
    runtime::{Builder, Runtime},
    time::Instant,
};
use tr_core::BoxError;
use tr_integrity::{Format, Message, Operation, Session, Sessions, sqlite::Sqlite};
use tr_sqlite::rusqlite::Connection;
use tr_testkit::syncs;

const FORMAT: Format = Format::AnthropicMessages;

/// Turns of one batch.
const TURNS: u64 = 25;

/// The messages of a turn: the user's, the step, its results, and the answer.
fn turn(number: u64) -> Result<Vec<Message>, BoxError> {
    let texts = [
        format!(r#"{{"role":"user","content":"{}"}}"#, "please ".repeat(20)),
        format!(
            r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"t{number}","name":"read","input":{{"path":"/a"}}}}]}}"#
        ),
        format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t{number}","content":"{}"}}]}}"#,
            "line ".repeat(100)
        ),
        format!(r#"{{"role":"assistant","content":"{}"}}"#, "so ".repeat(60)),
    ];
    texts.into_iter().map(|text| Ok(FORMAT.read(text)?)).collect()
}

fn push(session: &mut Session, messages: Vec<Message>) {
    messages.into_iter().for_each(|message| session.push(message));
}

/// A session in a file of its own.
struct Bench {
    runtime: Runtime,
    sessions: Sessions,
    folder: Folder,
}

impl Bench {
    fn new() -> Result<Self, BoxError> {
        let folder = Folder::new()?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let store = runtime.block_on(Sqlite::open(folder.file("sessions")))?;
        let sessions = Sessions::builder(FORMAT).store(store).build()?;
        Ok(Self { runtime, sessions, folder })
    }

    fn change<T>(&self, work: impl FnOnce(&mut Session, u64) -> T) -> Result<T, BoxError> {
        Ok(self.runtime.block_on(self.sessions.change("s", work))?)
    }

    /// The same, and how many nanoseconds it took.
    fn timed<T>(&self, work: impl FnOnce(&mut Session, u64) -> T) -> Result<(T, f64), BoxError> {
        let begun = Instant::now();
        let done = self.change(work)?;
        Ok((done, begun.elapsed().as_nanos() as f64))
    }
}

/// Nanoseconds of a turn's commit, and of one bare commit of as many bytes with the same
/// durability, on a connection of its own.
pub(crate) fn beside_a_bare_commit(effort: Effort) -> Result<Option<[f64; 2]>, BoxError> {
    let bench = Bench::new()?;
    let bare = Connection::open(bench.folder.file("bare"))?;
    bare.pragma_update(None, "journal_mode", "wal")?;
    bare.pragma_update(None, "synchronous", "full")?;
    bare.execute_batch("CREATE TABLE turns (id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT")?;
    let mut taken = [Vec::new(), Vec::new()];
    for number in 0..effort.batches as u64 / 10 * TURNS {
        let messages = turn(number)?;
        let bytes = messages.iter().map(|message| message.raw().len()).sum();
        taken[0].push(bench.timed(|session, _| push(session, messages))?.1);
        let body = vec![b'a'; bytes];
        let begun = Instant::now();
        bare.prepare_cached("INSERT INTO turns (body) VALUES (?1)")?.execute([body])?;
        taken[1].push(begun.elapsed().as_nanos() as f64);
    }
    Ok(Some(taken.map(|mut taken| median(&mut taken))))
}

/// Nanoseconds within which 99 of 100 turns of four messages are recorded.
pub(crate) fn slowest_of_a_hundred(effort: Effort) -> Result<f64, BoxError> {
    let bench = Bench::new()?;
    let turns = effort.batches.max(100) as u64 * TURNS;
    let taken = (0..turns).map(|number| {
        let messages = turn(number)?;
        Ok(bench.timed(|session, _| push(session, messages))?.1)
    });
    let mut taken = taken.collect::<Result<Vec<_>, BoxError>>()?;
    taken.sort_by(f64::total_cmp);
    Ok(taken[taken.len() * 99 / 100])
}

/// The same where a sync takes as long as on a disk that keeps what it confirms: where it takes
/// microseconds, two threads that wake each other are a good part of a turn.
pub(crate) fn beside_a_slow_commit(effort: Effort) -> Result<Option<[f64; 2]>, BoxError> {
    syncs::slow(SLOWER);
    let taken = beside_a_bare_commit(effort);
    syncs::slow(Duration::ZERO);
    taken
}

/// Nanoseconds of taking back 5,000 messages, and 20.
///
/// Both come after a small write: else what has just written 5,000 would be measured with it, by its
/// cold caches and full buffers.
pub(crate) fn rollbacks(effort: Effort) -> Result<Option<[f64; 2]>, BoxError> {
    let bench = Bench::new()?;
    bench.change(|session, _| turn(0).map(|messages| push(session, messages)))??;
    let mut taken = [Vec::new(), Vec::new()];
    for _ in 0..effort.batches / 10 {
        for (taken, messages) in taken.iter_mut().zip([5_000, 20]) {
            let checkpoint = bench.change(|session, now| {
                let checkpoint = session.checkpoint(Operation::Manual, now).id;
                for number in 1..=messages / 4 {
                    push(session, turn(number)?);
                }
                Ok::<_, BoxError>(checkpoint)
            })??;
            bench.change(|session, now| session.checkpoint(Operation::Manual, now))?;
            let (end, time) = bench.timed(|session, now| session.rollback(&checkpoint, now))?;
            if end?.messages_removed as u64 != messages {
                return Err("another number of messages went".into());
            }
            taken.push(time);
        }
    }
    Ok(Some(taken.map(|mut taken| median(&mut taken))))
}

/// Nanoseconds of a durable checkpoint, its commit, and a rollback of 20 messages.
fn operations(effort: Effort) -> Result<[f64; 3], BoxError> {
    let bench = Bench::new()?;
    let mut taken = [Vec::new(), Vec::new(), Vec::new()];
    for round in 0..effort.batches as u64 / 10 * TURNS {
        let make = |session: &mut Session, now| session.checkpoint(Operation::ApiCall, now).id;
        let (id, time) = bench.timed(make)?;
        taken[0].push(time);
        let (end, time) = bench.timed(|session, now| session.commit(&id, now))?;
        taken[1].push(time);
        end?;
        let id = bench.change(make)?;
        for number in 0..5 {
            let messages = turn(round * 5 + number)?;
            bench.change(|session, _| push(session, messages))?;
        }
        let (end, time) = bench.timed(|session, now| session.rollback(&id, now))?;
        taken[2].push(time);
        end?;
    }
    Ok(taken.map(|mut taken| median(&mut taken)))
}

pub(crate) fn checkpoint(effort: Effort) -> Result<f64, BoxError> {
    Ok(operations(effort)?[0])
}

pub(crate) fn commit(effort: Effort) -> Result<f64, BoxError> {
    Ok(operations(effort)?[1])
}

pub(crate) fn rollback(effort: Effort) -> Result<f64, BoxError> {
    Ok(operations(effort)?[2])
}
