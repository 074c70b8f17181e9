//! Records in a real Redis server, beside plain commands on the same kind of connection.
use benches::measure::{Effort, median};
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use std::{
    borrow::Cow,
    sync::{Arc, mpsc},
    thread,
};
use tokio::{
    runtime::{Builder, Runtime},
    sync::Notify,
    time::Instant,
};
use tr_core::{
    BoxError,
    canonical::{Digest, Key},
};
use tr_idempotency::{
    protocol::{State, Ttls},
    redis::Redis,
    store::{Change, ClaimRequest, Claimed, End, Grant, RecordStore, Seen},
};
use tr_testkit::redis::Server;

/// Calls of a batch.
const CALLS: u64 = 200;

const HOUR: u64 = 3_600_000;

/// What a call leaves.
const ANSWER: [u8; 256] = [b'a'; 256];

/// What a record takes beside the answer: its head, tool, session.
const CLAIM: [u8; 130] = [b'c'; 130];

/// Nanoseconds per claim + finalize of one task, and per two plain `SET`s of the same sizes.
pub(crate) fn beside_sets(effort: Effort) -> Result<Option<[f64; 2]>, BoxError> {
    let Some(server) = server() else { return Ok(None) };
    let runtime = runtime()?;
    let (store, mut plain) = runtime.block_on(clients(&server))?;
    let mut taken = [Vec::new(), Vec::new()];
    for batch in 0..batches(effort) {
        let [ours, sets] = runtime.block_on(async {
            let begun = Instant::now();
            for call in 0..CALLS {
                let (claim, grant) = claim(&store, batch, call).await?;
                finalize(&store, &claim, &grant).await?;
            }
            let ours = begun.elapsed();
            let begun = Instant::now();
            for call in 0..CALLS {
                let name = format!("plain:{{{}}}", key(batch, call));
                set(&mut plain, &name, &CLAIM).await?;
                set(&mut plain, &name, &[&CLAIM[..], &ANSWER].concat()).await?;
            }
            Ok::<_, BoxError>([ours, begun.elapsed()])
        })?;
        for (taken, time) in taken.iter_mut().zip([ours, sets]) {
            taken.push(time.as_nanos() as f64 / CALLS as f64);
        }
    }
    Ok(Some(taken.map(|mut taken| median(&mut taken))))
}

/// Nanoseconds from recording an end until a waiter runs: in another process (a thread with a
/// runtime and a connection of its own), and in this one, told after the same write.
pub(crate) fn waiter_wakes(effort: Effort) -> Result<Option<[f64; 2]>, BoxError> {
    let Some(server) = server() else { return Ok(None) };
    let runtime = runtime()?;
    let (store, _) = runtime.block_on(clients(&server))?;
    let (asks, asked) = mpsc::channel::<(Key, Seen)>();
    let (woke, wakes) = mpsc::channel();
    let url = server.url();
    let other = thread::spawn(move || -> Result<(), BoxError> {
        let runtime = self::runtime()?;
        let store = runtime.block_on(Redis::builder(url).forgetting_on_restart().connect())?;
        for (key, seen) in asked {
            runtime.block_on(store.watch(&key, seen))?;
            woke.send(Instant::now())?;
        }
        Ok(())
    });
    let mut taken = [Vec::new(), Vec::new()];
    for call in 0..batches(effort) * 20 {
        let (claim, grant) = runtime.block_on(claim(&store, 0, call))?;
        let seen = Seen { token: grant.token, version: 1 };
        asks.send((claim.key, seen))?;
        // Until it is subscribed and has looked.
        while subscribers(&server, &claim.key)? == 0 {
            thread::yield_now();
        }
        runtime.block_on(store.read(&claim.key))?;
        runtime.block_on(store.read(&claim.key))?;
        let begun = Instant::now();
        runtime.block_on(finalize(&store, &claim, &grant))?;
        taken[0].push((wakes.recv()? - begun).as_nanos() as f64);

        let (claim, grant) = runtime.block_on(self::claim(&store, 1, call))?;
        let woken = runtime.block_on(async {
            let ended = Arc::new(Notify::new());
            let waits = ended.clone();
            let waiter = tokio::spawn(async move {
                waits.notified().await;
                Instant::now()
            });
            tokio::task::yield_now().await;
            let begun = Instant::now();
            finalize(&store, &claim, &grant).await?;
            ended.notify_one();
            Ok::<_, BoxError>(waiter.await? - begun)
        })?;
        taken[1].push(woken.as_nanos() as f64);
    }
    drop(asks);
    other.join().map_err(|_| "the waiter panicked")??;
    Ok(Some(taken.map(|mut taken| median(&mut taken))))
}

fn server() -> Option<Server> {
    Server::start().inspect_err(|error| eprintln!("compare: {error}")).ok()
}

fn runtime() -> Result<Runtime, BoxError> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

const fn batches(effort: Effort) -> u64 {
    (effort.batches / 4) as u64
}

async fn clients(server: &Server) -> Result<(Redis, ConnectionManager), BoxError> {
    let store = Redis::builder(server.url()).forgetting_on_restart().connect().await?;
    let client = redis::Client::open(format!("{}?protocol=resp3", server.url()))?;
    let config = ConnectionManagerConfig::new();
    Ok((store, ConnectionManager::new_with_config(client, config).await?))
}

fn subscribers(server: &Server, key: &Key) -> Result<i64, BoxError> {
    let channel = format!("tr:calls:{{{key}}}");
    let reply = server.command(["PUBSUB", "NUMSUB", &channel])?.to_string();
    Ok(reply.rsplit(' ').next().unwrap_or_default().parse()?)
}

fn key(batch: u64, call: u64) -> Key {
    Key::from_bytes(*Digest::of_bytes(format!("{batch} {call}")).as_bytes())
}

async fn claim(store: &Redis, batch: u64, call: u64) -> Result<(ClaimRequest, Grant), BoxError> {
    let claim = ClaimRequest {
        key: key(batch, call),
        digest: Digest::from_bytes([0; 32]),
        mutating: true,
        again: false,
        corrects: false,
        owner: (batch << 32 | call) + 1,
        ttls: Ttls { done: HOUR, failed: HOUR, inflight: HOUR, unknown: HOUR },
        tool: "pay".into(),
        session: Some("session-of-17-b".into()),
        notes: Vec::new(),
    };
    match store.claim(&claim).await? {
        Claimed::Run(grant) => Ok((claim, grant)),
        other => Err(format!("a new key met {other:?}").into()),
    }
}

async fn finalize(store: &Redis, claim: &ClaimRequest, grant: &Grant) -> Result<(), BoxError> {
    let end = End { state: State::Done(ANSWER.to_vec()), ttl: HOUR };
    match store.change(&claim.key, Change::Finalize(grant.token, Cow::Borrowed(&end))).await? {
        true => Ok(()),
        false => Err("the end of a call was not recorded".into()),
    }
}

async fn set(plain: &mut ConnectionManager, name: &str, value: &[u8]) -> Result<(), BoxError> {
    let mut set = redis::cmd("SET");
    set.arg(name).arg(value).arg("PX").arg(HOUR);
    Ok(set.exec_async(plain).await?)
}
