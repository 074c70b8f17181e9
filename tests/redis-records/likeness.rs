//! The scripts against the protocol: the same operations on Redis and on the store in memory, which
//! applies the very functions that are model-checked.
//!
//! The two clocks differ, so times are either over at once or never.
use crate::world::patient;
use std::time::Duration;
use tokio::time::sleep;
use tr_core::canonical::{Digest, Key};
use tr_idempotency::conformance::RecordStoreExt as _;
use tr_idempotency::{
    protocol::{Again, State, Token, Ttls},
    store::{Before, ClaimRequest, Claimed, End, Grant, Memory, RecordStore, Stored, StoredState},
};
use tr_testkit::{redis::Server, rounds};

const LONG: u64 = 3_600_000;

/// So many keys, so that they meet often.
const KEYS: u8 = 3;

#[derive(Clone, Debug)]
enum Step {
    Claim(ClaimRequest),
    Renew { claim: usize, lease: u64 },
    Release { claim: usize },
    Finalize { claim: usize, end: End },
    Settle { key: Key, of: Option<usize>, end: End },
    Clear { key: Key },
}

/// A claim that was made in both: its key, and its tokens there.
#[derive(Clone, Copy, Debug)]
struct Made {
    key: Key,
    tokens: [Token; 2],
}

fn key() -> Key {
    Key::from_bytes([fastrand::u8(..KEYS); 32])
}

fn time() -> u64 {
    if fastrand::u8(..4) == 0 { 1 } else { LONG }
}

fn end() -> End {
    let body = || b"body".to_vec();
    let again = [Again::Never, Again::WhenAsked, Again::Freely][fastrand::usize(..3)];
    let state: StoredState = match fastrand::u8(..6) {
        0 => State::Done(body()),
        1 | 2 => State::Failed(body(), again),
        3 => State::Cancelled(fastrand::bool().then(body)),
        4 => State::Unknown(None),
        _ => State::Unknown(Some(body())),
    };
    End { state, ttl: time() }
}

fn step(made: &[Made]) -> Step {
    let claim = || fastrand::usize(..made.len());
    match if made.is_empty() { 0 } else { fastrand::u8(..12) } {
        0..=4 => Step::Claim(ClaimRequest {
            key: key(),
            digest: Digest::of_bytes([u8::from(fastrand::u8(..4) == 0)]),
            mutating: fastrand::bool(),
            again: fastrand::bool(),
            corrects: fastrand::bool(),
            // Few, so that claims are sent again.
            owner: fastrand::u64(1..5),
            ttls: Ttls { done: LONG, failed: LONG, inflight: time(), unknown: time() },
            tool: "tool".into(),
            session: fastrand::bool().then(|| "s-1".into()),
            notes: vec![fastrand::u8(..); 3],
        }),
        5 | 6 => Step::Renew { claim: claim(), lease: time() },
        7 => Step::Release { claim: claim() },
        8 | 9 => Step::Finalize { claim: claim(), end: end() },
        10 => Step::Settle { key: key(), of: fastrand::bool().then(claim), end: end() },
        _ => Step::Clear { key: key() },
    }
}

/// Takes the step in one of the stores.
async fn take(store: &dyn RecordStore, which: usize, step: &Step, made: &[Made]) -> Claimed {
    let done = match step {
        Step::Claim(claim) => return store.claim(claim).await.unwrap(),
        Step::Renew { claim, lease } => {
            store.renew(&made[*claim].key, made[*claim].tokens[which], *lease).await
        }
        Step::Release { claim } => {
            store.release(&made[*claim].key, made[*claim].tokens[which].owner).await
        }
        Step::Finalize { claim, end } => {
            store.finalize(&made[*claim].key, made[*claim].tokens[which], end).await
        }
        Step::Settle { key, of, end } => {
            store.settle(key, of.map(|of| made[of].tokens[which]), end).await
        }
        Step::Clear { key } => store.clear(key).await,
    };
    if done.unwrap() { Claimed::Full } else { Claimed::Conflict }
}

/// What must be the same of two answers: all but times and epochs.
fn gist(claimed: &Claimed) -> String {
    match claimed {
        Claimed::Run(Grant { token, lease_left, runs, before }) => {
            let before = before.as_deref().map(|Before { state, .. }| state);
            format!("run {} {} {runs} {before:?}", token.owner, *lease_left > LONG / 2)
        }
        Claimed::Busy { seen, lease_left } => {
            format!("busy {} {} {}", seen.token.owner, seen.version, *lease_left > LONG / 2)
        }
        Claimed::Settled(stored) => format!("settled {}", likeness(stored)),
        Claimed::Unknown(stored) => format!("unknown {}", likeness(stored)),
        other => format!("{other:?}"),
    }
}

fn likeness(stored: &Stored) -> String {
    let record = &stored.record;
    format!(
        "{:?} {} {} {} {} {} {:?} {:?} {:?} {}",
        record.state,
        record.digest,
        record.mutating,
        record.token.owner,
        record.version,
        record.runs,
        stored.tool,
        stored.session,
        stored.notes,
        record.until.saturating_sub(stored.now) > LONG / 2,
    )
}

#[tokio::test]
async fn scripts_do_what_the_protocol_does() {
    let server = Server::start().unwrap();
    let redis = patient(server.url()).build().unwrap();
    for round in 0..rounds(15, 1_000) {
        fastrand::seed(round);
        server.command(["FLUSHALL"]).unwrap();
        let stores: [&dyn RecordStore; 2] = [&Memory::new(), &redis];
        let (mut made, mut taken) = (Vec::<Made>::new(), Vec::new());
        for _ in 0..60 {
            let step = step(&made);
            let mut answers = Vec::new();
            for (which, store) in stores.into_iter().enumerate() {
                answers.push(take(store, which, &step, &made).await);
            }
            taken.push(step.clone());
            assert_eq!(
                gist(&answers[0]),
                gist(&answers[1]),
                "round {round}: in memory and in Redis, after {taken:#?}"
            );
            if let (Step::Claim(claim), [Claimed::Run(one), Claimed::Run(two)]) =
                (&step, &answers[..])
            {
                let above =
                    |made: &&Made| made.key == claim.key && made.tokens[1].epoch > two.token.epoch;
                assert!(made.iter().find(above).is_none(), "round {round}: the epoch fell");
                made.push(Made { key: claim.key, tokens: [one.token, two.token] });
            }
            // What is over at once is over now.
            sleep(Duration::from_millis(3)).await;
            for key in (0..KEYS).map(|key| Key::from_bytes([key; 32])) {
                let mut standing = Vec::new();
                for store in stores {
                    standing.push(store.read(&key).await.unwrap().as_ref().map(likeness));
                }
                assert_eq!(standing[0], standing[1], "round {round}, after {taken:#?}");
            }
        }
    }
}
