//! Files that are not well, and what is said of them.
use super::subject::TempFile;
use tr_integrity::{
    Format, Sessions,
    sqlite::{Database, Durability, Sqlite},
    store::{Entry, Revision, SessionStore, StoreErrorKind},
};
use tr_sqlite::{ErrorKind, rusqlite::Connection};

fn entry(number: u64) -> Entry {
    Entry { revision: Revision { number, stamp: number }, at: 0, body: b"some text".to_vec() }
}

#[tokio::test]
async fn a_newer_file_is_refused_and_not_changed() {
    let file = TempFile::new();
    Sqlite::open(file.path()).await.unwrap().close().await;
    let raw = Connection::open(file.path()).unwrap();
    raw.execute("UPDATE tr_schema SET format = 7 WHERE part = 'sessions'", []).unwrap();
    let error = Sqlite::open(file.path()).await.unwrap_err();
    let newer = ErrorKind::Newer { part: "sessions".into(), found: 7, known: 1 };
    assert_eq!(*error.kind(), newer, "{error}");
    let format: u32 = raw
        .query_row("SELECT format FROM tr_schema WHERE part = 'sessions'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(format, 7);
}

#[tokio::test]
async fn who_only_looks_finds_sessions_and_writes_nothing() {
    let file = TempFile::new();
    let store = Sqlite::open(file.path()).await.unwrap();
    store.append("s", None, &entry(1)).await.unwrap();
    let looking = Sqlite::open_read_only(file.path()).await.unwrap();
    assert_eq!(looking.load("s").await.unwrap(), [entry(1)]);
    store.append("t", None, &entry(1)).await.unwrap();
    assert_eq!(looking.list(None, 9).await.unwrap().len(), 2);
    let error = looking.append("s", Some(entry(1).revision), &entry(2)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Refused, "{error}");
    looking.close().await;
    assert_eq!(store.load("s").await.unwrap().len(), 1);
}

#[tokio::test]
async fn who_only_looks_makes_no_sessions_in_another_database() {
    let file = TempFile::new();
    Database::open(file.path()).await.unwrap().close().await;
    let before = std::fs::read(file.path()).unwrap();
    let error = Sqlite::open_read_only(file.path()).await.unwrap_err();
    let older = ErrorKind::Older { part: "sessions".into(), found: 0, known: 1 };
    assert_eq!(*error.kind(), older, "{error}");
    assert_eq!(std::fs::read(file.path()).unwrap(), before);
    assert!(!file.path().with_extension("db-wal").exists());
}

#[tokio::test]
async fn a_damaged_row_is_named() {
    let file = TempFile::new();
    let store = Sqlite::open(file.path()).await.unwrap();
    let process = || Sessions::builder(Format::OpenAiChat).store(store.clone()).build().unwrap();
    let sessions = process();
    for text in ["one", "two"] {
        let raw = format!(r#"{{"role":"user","content":"{text}"}}"#);
        let message = Format::OpenAiChat.read(raw).unwrap();
        sessions.change("s", |session, _| session.push(message)).await.unwrap();
    }
    let raw = Connection::open(file.path()).unwrap();
    let damage =
        "UPDATE session_log SET body = CAST(replace(CAST(body AS TEXT), 'two', 'tow') AS BLOB)
                  WHERE revision = 2";
    assert_eq!(raw.execute(damage, []).unwrap(), 1);
    let error = process().load("s").await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreadable);
    let text = error.to_string();
    assert!(text.contains("session \"s\", entry 2: it is damaged"), "{text}");

    raw.execute("UPDATE session_log SET stamp = 5 WHERE revision = 1", []).unwrap();
    let error = process().load("s").await.unwrap_err().to_string();
    assert!(error.contains("session \"s\", entry 1: it is damaged"), "{error}");

    raw.execute("DELETE FROM session_log WHERE revision = 1", []).unwrap();
    let error = process().load("s").await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreadable);
}

#[tokio::test]
async fn a_row_of_a_wrong_kind_is_unreadable() {
    let file = TempFile::new();
    let store = Sqlite::open(file.path()).await.unwrap();
    store.append("s", None, &entry(1)).await.unwrap();
    let raw = Connection::open(file.path()).unwrap();
    raw.execute_batch(
        "DROP TABLE session_log;
         CREATE TABLE session_log (place, revision, stamp, at, body);
         INSERT INTO session_log VALUES (1 << 32, 1, 'x', 0, 'text');",
    )
    .unwrap();
    let error = store.load("s").await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{error}");
}

#[tokio::test]
async fn a_locked_file_is_unreachable_and_nothing_is_lost() {
    let file = TempFile::new();
    let database = Database::builder(file.path())
        .lock_wait(std::time::Duration::from_millis(20))
        .open()
        .await
        .unwrap();
    let store = Sqlite::on(database).await.unwrap();
    let raw = Connection::open(file.path()).unwrap();
    raw.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.append("s", None, &entry(1)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    raw.execute_batch("ROLLBACK").unwrap();
    store.append("s", None, &entry(1)).await.unwrap();
    store.close().await;
    let error = store.append("s", Some(entry(1).revision), &entry(2)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Refused, "{error}");
}

/// The last place of one session and the first of the next stand side by side.
#[tokio::test]
async fn a_full_session_takes_no_more_and_leaves_others_alone() {
    let file = TempFile::new();
    let store = Sqlite::open(file.path()).await.unwrap();
    let (last, over) = (entry(u64::from(u32::MAX)), entry(1 << 32));
    store.append("full", None, &last).await.unwrap();
    store.append("next", None, &entry(1)).await.unwrap();
    let error = store.append("full", Some(last.revision), &over).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("no more can follow"), "{error}");
    assert_eq!(store.load("full").await.unwrap(), [last]);
    assert!(store.delete("full").await.unwrap());
    assert_eq!(store.load("next").await.unwrap(), [entry(1)]);
}

#[tokio::test]
async fn a_check_warns_of_what_power_may_take() {
    let file = TempFile::new();
    let open = async |durability| {
        let database = Database::builder(file.path()).durability(durability).open().await.unwrap();
        Sqlite::on(database).await.unwrap()
    };
    let sound = open(Durability::Power).await;
    assert_eq!(sound.check().await.unwrap(), [""; 0]);
    let warnings = open(Durability::Process).await.check().await.unwrap();
    assert!(warnings[0].starts_with("a loss of power may take the last turns"), "{warnings:?}");
    // It leaves no trace.
    assert!(sound.list(None, 9).await.unwrap().is_empty());
    let raw = Connection::open(file.path()).unwrap();
    let rows: u32 =
        raw.query_row("SELECT count(*) FROM session_log", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 0);
}

#[tokio::test]
async fn people_can_look_into_the_file() {
    let file = TempFile::new();
    let store = Sqlite::open(file.path()).await.unwrap();
    store.append("s", None, &entry(1)).await.unwrap();
    store.append("s", Some(entry(1).revision), &entry(2)).await.unwrap();
    let raw = Connection::open(file.path()).unwrap();
    let seen: (String, u32, String, u32, u32) = raw
        .query_row("SELECT * FROM sessions_now", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
        })
        .unwrap();
    assert_eq!(seen, ("s".into(), 2, "1970-01-01 00:00:00".into(), 2, 18));
}
