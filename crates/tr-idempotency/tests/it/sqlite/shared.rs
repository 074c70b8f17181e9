//! Several processes on one file. The test starts itself.
use super::subject::{Folder, HOUR, claim};
use std::{
    env,
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};
use tokio::time::timeout;
use tr_idempotency::conformance::RecordStoreExt as _;
use tr_idempotency::{
    protocol::State,
    sqlite::{Database, Sqlite},
    store::{Claimed, End, RecordStore},
};
use tr_testkit::{ledger::Ledger, rounds};

const FILE: &str = "TR_IDEMPOTENCY_TEST_FILE";
const PROCESSES: usize = 3;

/// Longer than busy processes keep a lock, or a call, from one another.
const PATIENCE: Duration = Duration::from_secs(300);

/// Runs the call of this key, or waits until it was run; gives its answer.
async fn once(store: &Sqlite, ledger: &Ledger, key: &str) -> Vec<u8> {
    let mut claim = claim(key);
    claim.ttls.inflight = HOUR;
    loop {
        match store.claim(&claim).await.unwrap() {
            Claimed::Run(grant) => {
                ledger.append(key).unwrap();
                tokio::time::sleep(Duration::from_millis(2)).await;
                let body = format!("answer to {key}").into_bytes();
                let end = End { state: State::Done(body.clone()), ttl: 3_600_000 };
                assert!(store.finalize(&claim.key, grant.token, &end).await.unwrap());
                return body;
            }
            Claimed::Busy { seen, .. } => {
                let watched = timeout(PATIENCE, store.watch(&claim.key, seen));
                watched.await.expect("the other process ends").unwrap();
            }
            Claimed::Settled(stored) => match stored.record.state {
                State::Done(body) => return body,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn of_several_processes_one_runs_each_call() {
    let keys = rounds(60, 2_000);
    let file = env::var_os(FILE).map(PathBuf::from);
    if let Some(file) = file {
        let ledger = Ledger::at(file.with_extension("ledger"));
        let database = Database::builder(file).lock_wait(PATIENCE).open().await.unwrap();
        let store = Sqlite::builder().on(database).await.unwrap();
        let mut tasks = Vec::new();
        for worker in 0..4 {
            let (store, ledger) = (store.clone(), ledger.clone());
            tasks.push(tokio::spawn(async move {
                let mut rng = fastrand::Rng::with_seed(worker + u64::from(std::process::id()));
                let mut order: Vec<_> = (0..keys).collect();
                rng.shuffle(&mut order);
                for key in order {
                    let key = format!("key-{key}");
                    let answer = once(&store, &ledger, &key).await;
                    assert_eq!(answer, format!("answer to {key}").into_bytes());
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        store.close().await;
        return;
    }
    let folder = Folder::new();
    let mut children = Vec::from_iter((0..PROCESSES).map(|_| {
        Command::new(env::current_exe().unwrap())
            .args(["sqlite::shared::of_several_processes_one_runs_each_call", "--exact"])
            .env(FILE, folder.file())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }));
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    let ledger = Ledger::at(folder.file().with_extension("ledger"));
    let mut lines = ledger.lines().unwrap();
    lines.sort();
    let mut expected = Vec::from_iter((0..keys).map(|key| format!("key-{key}")));
    expected.sort();
    assert_eq!(lines, expected, "each call ran once");
}

#[tokio::test]
async fn a_claim_that_was_dropped_and_sent_again_is_one_claim() {
    let folder = Folder::new();
    let store = Sqlite::open(folder.file()).await.unwrap();
    let mut rng = fastrand::Rng::with_seed(3);
    for key in 0..200 {
        let claim = claim(&format!("key-{key}"));
        let mut epochs = Vec::new();
        for _ in 0..3 {
            let patience = Duration::from_micros(rng.u64(0..2_000));
            if let Ok(claimed) = timeout(patience, store.claim(&claim)).await {
                let Claimed::Run(grant) = claimed.unwrap() else { panic!("it is its own") };
                epochs.push(grant.token);
            }
        }
        let Claimed::Run(grant) = store.claim(&claim).await.unwrap() else { panic!("its own") };
        assert!(epochs.iter().all(|token| *token == grant.token), "{epochs:?} {grant:?}");
        assert_eq!(grant.runs, 1);
    }
}
