//! What goes wrong with a file: said in the store's words, and nothing is lost.
use super::subject::{Folder, HOUR, Time, claim, open};
use serde_json::json;
use std::{fs, time::Duration};
use tokio::{task::yield_now, time::timeout};
use tower::{Layer, ServiceExt, service_fn};
use tr_core::{BoxError, DedupeScope, Params, ToolCall, ToolOutcome};
use tr_idempotency::conformance::RecordStoreExt as _;
use tr_idempotency::{
    IdempotencyLayer, StateCount,
    protocol::State,
    sqlite::{Database, Durability, Sqlite},
    store::{
        ClaimRequest, Claimed, End, Query, RecordStore, StateFilter, StoreError, StoreErrorKind,
    },
};
use tr_sqlite::{Error, ErrorKind, rusqlite::Connection};

const PAGE: usize = 4_096;
const ROOT: &str = "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_calls_1'";

/// What an operator, or another version, does to the file.
fn by_hand(folder: &Folder, sql: &str) {
    Connection::open(folder.file()).unwrap().execute_batch(sql).unwrap();
}

fn kind<T: std::fmt::Debug>(end: Result<T, StoreError>) -> StoreErrorKind {
    end.unwrap_err().kind()
}

#[tokio::test]
async fn a_row_of_a_newer_version_is_unreadable_and_never_missing() {
    let (folder, time) = (Folder::new(), Time::new());
    let store = open(&folder.file(), &time, 100).await;
    let it = claim("it");
    store.claim(&it).await.unwrap();
    by_hand(&folder, "UPDATE calls SET state = 'suspended'");

    assert_eq!(kind(store.claim(&claim("it")).await), StoreErrorKind::Unreadable);
    assert_eq!(kind(store.read(&it.key).await), StoreErrorKind::Unreadable);
    assert!(matches!(store.claim(&claim("other")).await.unwrap(), Claimed::Run(_)));

    let unknown = Query { state: StateFilter::Unknown, ..Query::ALL };
    for query in [&Query::ALL, &unknown] {
        let listing = store.list(query, 10, true).await.unwrap();
        assert_eq!(listing.records.len(), usize::from(*query == Query::ALL));
        let damaged = &listing.unreadable[0];
        assert_eq!((damaged.key, damaged.tool.as_deref()), (it.key, Some("pay.card")));
        assert!(damaged.why.contains("unknown state `suspended`"), "{damaged:?}");
    }
    by_hand(&folder, "UPDATE calls SET until = 7 WHERE state = 'suspended'");
    assert_eq!((store.sweep().await.unwrap(), store.flush(&Query::ALL).await.unwrap()), (0, 0));
    assert_eq!(kind(store.claim(&claim("it")).await), StoreErrorKind::Unreadable);
    by_hand(&folder, "UPDATE calls SET until = 1 << 50 WHERE state = 'suspended'");

    assert!(store.clear(&it.key).await.unwrap(), "it can be cleared all the same");
    assert!(matches!(store.claim(&claim("it")).await.unwrap(), Claimed::Run(_)));
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_refused() {
    let folder = Folder::new();
    Sqlite::open(folder.file()).await.unwrap().close().await;
    by_hand(&folder, "UPDATE tr_schema SET format = 9 WHERE part = 'calls'");
    let error = Sqlite::open(folder.file()).await.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Newer { part: "calls".into(), found: 9, known: 4 });
}

/// The rows are all there; only the index by which they are looked up is damaged.
#[tokio::test]
async fn a_record_that_its_key_does_not_find_is_noticed() {
    let folder = Folder::new();
    let store = Sqlite::open(folder.file()).await.unwrap();
    for n in 0..40 {
        store.claim(&claim(&format!("order-{n}"))).await.unwrap();
    }
    store.close().await;
    let root = Connection::open(folder.file()).unwrap();
    let page: u32 = root.query_row(ROOT, [], |row| row.get(0)).unwrap();
    drop(root);
    let whole = fs::read(folder.file()).unwrap();
    // The entries are at the page's end.
    let end = page as usize * PAGE;
    for at in (end - 1_024..end).step_by(64) {
        let mut damaged = whole.clone();
        damaged[at..at + 8].copy_from_slice(b"DAMAGED!");
        fs::write(folder.file(), damaged).unwrap();
        let error = Sqlite::open(folder.file()).await.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Corrupt, "{at}: {error}");
    }
    fs::write(folder.file(), whole).unwrap();
    Sqlite::open(folder.file()).await.unwrap().close().await;
}

