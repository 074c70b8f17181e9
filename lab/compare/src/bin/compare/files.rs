//! Claim + finalize on a SQLite file: how many syncs, and how much faster than one blocking call for each.
use benches::measure::{Effort, median};
use std::{
    borrow::Cow,
    env, fs,
    future::Future,
    path::{Path, PathBuf},
    process,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinSet,
    time::Instant,
};
use tr_core::{
    BoxError,
    canonical::{Digest, Key},
};
use tr_idempotency::{
    protocol::{State, Ttls},
    sqlite::Sqlite,
    store::{Change, ClaimRequest, Claimed, End, RecordStore},
};
use tr_sqlite::rusqlite::Connection;
use tr_testkit::syncs;

/// Calls that each task makes in a batch.
const CYCLES: u64 = 25;

/// What a call leaves.
const ANSWER: [u8; 256] = [b'a'; 256];

/// What each sync takes more, where a disk that syncs in microseconds would tell nothing.
pub(crate) const SLOWER: Duration = Duration::from_millis(1);

/// Syncs per claim + finalize with 64 tasks.
pub(crate) fn syncs_a_cycle(effort: Effort) -> Result<f64, BoxError> {
    const TASKS: u64 = 64;
    let (runtime, folder) = (runtime()?, Folder::new()?);
    let store = runtime.block_on(Sqlite::open(folder.file("ours")))?;
    let mut counted = Vec::new();
    for batch in 0..batches(effort) {
        let before = syncs::count();
        runtime.block_on(tasks(TASKS, |task| ours(store.clone(), batch, task)))?;
        counted.push((syncs::count() - before) as f64 / (TASKS * CYCLES) as f64);
    }
    runtime.block_on(store.close());
    Ok(median(&mut counted))
}

/// Nanoseconds per claim + finalize with 8 tasks: ours, and a connection behind a lock with `spawn_blocking`.
pub(crate) fn beside_blocking(effort: Effort) -> Result<[f64; 2], BoxError> {
    const TASKS: u64 = 8;
    let (runtime, folder) = (runtime()?, Folder::new()?);
    let store = runtime.block_on(Sqlite::open(folder.file("ours")))?;
    let plain = Arc::new(Mutex::new(plain_table(&folder.file("plain"))?));
    let mut taken = [Vec::new(), Vec::new()];
    syncs::slow(SLOWER);
    for batch in 0..batches(effort) {
        let times = runtime.block_on(async {
            let ours = timed(tasks(TASKS, |task| ours(store.clone(), batch, task))).await?;
            let plain = timed(tasks(TASKS, |task| blocking(plain.clone(), batch, task))).await?;
            Ok::<_, BoxError>([ours, plain])
        })?;
        for (taken, time) in taken.iter_mut().zip(times) {
            taken.push(time / (TASKS * CYCLES) as f64);
        }
    }
    syncs::slow(Duration::ZERO);
    runtime.block_on(store.close());
    Ok(taken.map(|mut taken| median(&mut taken)))
}

/// A batch lasts half a second: fewer than of nanoseconds.
const fn batches(effort: Effort) -> u64 {
    (effort.batches / 10) as u64
}

fn runtime() -> Result<Runtime, BoxError> {
    Ok(Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

async fn tasks<F>(count: u64, task: impl Fn(u64) -> F) -> Result<(), BoxError>
where
    F: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    let mut tasks: JoinSet<_> = (0..count).map(task).collect();
    while let Some(end) = tasks.join_next().await {
        end??;
    }
    Ok(())
}

async fn timed(work: impl Future<Output = Result<(), BoxError>>) -> Result<f64, BoxError> {
    let begun = Instant::now();
    work.await?;
    Ok(begun.elapsed().as_nanos() as f64)
}

fn key(batch: u64, task: u64, cycle: u64) -> Key {
    Key::from_bytes(*Digest::of_bytes(format!("{batch} {task} {cycle}")).as_bytes())
}

async fn ours(store: Sqlite, batch: u64, task: u64) -> Result<(), BoxError> {
    const HOUR: u64 = 3_600_000;
    for cycle in 0..CYCLES {
        let claim = ClaimRequest {
            key: key(batch, task, cycle),
            digest: Digest::from_bytes([0; 32]),
            mutating: true,
            again: false,
            corrects: false,
            owner: (batch << 32 | task << 16 | cycle) + 1,
            ttls: Ttls { done: HOUR, failed: HOUR, inflight: HOUR, unknown: HOUR },
            tool: "pay".into(),
            session: Some(format!("session-{task}")),
            notes: Vec::new(),
        };
        let Claimed::Run(grant) = store.claim(&claim).await? else {
            return Err("a new key was not granted".into());
        };
        let end = End { state: State::Done(ANSWER.to_vec()), ttl: HOUR };
        if !store.change(&claim.key, Change::Finalize(grant.token, Cow::Borrowed(&end))).await? {
            return Err("the end of a call was not recorded".into());
        }
    }
    Ok(())
}

fn plain_table(path: &Path) -> Result<Connection, BoxError> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.execute_batch(
        "CREATE TABLE calls (key BLOB PRIMARY KEY, state TEXT NOT NULL, session TEXT, body BLOB) STRICT;
         CREATE INDEX calls_by_session ON calls (session)",
    )?;
    Ok(connection)
}

/// Runs one statement that must change one row, on a thread for blocking work.
async fn one<P>(
    plain: &Arc<Mutex<Connection>>,
    sql: &'static str,
    params: P,
) -> Result<(), BoxError>
where
    P: tr_sqlite::rusqlite::Params + Send + 'static,
{
    let plain = plain.clone();
    let change = move || {
        let connection = plain.lock().unwrap_or_else(PoisonError::into_inner);
        connection.prepare_cached(sql)?.execute(params)
    };
    match tokio::task::spawn_blocking(change).await?? {
        1 => Ok(()),
        other => Err(format!("{other} rows were changed").into()),
    }
}

async fn blocking(plain: Arc<Mutex<Connection>>, batch: u64, task: u64) -> Result<(), BoxError> {
    for cycle in 0..CYCLES {
        let key = *key(batch, task, cycle).as_bytes();
        let claim = "INSERT INTO calls VALUES (?1, 'inflight', ?2, NULL) ON CONFLICT DO NOTHING";
        one(&plain, claim, (key, format!("session-{task}"))).await?;
        let finalize = "UPDATE calls SET state = 'done', body = ?2 WHERE key = ?1";
        one(&plain, finalize, (key, ANSWER)).await?;
    }
    Ok(())
}

/// Removed in the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Result<Self, BoxError> {
        let folder = env::temp_dir().join(format!("tr-compare-{}", process::id()));
        fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name).with_extension("db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}
