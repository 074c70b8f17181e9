//! An owner that has ended is known to have, whatever its lease says.
use super::subject::{Folder, HOUR, claim};
use std::time::Duration;
use tokio::time::timeout;
use tr_idempotency::conformance::RecordStoreExt as _;
use tr_idempotency::{
    protocol::{Again, Phase, State},
    sqlite::{Database, Sqlite},
    store::{ClaimRequest, Claimed, End, Query, RecordStore, Selector, StateFilter},
};

const SOON: Duration = Duration::from_secs(30);

async fn store(folder: &Folder) -> Sqlite {
    let database = Database::open(folder.file()).await.unwrap();
    Sqlite::builder().owners(folder.file().with_extension("owners")).on(database).await.unwrap()
}

fn mutating(name: &str) -> ClaimRequest {
    let mut claim = claim(name);
    claim.mutating = true;
    claim.ttls.inflight = HOUR;
    claim
}

#[tokio::test]
async fn a_call_of_a_process_that_has_ended_is_unknown_at_once() {
    let folder = Folder::new();
    let (ends, stays) = (store(&folder).await, store(&folder).await);
    let (paid, lives) = (mutating("paid"), mutating("lives"));
    assert!(matches!(ends.claim(&paid).await.unwrap(), Claimed::Run(_)));
    assert!(matches!(stays.claim(&lives).await.unwrap(), Claimed::Run(_)));

    let mut again = paid.clone();
    again.owner += 1;
    let Claimed::Busy { seen, .. } = stays.claim(&again).await.unwrap() else { panic!() };
    let watching = stays.watch(&paid.key, seen);
    let ending = async {
        tokio::task::yield_now().await;
        drop(ends);
    };
    let (watched, ()) = tokio::join!(timeout(SOON, watching), ending);
    watched.expect("its end is seen").unwrap();

    let unknown = Query { selector: Selector::All, state: StateFilter::Unknown };
    assert_eq!(stays.count(&unknown).await.unwrap(), 1);
    let listed = stays.list(&unknown, 10, false).await.unwrap().records;
    assert_eq!(listed.iter().map(|it| it.key).collect::<Vec<_>>(), [paid.key]);
    assert!(matches!(stays.claim(&again).await.unwrap(), Claimed::Unknown(_)));
    // The other's owner is this very process.
    let lives = stays.read(&lives.key).await.unwrap().unwrap();
    assert_eq!(lives.record.state.phase(), Phase::Inflight);
    assert_eq!(stays.flush(&Query::ALL).await.unwrap(), 0);
}

#[tokio::test]
async fn a_process_has_ended_when_that_was_first_seen() {
    for is_swept in [false, true] {
        let folder = Folder::new();
        let (ends, stays) = (store(&folder).await, store(&folder).await);
        let paid = mutating("paid");
        assert!(matches!(ends.claim(&paid).await.unwrap(), Claimed::Run(_)));
        drop(ends);
        if is_swept {
            assert_eq!(stays.sweep().await.unwrap(), 0);
        } else {
            let again = ClaimRequest { owner: paid.owner + 1, ..paid.clone() };
            assert!(matches!(stays.claim(&again).await.unwrap(), Claimed::Unknown(_)));
        }
        let read = async || stays.read(&paid.key).await.unwrap().unwrap();
        let first = read().await.record.changed_at;
        while {
            let later = read().await;
            assert_eq!(later.record.changed_at, first, "{is_swept}");
            later.now <= first + 1
        } {}
    }
}