#[tokio::test]
async fn a_lock_means_that_nothing_has_changed() {
    let folder = Folder::new();
    Sqlite::open(folder.file()).await.unwrap().close().await;
    let wait = Duration::from_millis(30);
    let database = Database::builder(folder.file()).lock_wait(wait).open().await.unwrap();
    let store = Sqlite::builder().on(database).await.unwrap();
    let it = claim("it");
    let other = Connection::open(folder.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.claim(&it).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable);
    assert!(error.is_transient());
    assert!(store.read(&it.key).await.unwrap().is_none(), "a read needs no lock");
    other.execute_batch("COMMIT").unwrap();
    assert!(matches!(store.claim(&it).await.unwrap(), Claimed::Run(_)));
}

#[tokio::test]
async fn a_full_disk_refuses_and_keeps_what_there_is() {
    let (folder, time) = (Folder::new(), Time::new());
    let store = open(&folder.file(), &time, 1_000_000).await;
    let limit = |pages: u32| {
        store.database().write(move |connection| {
            Ok::<_, Error>(connection.pragma_update(None, "max_page_count", pages)?)
        })
    };
    let it = claim("it");
    let Claimed::Run(grant) = store.claim(&it).await.unwrap() else { panic!("not granted") };
    limit(20).await.unwrap();
    let end = |bytes| End { state: State::Done(vec![7; bytes]), ttl: 60_000 };
    let error = store.finalize(&it.key, grant.token, &end(1 << 20)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "room may come back");
    assert!(error.to_string().contains("the disk is full"), "{error}");
    assert_eq!(store.read(&it.key).await.unwrap().unwrap().record.state, State::Inflight);

    limit(1_000_000).await.unwrap();
    assert!(store.finalize(&it.key, grant.token, &end(1 << 20)).await.unwrap());
}

/// The disk is full when the call ends: its end is recorded once there is room again.
#[tokio::test]
async fn an_end_is_recorded_when_room_comes_back() {
    let (folder, time) = (Folder::new(), Time::new());
    let store = open(&folder.file(), &time, 1_000_000).await;
    let limit = |store: Sqlite, pages: u32| async move {
        let change = move |connection: &Connection| {
            Ok::<_, Error>(connection.pragma_update(None, "max_page_count", pages)?)
        };
        store.database().write(change).await.unwrap();
    };
    let layer = IdempotencyLayer::builder().store(store.clone()).build().unwrap();
    let fills = store.clone();
    let tool = service_fn(move |_: ToolCall| {
        let full = limit(fills.clone(), 20);
        async move {
            full.await;
            Ok::<_, BoxError>(ToolOutcome::success(json!("x".repeat(500_000))))
        }
    });
    let service = layer.layer(tool);
    let call = || ToolCall::new("pay", Params::empty_object()).session("s").idempotency_key("k");
    let outcome = service.clone().oneshot(call()).await.unwrap();
    assert!(!outcome.recorded());
    let key = call().id().unwrap().unwrap().key;
    let state = || async { store.read(&key).await.unwrap().unwrap().record.state };
    assert_eq!(state().await, State::Inflight);

    limit(store.clone(), 1_000_000).await;
    let recorded = async {
        while !matches!(state().await, State::Done(_)) {
            yield_now().await;
        }
    };
    timeout(Duration::from_secs(30), recorded).await.expect("the end is recorded");
}

#[tokio::test]
async fn a_closed_file_refuses() {
    let (folder, time) = (Folder::new(), Time::new());
    let store = open(&folder.file(), &time, 100).await;
    store.close().await;
    assert_eq!(kind(store.claim(&claim("it")).await), StoreErrorKind::Refused);
    assert_eq!(kind(store.check().await), StoreErrorKind::Refused);
}

#[tokio::test]
async fn a_check_warns_of_what_it_cannot_rule_out() {
    let folder = Folder::new();
    let database = Database::builder(folder.file()).durability(Durability::Process);
    let store = Sqlite::builder().capacity(10).on(database.open().await.unwrap()).await.unwrap();
    let warnings = store.check().await.unwrap();
    assert!(warnings.iter().any(|it| it.contains("Durability::Power")), "{warnings:?}");
    for n in 0..9 {
        store.claim(&claim(&n.to_string())).await.unwrap();
    }
    let warnings = store.check().await.unwrap();
    assert!(warnings.iter().any(|it| it.starts_with("9 of 10 records")), "{warnings:?}");
}

