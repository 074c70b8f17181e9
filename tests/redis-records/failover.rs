//! A replica is promoted, and the old primary comes back.
use crate::{
    process::{Outcome, PATIENCE, PAUSE, Point, Tool, call, call_plainly, claim},
    world::patient,
};
use std::num::NonZeroU8;
use tokio::time::{Instant, sleep};
use tr_idempotency::conformance::RecordStoreExt as _;
use tr_idempotency::{
    protocol::State,
    redis::{Durability, Redis},
    store::{Claimed, End, RecordStore as _, StoreError, StoreErrorKind},
};
use tr_testkit::redis::{Persistence, Server};

/// A primary and its replica.
fn pair() -> (Server, Server) {
    let primary = Server::options().persistence(Persistence::EverySecond).start().unwrap();
    // It is never restarted, and a busy disk must not keep it from answering in time.
    let replica = Server::options().replica_of(&primary).start().unwrap();
    // It is in step, but counts only once the primary has heard so from it.
    let heard = primary.command(["WAIT", "1", "20000"]).unwrap();
    assert_eq!(heard.int(), Some(1), "the primary has not heard from its replica");
    (primary, replica)
}

/// A process that notices a server which does not answer.
fn process(server: &Server, durability: Durability) -> Redis {
    Redis::builder(server.url()).durability(durability).build().unwrap()
}

/// One whose server answers, sooner or later.
fn patient_process(server: &Server, durability: Durability) -> Redis {
    patient(server.url()).durability(durability).build().unwrap()
}

fn one_replica() -> Durability {
    Durability::wait_for(NonZeroU8::MIN)
}

/// The replica hears no more of its primary, which does not know yet.
fn part(replica: &Server) {
    replica.command(["REPLICAOF", "127.0.0.1", "1"]).unwrap();
}

fn promote(replica: &Server) {
    replica.command(["REPLICAOF", "NO", "ONE"]).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_waiting_a_failover_may_forget_a_claim_and_epochs_still_grow() {
    let (mut primary, replica) = pair();
    let store = process(&primary, Durability::Local);
    let tool = Tool::default();
    let one = call(&store, "pay", &tool, async |at| {
        if at == Point::BeforeClaim {
            part(&replica);
        } else if at == Point::AfterRun {
            primary_dies(&primary);
        }
    });
    let one = one.await;
    // It ran, and only its caller knows.
    assert_eq!(one, Outcome::Ran { recorded: false });
    primary.kill();
    promote(&replica);
    let other = process(&replica, Durability::Local);
    assert_eq!(call_plainly(&other, "pay", &tool).await, Outcome::Ran { recorded: true });
    let runs = tool.runs();
    assert!(runs.len() == 2 && runs[0] < runs[1], "a fence would know them apart: {runs:?}");
}

/// It no longer replies.
fn primary_dies(primary: &Server) {
    primary.pause();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waited_for_the_replica_survives_a_failover() {
    for point in [Point::AfterClaim, Point::AfterRun, Point::AfterEnd] {
        let (mut primary, replica) = pair();
        let store = process(&primary, one_replica());
        let tool = Tool::default();
        let one = call(&store, "pay", &tool, async |at| {
            if at == point {
                primary_dies(&primary);
                promote(&replica);
            }
        });
        let one = one.await;
        assert_eq!(one, Outcome::Ran { recorded: point == Point::AfterEnd }, "{point:?}");
        let other = process(&replica, Durability::Local);
        let two = call_plainly(&other, "pay", &tool).await;
        let expected = if point == Point::AfterEnd { Outcome::Replayed } else { Outcome::Unknown };
        assert_eq!(two, expected, "{point:?}");
        assert_eq!(tool.runs().len(), 1, "{point:?}");

        // The old primary comes back as a replica. A client that still uses it gets an error.
        primary.restart().unwrap();
        let port = replica.addr().port().to_string();
        primary.command(["REPLICAOF", "127.0.0.1", &port]).unwrap();
        // Also of a call that it knows: what it says of that may be old.
        for name in ["another", "pay"] {
            let told = told(async || store.claim(&claim(name)).await.unwrap_err()).await;
            assert_eq!(told.kind(), StoreErrorKind::Unreachable, "{told}");
        }
        let told = self::told(async || store.check().await.unwrap_err()).await;
        assert_eq!(told.kind(), StoreErrorKind::Refused, "{told}");
    }
}

/// The error that says so: earlier ones may be of the connection to the old process, or of a server
/// that is still loading.
async fn told(ask: impl AsyncFn() -> StoreError) -> StoreError {
    let begin = Instant::now();
    loop {
        let error = ask().await;
        if error.to_string().contains("it is a replica") {
            return error;
        }
        assert!(error.is_transient(), "{error}");
        assert!(begin.elapsed() < PATIENCE, "it is not told that it talks to a replica: {error}");
        sleep(PAUSE).await;
    }
}

/// What is granted or done once the replica hears again: a busy machine's needs its time.
async fn certain<T>(ask: impl AsyncFn() -> Result<T, StoreError>) -> T {
    let begin = Instant::now();
    loop {
        match ask().await {
            Err(error) if error.is_transient() && begin.elapsed() < PATIENCE => sleep(PAUSE).await,
            answer => return answer.unwrap(),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_replica_a_mutating_call_is_not_run_until_the_replica_is_back() {
    let (primary, replica) = pair();
    let store = patient_process(&primary, one_replica());
    let tool = Tool::default();
    assert_eq!(call_plainly(&store, "before", &tool).await, Outcome::Ran { recorded: true });
    replica.pause();
    let claimed = claim("pay");
    for _ in 0..3 {
        let error = store.claim(&claimed).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Uncertain, "{error}");
        assert!(error.to_string().contains("0 of 1 replicas"), "{error}");
    }
    // A new connection has written nothing that it could wait for; the claim is written again.
    let another = patient_process(&primary, one_replica());
    let error = another.claim(&claimed).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Uncertain, "{error}");
    replica.resume();
    let granted = certain(async || another.claim(&claimed).await).await;
    assert!(matches!(granted, Claimed::Run(ref grant) if grant.runs == 1), "{granted:?}");
    // Given up without waiting for anybody.
    let local = patient_process(&primary, Durability::Local);
    assert!(local.release(&claimed.key, claimed.owner).await.unwrap());
    assert_eq!(call_plainly(&store, "pay", &tool).await, Outcome::Ran { recorded: true });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_counts_once_the_replica_has_it() {
    let (primary, replica) = pair();
    let store = patient_process(&primary, one_replica());
    let tool = Tool::default();
    let claimed = claim("pay");
    let granted = certain(async || store.claim(&claimed).await).await;
    let Claimed::Run(grant) = granted else { panic!("a new key: {granted:?}") };
    replica.pause();
    let end = done();
    for _ in 0..3 {
        let error = store.finalize(&claimed.key, grant.token, &end).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Uncertain, "{error}");
        let error = store.renew(&claimed.key, grant.token, 400).await;
        assert!(matches!(error, Ok(false)), "it has ended: {error:?}");
    }
    replica.resume();
    assert!(certain(async || store.finalize(&claimed.key, grant.token, &end).await).await);
    promote(&replica);
    let other = process(&replica, Durability::Local);
    assert_eq!(call_plainly(&other, "pay", &tool).await, Outcome::Replayed);
}

fn done() -> End {
    End { state: State::Done(b"paid".to_vec()), ttl: 60_000 }
}