/// While another process keeps the file locked for writing, and without a file beside it.
#[tokio::test]
async fn a_file_that_is_only_read_shows_calls_as_they_stand() {
    let folder = Folder::new();
    let (ends, stays) = (store(&folder).await, store(&folder).await);
    let (paid, lives) = (mutating("paid"), mutating("lives"));
    assert!(matches!(ends.claim(&paid).await.unwrap(), Claimed::Run(_)));
    assert!(matches!(stays.claim(&lives).await.unwrap(), Claimed::Run(_)));
    drop(ends);
    let owners = folder.file().with_extension("owners");
    let locks = || std::fs::read_dir(&owners).unwrap().count();
    let before = locks();
    let locked = tr_sqlite::rusqlite::Connection::open(folder.file()).unwrap();
    locked.execute_batch("BEGIN IMMEDIATE").unwrap();

    let database = Database::builder(folder.file()).read_only().open().await.unwrap();
    let reads = Sqlite::builder().owners(owners.clone()).on(database).await.unwrap();
    assert_eq!(locks(), before, "it does not join them");
    for (state, key) in
        [(StateFilter::Unknown, paid.key), (StateFilter::Inflight { at_least: 0 }, lives.key)]
    {
        let query = Query { selector: Selector::All, state };
        let listed = reads.list(&query, 10, false).await.unwrap().records;
        assert_eq!(listed.iter().map(|it| it.key).collect::<Vec<_>>(), [key]);
        assert_eq!(reads.count(&query).await.unwrap(), 1);
        assert!(reads.list(&query, 0, false).await.unwrap().records.is_empty());
    }
    assert_eq!(reads.list(&Query::ALL, 10, false).await.unwrap().records.len(), 2);
    let read = reads.read(&paid.key).await.unwrap().unwrap();
    assert_eq!(read.record.state.phase(), Phase::Unknown);
    assert_eq!(reads.is_owner_alive(&paid.key).await.unwrap(), Some(false));
    assert_eq!(reads.is_owner_alive(&lives.key).await.unwrap(), Some(true));
    assert!(reads.claim(&paid).await.is_err() && reads.clear(&paid.key).await.is_err());
}

#[tokio::test]
async fn a_claim_that_named_no_process_waits_for_its_lease() {
    let folder = Folder::new();
    let paid = mutating("paid");
    let plain = Sqlite::open(folder.file()).await.unwrap();
    assert!(matches!(plain.claim(&paid).await.unwrap(), Claimed::Run(_)));
    plain.close().await;
    drop(plain);
    let mut again = paid.clone();
    again.owner += 1;
    let claimed = store(&folder).await.claim(&again).await.unwrap();
    assert!(matches!(claimed, Claimed::Busy { .. }), "{claimed:?}");
}

#[tokio::test]
async fn a_file_of_the_first_format_is_taken_over_with_its_records() {
    let folder = Folder::new();
    let paid = mutating("paid");
    let plain = Sqlite::open(folder.file()).await.unwrap();
    assert!(matches!(plain.claim(&paid).await.unwrap(), Claimed::Run(_)));
    plain.close().await;
    let by_hand = tr_sqlite::rusqlite::Connection::open(folder.file()).unwrap();
    let before = "DROP INDEX calls_unended; DROP INDEX calls_by_end; ALTER TABLE calls DROP COLUMN over_ran; \
                  CREATE INDEX calls_by_end ON calls (pinned, over_at); \
                  ALTER TABLE calls DROP COLUMN holder; ALTER TABLE calls_head DROP COLUMN mark; \
                  ALTER TABLE calls_head DROP COLUMN ran; \
                  UPDATE tr_schema SET format = 1 WHERE part = 'calls'";
    by_hand.execute_batch(before).unwrap();
    drop(by_hand);
    let store = store(&folder).await;
    assert!(store.read(&paid.key).await.unwrap().is_some());
    assert!(matches!(store.claim(&mutating("other")).await.unwrap(), Claimed::Run(_)));
}

#[tokio::test]
async fn a_brief_list_reads_no_answers() {
    let folder = Folder::new();
    let store = store(&folder).await;
    let body = || b"kept".to_vec();
    for (name, state) in
        [("done", State::Done(body())), ("failed", State::Failed(body(), Again::Never))]
    {
        let claim = claim(name);
        let Claimed::Run(grant) = store.claim(&claim).await.unwrap() else { panic!() };
        let end = End { state, ttl: HOUR };
        assert!(store.finalize(&claim.key, grant.token, &end).await.unwrap());
    }
    let only = Database::builder(folder.file()).read_only().open().await.unwrap();
    let only = Sqlite::builder().on(only).await.unwrap();
    for store in [&store, &only] {
        for (is_brief, answers) in [(false, [4, 4]), (true, [0, 4])] {
            let mut found = store.list(&Query::ALL, 10, is_brief).await.unwrap().records;
            found.sort_by_key(|stored| stored.record.state.phase().as_str());
            let bodies = found.iter().map(|it| it.record.state.body().map_or(0, Vec::len));
            assert_eq!(bodies.collect::<Vec<_>>(), answers);
        }
    }
}