#[tokio::test]
async fn rows_deleted_by_hand_are_cleared_records() {
    let (folder, time) = (Folder::new(), Time::new());
    let store = open(&folder.file(), &time, 2).await;
    for key in ["one", "two"] {
        store.claim(&claim(key)).await.unwrap();
    }
    assert_eq!(store.claim(&claim("three")).await.unwrap(), Claimed::Full);
    by_hand(&folder, "DELETE FROM calls WHERE tool = 'pay.card'");
    assert_eq!(store.count(&Query::ALL).await.unwrap(), 0);
    for key in ["one", "three"] {
        assert!(matches!(store.claim(&claim(key)).await.unwrap(), Claimed::Run(_)), "{key}");
    }
}

#[tokio::test]
async fn people_see_records_as_they_stand() {
    let (folder, time) = (Folder::new(), Time::an_hour_ago());
    let store = open(&folder.file(), &time, 100).await;
    let (lost, mut running) = (claim("lost"), claim("running"));
    running.ttls.inflight = 2 * HOUR;
    store.claim(&lost).await.unwrap();
    store.claim(&running).await.unwrap();
    let people = Connection::open(folder.file()).unwrap();
    let mut look = people
        .prepare("SELECT key, state, tool, session, claimed FROM calls_now ORDER BY epoch")
        .unwrap();
    let rows = look.query_map([], |row| {
        assert_eq!(row.get::<_, String>(4)?.len(), "2026-02-21 11:20:00".len());
        Ok([row.get::<_, String>(0)?, row.get(1)?, row.get(2)?, row.get(3)?])
    });
    let rows: Vec<_> = rows.unwrap().map(Result::unwrap).collect();
    assert_eq!(rows[0][1..], ["unknown", "pay.card", "s-1"]);
    assert_eq!(rows[0][0], lost.key.to_string(), "as handles take it");
    assert_eq!(rows[1][1], "inflight");
}

#[tokio::test]
async fn records_are_counted_by_tool_scope_and_state() {
    let (folder, time) = (Folder::new(), Time::new());
    let store = open(&folder.file(), &time, 100).await;
    let paid = claim("paid");
    let Claimed::Run(grant) = store.claim(&paid).await.unwrap() else { panic!("not granted") };
    let end = End { state: State::Done(b"paid".to_vec()), ttl: 24 * HOUR };
    assert!(store.finalize(&paid.key, grant.token, &end).await.unwrap());
    let read =
        ClaimRequest { mutating: false, session: None, tool: "read".into(), ..claim("read") };
    for running in [&claim("lost"), &claim("running"), &read] {
        store.claim(running).await.unwrap();
    }
    time.pass(120_001);
    store.claim(&claim("later")).await.unwrap();

    let counts = store.state_counts().await.unwrap();
    let row = |it: &StateCount| {
        (it.tool.clone(), it.scope, it.state.as_str(), it.records, it.stale, it.ttl.as_secs())
    };
    let pay = |state, records, stale, ttl| {
        ("pay.card".to_owned(), DedupeScope::Session, state, records, stale, ttl)
    };
    assert_eq!(
        counts.iter().map(row).collect::<Vec<_>>(),
        [
            pay("done", 1, 0, 24 * 3600),
            pay("inflight", 3, 2, 120),
            ("read".to_owned(), DedupeScope::Global, "inflight", 1, 1, 120),
        ]
    );
}

#[tokio::test]
async fn what_is_given_again_writes_nothing() {
    let (folder, time) = (Folder::new(), Time::new());
    let store = open(&folder.file(), &time, 100).await;
    let it = claim("it");
    let Claimed::Run(grant) = store.claim(&it).await.unwrap() else { panic!("not granted") };
    let end = End { state: State::Done(b"paid".to_vec()), ttl: 60_000 };
    assert!(store.finalize(&it.key, grant.token, &end).await.unwrap());

    let other = Connection::open(folder.file()).unwrap();
    let version = || other.pragma_query_value(None, "data_version", |row| row.get::<_, i64>(0));
    let before = version().unwrap();
    for _ in 0..3 {
        assert!(matches!(store.claim(&claim("it")).await.unwrap(), Claimed::Settled(_)));
        assert!(store.finalize(&it.key, grant.token, &end).await.unwrap());
    }
    assert_eq!(version().unwrap(), before);
    store.claim(&claim("new")).await.unwrap();
    assert_ne!(version().unwrap(), before);
}
