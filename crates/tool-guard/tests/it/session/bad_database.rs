//! Databases that cannot be used: each is named with what to do about it, and stays as it is.
use super::{
    bad_input::{no_session, refused, refused_as, set_mode, unprivileged},
    folder::Folder,
};
use std::{fs, path::Path, sync::mpsc::channel};
use tr_integrity::{
    Sessions,
    sqlite::{Database, Error, Sqlite},
};
use tr_transcript::Format;

/// A database with one session, `s`, which is refused for its first message.
pub(crate) async fn database(path: &Path) -> Sqlite {
    database_of(path, "s").await
}

/// The same with a session that is called otherwise.
pub(crate) async fn database_of(path: &Path, id: &str) -> Sqlite {
    let store = Sqlite::open(path).await.unwrap();
    let sessions =
        Sessions::builder(Format::AnthropicMessages).store(store.clone()).build().unwrap();
    let orphan =
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"gone","content":"1"}]}"#;
    let orphan = Format::AnthropicMessages.read(orphan).unwrap();
    sessions.change(id, |session, _| session.push(orphan)).await.unwrap();
    store
}

/// Does something to a database that no agent does.
async fn tamper(path: &Path, sql: &'static str) {
    let database = Database::open(path).await.unwrap();
    let done = database.write(move |connection| Ok::<_, Error>(connection.execute_batch(sql)?));
    done.await.unwrap();
    database.close().await;
}

#[tokio::test]
async fn databases_without_sessions() {
    let folder = Folder::new();
    Database::open(folder.path("calls.db")).await.unwrap().close().await;
    Sqlite::open(folder.path("none.db")).await.unwrap().close().await;
    database(&folder.path("other.db")).await.close().await;
    tamper(&folder.path("other.db"), "PRAGMA application_id = 42").await;
    no_session(&folder, "calls.db", "it is a database without sessions");
    no_session(&folder, "none.db", "it is a database without sessions");
    no_session(&folder, "other.db", "it is another program's database");
    let done = folder.ends(2, &["check", "."]);
    assert!(done.out.contains("./calls.db (it is a database without sessions)"), "{}", done.out);
}

#[tokio::test]
async fn other_formats_and_damage() {
    let folder = Folder::new();
    for name in ["newer.db", "other.db", "changed.db", "damaged.db", "cut.db"] {
        database(&folder.path(name)).await.close().await;
    }
    tamper(&folder.path("newer.db"), "UPDATE tr_schema SET format = 7 WHERE part = 'sessions'")
        .await;
    refused(&folder, "newer.db", "was written by a newer version: its format is 7, known is 1");
    tamper(&folder.path("changed.db"), "UPDATE session_log SET stamp = 5").await;
    let what = "changed.db#s cannot be read: session \"s\", entry 1: it is damaged";
    refused_as(&folder, "changed.db", what);
    tamper(&folder.path("other.db"), "ALTER TABLE sessions RENAME COLUMN id TO name").await;
    refused(&folder, "other.db", "has other tables than its format says");
    let mut bytes = fs::read(folder.path("damaged.db")).unwrap();
    bytes[4_096..].fill(0xA5);
    fs::write(folder.path("damaged.db"), &bytes).unwrap();
    refused(&folder, "damaged.db", "is a damaged database");
    fs::write(folder.path("cut.db"), &bytes[..50]).unwrap();
    refused(&folder, "cut.db", "is a damaged database");
}

#[tokio::test]
async fn a_database_that_is_locked_can_be_read_and_is_not_written() {
    let folder = Folder::new();
    database(&folder.path("s.db")).await.close().await;
    let writer = Database::open(folder.path("s.db")).await.unwrap();
    let (done, wait) = channel::<()>();
    let held = writer.write(move |_| {
        // Until the other side is dropped.
        let _ = wait.recv();
        Ok::<_, Error>(())
    });
    let checked = folder.session(&["check", "s.db"]);
    let repaired = folder.session(&["repair", "--write", "s.db"]);
    assert_eq!(checked.code, 1, "{}", checked.err);
    assert_eq!(repaired.code, 2, "{}", repaired.out);
    assert!(repaired.err.starts_with("✗ s.db#s is locked by another program"), "{}", repaired.err);
    assert!(repaired.err.contains("→ `fuser "), "{}", repaired.err);
    drop(done);
    held.await.unwrap();
    writer.close().await;
    assert_eq!(folder.names(), ["s.db"]);
}

#[tokio::test]
async fn a_database_that_may_not_be_written_can_be_read() {
    let folder = Folder::new();
    set_mode(&folder.path(""), 0o755);
    fs::create_dir(folder.path("closed")).unwrap();
    database(&folder.path("closed/s.db")).await.close().await;
    let before = fs::read(folder.path("closed/s.db")).unwrap();
    set_mode(&folder.path("closed/s.db"), 0o444);
    set_mode(&folder.path("closed"), 0o555);
    let (code, err) = unprivileged(&folder, &["check", "closed/s.db"]);
    assert_eq!((code, &*err), (1, ""));
    let (code, err) = unprivileged(&folder, &["repair", "--write", "closed/s.db"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.starts_with("✗ closed/s.db#s may not be read or written by you"), "{err}");
    assert!(err.contains("→ run as the user that owns it"), "{err}");
    set_mode(&folder.path("closed"), 0o755);
    assert_eq!(fs::read(folder.path("closed/s.db")).unwrap(), before);
    assert_eq!(fs::read_dir(folder.path("closed")).unwrap().count(), 1);

    set_mode(&folder.path("closed/s.db"), 0o000);
    let (code, err) = unprivileged(&folder, &["check", "closed/s.db"]);
    assert_eq!(code, 2);
    assert!(err.contains("Permission denied"), "{err}");
}
