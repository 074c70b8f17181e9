//! Clocks that jump, over restarts too: nothing ends early because of one that falls back.
use super::subject::{Folder, HOUR, Time, claim, open};
use tr_idempotency::conformance::RecordStoreExt as _;
use tr_idempotency::{
    protocol::{Phase, State},
    sqlite::Sqlite,
    store::{Claimed, End, Query, RecordStore},
};

#[tokio::test]
async fn time_never_runs_backwards() {
    let (folder, time) = (Folder::new(), Time::new());
    let store = open(&folder.file(), &time, 100).await;
    let first = claim("first");
    let Claimed::Run(one) = store.claim(&first).await.unwrap() else { panic!("not granted") };
    let end = End { state: State::Done(b"paid".to_vec()), ttl: 24 * HOUR };
    assert!(store.finalize(&first.key, one.token, &end).await.unwrap());
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

/// A battery that was empty, an image that was restored, a clock that was set by hand.
#[tokio::test]
async fn a_jump_of_the_clock_over_a_restart_forgets_nothing() {
    for jump in [25 * HOUR, 31 * 24 * HOUR, 10 * 365 * 24 * HOUR] {
        let (folder, time) = (Folder::new(), Time::new());
        let store = open(&folder.file(), &time, 100).await;
        let ends = [State::Done(b"paid".to_vec()), State::Unknown(Some(b"?".to_vec()))];
        for (name, state) in ["done", "unknown"].into_iter().zip(ends) {
            let claim = claim(name);
            let Claimed::Run(grant) = store.claim(&claim).await.unwrap() else { panic!("new") };
            let end = End { state, ttl: 24 * HOUR };
            assert!(store.finalize(&claim.key, grant.token, &end).await.unwrap());
        }
        assert!(matches!(store.claim(&claim("lost")).await.unwrap(), Claimed::Run(_)));
        store.close().await;

        time.pass(jump);
        let store = open(&folder.file(), &time, 100).await;
        let stand = async |store: &Sqlite, unknown: &[&str]| {
            let claimed = store.claim(&claim("done")).await.unwrap();
            let Claimed::Settled(stored) = claimed else { panic!("{jump}: {claimed:?}") };
            assert!(stored.record.until > stored.now);
            let record = &stored.record;
            assert_eq!(record.until - record.changed_at, 24 * HOUR, "its time to live stays");
            for name in unknown {
                let claimed = store.claim(&claim(name)).await.unwrap();
                assert!(matches!(claimed, Claimed::Unknown(_)), "{jump}: {name}: {claimed:?}");
            }
            assert_eq!(store.sweep().await.unwrap(), 0);
            assert_eq!(store.count(&Query::ALL).await.unwrap(), 3);
            assert_eq!(store.list(&Query::ALL, 9, false).await.unwrap().records.len(), 3);
        };
        stand(&store, &["unknown", "lost"]).await;
        // It is set right again, over another restart; what is claimed now has its own lease.
        store.close().await;
        time.fall_back(jump);
        let store = open(&folder.file(), &time, 100).await;
        stand(&store, &["unknown"]).await;
        let new = claim("new");
        let Claimed::Run(grant) = store.claim(&new).await.unwrap() else { panic!("new") };
        assert_eq!(grant.lease_left, 120_000);
        time.pass(120_000);
        let lost = store.read(&new.key).await.unwrap().unwrap();
        assert_eq!(lost.record.state.phase(), Phase::Unknown, "time goes on");
        // In use for their time to live, they expire.
        time.pass(25 * HOUR);
        assert_eq!(store.count(&Query::ALL).await.unwrap(), 0);
        assert_eq!(store.sweep().await.unwrap(), 4);
    }
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
