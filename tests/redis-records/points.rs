//! A process is killed at every labelled point of a call, and the call is repeated.
use crate::{
    fuse::{Fuse, Fused, Point},
    tool::{PATIENCE, Repeat, allowed, call, guarded, repeat},
    world::patient,
};
use std::{
    env,
    process::{Command, Stdio, id},
    sync::Arc,
    time::Duration,
};
use tokio::task::{JoinSet, spawn_blocking};
use tower::ServiceExt as _;
use tr_idempotency::conformance::RecordStoreExt as _;
use tr_idempotency::{protocol::State, redis::Redis, store::End};
use tr_testkit::{ledger::Ledger, redis::Server, rounds};

/// Tells the child where the server is, where the ledger, where to die, how long after something was
/// sent, and which call to make.
const ORDER: &str = "REDIS_RECORDS_POINT";

const TEST: &str = "points::a_call_killed_at_a_point_ends_as_that_point_says";

/// How long a dead process keeps its call: longer than a busy machine takes to grant it. Calls that
/// are to be renewed wait for a third of it.
const LEASE: Duration = Duration::from_secs(3);

fn store(url: &str) -> Redis {
    patient(url).forgetting_on_restart().build().unwrap()
}

/// The child: makes one call, and dies in it.
async fn obey(order: &str) {
    let [url, ledger, point, lasts, key] =
        order.split('\n').collect::<Vec<_>>().try_into().unwrap();
    let point = Point::named(point).unwrap();
    let fuse = Fuse::new(Some(point), 1, Duration::from_micros(lasts.parse().unwrap()));
    let store = Arc::new(Fused { way: fuse.clone(), store: store(url) });
    let takes = if point.is_of_renewal() { PATIENCE } else { Duration::ZERO };
    let tool = guarded(store, Ledger::at(ledger), fuse, LEASE, takes);
    let end = tool.oneshot(call(key)).await;
    panic!("it was not killed at {point:?}, and the call ended: {end:?}");
}

/// Kills a process there, and repeats its call.
async fn round(url: &str, ledger: &Ledger, point: Point, lasts: u64, key: &str) {
    let order = format!("{url}\n{}\n{point:?}\n{lasts}\n{key}", ledger.path().display());
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "--nocapture", TEST]).env(ORDER, order).stdout(Stdio::piped());
    let died = spawn_blocking(move || child.output()).await.unwrap().unwrap();
    let last = String::from_utf8_lossy(&died.stderr);
    assert_eq!(died.status.code(), None, "{point:?}: it lived on: {last}");
    let before = ledger.count(key).unwrap();

    let store = Arc::new(store(url));
    let end = (repeat(store.clone(), ledger, PATIENCE, key).await, before);
    assert!(allowed(point).contains(&end), "{point:?}: {end:?}");
    let runs = ledger.count(key).unwrap();
    assert_eq!(runs, usize::from(end.0 == Repeat::Ran) + before, "{point:?}: {end:?}");
    assert!(runs <= 1, "{point:?}: the tool ran {runs} times");
    if end == (Repeat::Unknown, 0) {
        let key_of_it = call(key).id().unwrap().unwrap().key;
        let did_not_run = End { state: State::Cancelled(None), ttl: 3_600_000 };
        assert!(store.settle(&key_of_it, None, &did_not_run).await.unwrap());
        assert_eq!(repeat(store, ledger, PATIENCE, key).await, Repeat::Ran, "{point:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_killed_at_a_point_ends_as_that_point_says() {
    if let Ok(order) = env::var(ORDER) {
        return obey(&order).await;
    }
    let server = Server::start().unwrap();
    let path = env::temp_dir().join(format!("redis-records-{}-points.ledger", id()));
    let ledger = Ledger::at(&path);
    let mut rng = fastrand::Rng::with_seed(13);
    let all = Point::ALL.len() as u64;
    // All points at once: most of the time leases are waited for.
    for batch in 0..rounds(2, 1_000_u64.div_ceil(all)) {
        let mut those: JoinSet<_> = Point::ALL
            .into_iter()
            .map(|point| {
                let (url, ledger, lasts) = (server.url(), ledger.clone(), rng.u64(..1_500));
                async move {
                    let key = format!("order-{batch}-{point:?}");
                    round(&url, &ledger, point, lasts, &key).await;
                }
            })
            .collect();
        while let Some(end) = those.join_next().await {
            end.unwrap();
        }
    }
    std::fs::remove_file(&path).unwrap();
}
