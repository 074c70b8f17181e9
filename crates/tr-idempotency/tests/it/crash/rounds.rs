//! Rounds: a child dies, its calls are repeated, the ledger is read.
use super::{
    child::{LEASE, Order, STEP, ledger, open},
    fuse::Point,
    tool::{PATIENCE, Repeat, allowed, repeat},
};
use std::{
    env, fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process,
    sync::Arc,
    time::Duration,
};
use tr_idempotency::conformance::RecordStoreExt as _;
use tr_idempotency::{
    protocol::State,
    sqlite::Sqlite,
    store::{End, Query, RecordStore, Selector, StateFilter},
};
use tr_testkit::rounds;

/// Calls that a crowded child makes.
const CROWD: usize = 12;

/// A lease that a call is to outlive, so that it is renewed: a third of it is waited for.
const RENEWED: Duration = Duration::from_secs(2);

/// Removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("tr-crash-{name}-{}", process::id()));
        drop(fs::remove_dir_all(&folder));
        fs::create_dir(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Lets the child live until it dies, or kills it where it comes by for the `lines`th time. Gives
/// the keys of the calls that were answered.
fn outlive(order: &Order, test: &str, lines: Option<usize>) -> Vec<String> {
    let mut child = order.child(test).spawn().unwrap();
    let mut answered = Vec::new();
    let mut passed = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some(key) = line.strip_prefix("answered ") {
            answered.push(key.to_owned());
        } else if line.starts_with("at ") {
            passed += 1;
            if lines == Some(passed) {
                child.kill().unwrap();
            }
        }
    }
    let end = child.wait().unwrap();
    // Killed from outside, it may be too late.
    assert!(!end.success() || lines.is_some(), "the child lived on: {order:?}");
    answered
}

/// What an operator does who has found out that the tool did not run.
async fn settle(store: &Sqlite) {
    let unknown = Query { selector: Selector::All, state: StateFilter::Unknown };
    for stored in store.list(&unknown, usize::MAX, false).await.unwrap().records {
        let end = End { state: State::Cancelled(None), ttl: 3_600_000 };
        assert!(store.settle(&stored.key, Some(stored.record.token), &end).await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_killed_at_a_point_ends_as_that_point_says() {
    if let Some(order) = Order::given() {
        return order.obey().await;
    }
    let folder = Folder::new("point");
    let file = folder.0.join("calls.db");
    let ledger = ledger(&file);
    let mut rng = fastrand::Rng::with_seed(11);
    for round in 0..rounds(44, 1_000) {
        let point = Point::ALL[round as usize % Point::ALL.len()];
        let key = format!("order-{round}");
        let ahead = STEP * 2 * round as u32;
        let (lease, takes) =
            if point.is_of_renewal() { (RENEWED, PATIENCE) } else { (LEASE, Duration::ZERO) };
        let order = Order {
            file: file.clone(),
            ahead,
            lease,
            point: Some(point),
            nth: 1,
            lasts: Duration::from_micros(rng.u64(0..1_500)),
            takes,
            keys: vec![key.clone()],
        };
        let test = "crash::rounds::a_call_killed_at_a_point_ends_as_that_point_says";
        let answered = outlive(&order, test, None);
        assert_eq!(answered, [""; 0], "it died before it could answer");
        let before = ledger.count(&key).unwrap();

        let store = open(&file, ahead + STEP).await;
        let end = (repeat(Arc::new(store.clone()), &ledger, LEASE, &key).await, before);
        assert!(allowed(point).contains(&end), "{point:?}: {end:?}");
        let runs = ledger.count(&key).unwrap();
        assert_eq!(runs, usize::from(end.0 == Repeat::Ran) + before);
        assert!(runs <= 1, "{point:?}: the tool ran {runs} times");
        if end == (Repeat::Unknown, 0) {
            settle(&store).await;
            assert_eq!(repeat(Arc::new(store.clone()), &ledger, LEASE, &key).await, Repeat::Ran);
        }
        if rng.bool() {
            store.close().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_killed_together_run_once_each_and_lose_no_answer() {
    if let Some(order) = Order::given() {
        return order.obey().await;
    }
    let folder = Folder::new("crowd");
    let file = folder.0.join("calls.db");
    let ledger = ledger(&file);
    let mut rng = fastrand::Rng::with_seed(12);
    let mut answers = 0;
    for round in 0..rounds(24, 1_000) {
        let keys = Vec::from_iter((0..CROWD).map(|call| format!("order-{round}-{call}")));
        // At a point that one of them reaches, or from outside at any moment.
        let point = rng.choice(Point::ALL).filter(|point| rng.bool() && !point.is_of_renewal());
        let ahead = STEP * 2 * round as u32;
        let order = Order {
            file: file.clone(),
            ahead,
            lease: LEASE,
            point,
            nth: rng.u32(1..=CROWD as u32),
            lasts: Duration::from_micros(rng.u64(0..1_500)),
            takes: Duration::ZERO,
            keys: keys.clone(),
        };
        let test = "crash::rounds::calls_killed_together_run_once_each_and_lose_no_answer";
        let answered = outlive(&order, test, point.is_none().then(|| rng.usize(1..=CROWD * 8)));
        answers += answered.len();

        let store = open(&file, ahead + STEP).await;
        for key in &keys {
            let end = repeat(Arc::new(store.clone()), &ledger, LEASE, key).await;
            let runs = ledger.count(key).unwrap();
            assert!(runs <= 1, "{order:?}: the tool ran {runs} times for {key}");
            let is_lost = answered.contains(key) && end != Repeat::Replayed;
            assert!(!is_lost, "{order:?}: the answer to {key} is lost: {end:?}");
            assert!(end == Repeat::Unknown || runs == 1, "an answer without a run");
        }
        if rng.bool() {
            store.close().await;
        }
    }
    assert!(answers > 0, "no answer that could have been lost");
}
