//! Clocks that jump, over restarts too: nothing ends early because of one that falls back.
use super::subject::{Folder, HOUR, Time, claim, open};
use tr_idempotency::{
    protocol::{Phase, State},
    store::{Claimed, End, RecordStore},
};

#[tokio::test]
async fn time_never_runs_backwards() {
    let (folder, time) = (Folder::new(), Time::new());
    let store = open(&folder.file(), &time, 100).await;
    let first = claim("first");
    let Claimed::Run(one) = store.claim(&first).await.unwrap() else { panic!("not granted") };
    let end = End { state: State::Done(b"paid".to_vec()), ttl: 24 * HOUR };
    assert!(store.finalise(&first.key, one.token, &end).await.unwrap());
    store.close().await;

    time.fall_back(HOUR);
    let store = open(&folder.file(), &time, 100).await;
    let second = claim("second");
    let Claimed::Run(two) = store.claim(&second).await.unwrap() else { panic!("not granted") };
    assert!(two.token.epoch > one.token.epoch);
    assert_eq!(two.lease_left, second.ttls.inflight, "a lease has its length");
    let [first, second] = [
        store.read(&first.key).await.unwrap().unwrap(),
        store.read(&second.key).await.unwrap().unwrap(),
    ];
    assert!(second.record.claimed_at >= first.record.claimed_at);

    // The machine's clock is set right again: the lease ends, the answer stays for its time.
    time.pass(HOUR + 120_000);
    let lost = store.read(&second.key).await.unwrap().unwrap();
    assert_eq!(lost.record.state.phase(), Phase::Unknown);
    assert!(matches!(store.claim(&claim("first")).await.unwrap(), Claimed::Settled(_)));
}

#[tokio::test]
async fn a_clock_that_is_behind_the_files_is_reported() {
    let (folder, time) = (Folder::new(), Time::new());
    let store = open(&folder.file(), &time, 100).await;
    assert_eq!(store.check().await.unwrap(), [""; 0]);
    time.fall_back(HOUR);
    let warnings = store.check().await.unwrap();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].starts_with("the machine's clock is 3600 s behind"), "{warnings:?}");
}
