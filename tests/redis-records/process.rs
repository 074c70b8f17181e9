//! A process as records know it: a client of its own that claims, runs and records as it should.
use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};
use tr_core::canonical::{Digest, Key};
use tr_idempotency::conformance::RecordStoreExt as _;
use tr_idempotency::{
    protocol::{State, Token, Ttls},
    redis::Redis,
    store::{ClaimRequest, Claimed, End, Grant, RecordStore as _, StoreErrorKind},
};

/// Short, so that leases end within the tests; so long that a busy machine keeps within it.
pub(crate) const LEASE: Duration = Duration::from_secs(3);

/// How long a caller tries.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Between two tries.
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

/// A tool that does harm when it runs twice, and a list of its runs by their epochs.
#[derive(Debug, Default)]
pub(crate) struct Tool(Mutex<Vec<u64>>);

/// What a caller gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ran {
        recorded: bool,
    },
    Replayed,
    Unknown,
    /// Not run: the store failed.
    Refused(StoreErrorKind),
    /// Not run: there was no room for a record.
    Full,
    /// Not run: another process ran it all the time.
    TimedOut,
}

/// Where a call stands when something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    BeforeClaim,
    AfterClaim,
    AfterRun,
    AfterEnd,
}

impl Tool {
    pub(crate) fn run(&self, epoch: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(epoch);
    }

    pub(crate) fn runs(&self) -> Vec<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

pub(crate) fn key(name: &str) -> Key {
    Key::from_bytes(*Digest::of_bytes(name).as_bytes())
}

pub(crate) fn claim(name: &str) -> ClaimRequest {
    let lease = LEASE.as_millis() as u64;
    ClaimRequest {
        key: key(name),
        digest: Digest::of_bytes("params"),
        mutating: true,
        again: false,
        corrects: false,
        owner: fastrand::u64(1..),
        ttls: Ttls { done: 60_000, failed: 60_000, inflight: lease, unknown: 60_000 },
        tool: "pay".into(),
        session: Some("s-1".into()),
        notes: b"notes".to_vec(),
    }
}

/// Calls the tool once under this name, as a caller that tries for [`PATIENCE`]. `at` is told
/// where the call stands.
pub(crate) async fn call(
    store: &Redis,
    name: &str,
    tool: &Tool,
    at: impl AsyncFn(Point),
) -> Outcome {
    let (claim, begin) = (claim(name), Instant::now());
    at(Point::BeforeClaim).await;
    let token = loop {
        let sent = Instant::now();
        match store.claim(&claim).await {
            Ok(Claimed::Run(Grant { token, lease_left, .. })) => {
                at(Point::AfterClaim).await;
                // Its own clock says whether it still has the claim; else it asks once more.
                if sent.elapsed() < Duration::from_millis(lease_left) {
                    break token;
                }
            }
            Ok(Claimed::Busy { seen, lease_left }) => {
                let left = Duration::from_millis(lease_left + 1);
                let _ = timeout(left, store.watch(&claim.key, seen)).await;
            }
            Ok(Claimed::Settled(_)) => return Outcome::Replayed,
            Ok(Claimed::Unknown(_)) => return Outcome::Unknown,
            Ok(Claimed::Full | Claimed::Conflict) => {
                panic!("all ask for the same, of a store without a bound")
            }
            Err(error) if error.kind() == StoreErrorKind::Full => return Outcome::Full,
            Err(error) if !error.is_transient() || begin.elapsed() > PATIENCE => {
                let _ = store.release(&claim.key, claim.owner).await;
                return Outcome::Refused(error.kind());
            }
            Err(_) => sleep(PAUSE).await,
        }
        if begin.elapsed() > 2 * PATIENCE {
            return Outcome::TimedOut;
        }
    };
    tool.run(token.epoch);
    at(Point::AfterRun).await;
    let recorded = record(store, &claim.key, token, begin).await;
    at(Point::AfterEnd).await;
    Outcome::Ran { recorded }
}

async fn record(store: &Redis, key: &Key, token: Token, begin: Instant) -> bool {
    let end = End { state: State::Done(b"paid".to_vec()), ttl: 60_000 };
    loop {
        match store.finalize(key, token, &end).await {
            Ok(recorded) => return recorded,
            Err(error) if !error.is_transient() || begin.elapsed() > PATIENCE => return false,
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// The same without anything happening in between.
pub(crate) async fn call_plainly(store: &Redis, name: &str, tool: &Tool) -> Outcome {
    call(store, name, tool, async |_| {}).await
}
