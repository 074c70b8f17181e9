//! Files that cannot be used: each is refused with a reason, and left as it is.
use crate::scratch::{NUMBERS, Scratch, all, insert};
use std::{
    fs::{self, OpenOptions},
    io::{Seek, SeekFrom, Write},
    path::Path,
    time::Duration,
};
use tr_sqlite::{Database, Error, ErrorKind, rusqlite::Connection};

async fn refused(path: &Path) -> Error {
    let error = Database::open(path).await.unwrap_err();
    assert!(!error.may_be_kept());
    error
}

#[tokio::test]
async fn a_folder_that_is_missing_is_named() {
    let scratch = Scratch::new("no-folder");
    let path = scratch.folder().join("no/such/folder/a.db");
    let error = refused(&path).await;
    assert_eq!(*error.kind(), ErrorKind::NotFound);
    let text = error.to_string();
    assert!(text.starts_with(path.to_str().unwrap()), "{text}");
    assert!(text.contains("choose a file in an existing folder"), "{text}");
}

#[tokio::test]
async fn a_folder_and_an_empty_name_are_no_files() {
    let scratch = Scratch::new("folder");
    assert_eq!(*refused(scratch.folder()).await.kind(), ErrorKind::NotFound);
    assert_eq!(*refused(Path::new("")).await.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_file_that_is_no_database_stays_as_it_is() {
    let scratch = Scratch::new("text");
    let text = "dear diary, ".repeat(1_000);
    fs::write(scratch.file(), &text).unwrap();
    let error = refused(&scratch.file()).await;
    assert_eq!(*error.kind(), ErrorKind::NotADatabase);
    assert_eq!(fs::read_to_string(scratch.file()).unwrap(), text);
}

#[tokio::test]
async fn another_programs_database_stays_as_it_is() {
    for marked in [false, true] {
        let scratch = Scratch::new(&format!("foreign-{marked}"));
        let other = Connection::open(scratch.file()).unwrap();
        if marked {
            other.pragma_update(None, "application_id", 42).unwrap();
        } else {
            other.execute_batch("CREATE TABLE users (name TEXT)").unwrap();
        }
        drop(other);
        let before = fs::read(scratch.file()).unwrap();
        let error = refused(&scratch.file()).await;
        assert_eq!(*error.kind(), ErrorKind::Foreign);
        assert_eq!(fs::read(scratch.file()).unwrap(), before);
    }
}

#[tokio::test]
async fn damage_is_found_when_it_is_read() {
    let scratch = Scratch::new("damage");
    let database = scratch.open().await;
    for n in 0..2_000 {
        drop(insert(&database, n));
    }
    database.close().await;
    let mut file = OpenOptions::new().write(true).open(scratch.file()).unwrap();
    file.seek(SeekFrom::Start(4_096)).unwrap();
    file.write_all(&vec![0xA5; 4 * 4_096]).unwrap();
    drop(file);

    let used = async {
        let database = Database::open(scratch.file()).await?;
        database.migrate(NUMBERS).await?;
        insert(&database, 5_000).await
    };
    let error = used.await.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains(".recover"), "{error}");
}

#[tokio::test]
async fn a_lock_is_waited_for_and_then_reported() {
    let scratch = Scratch::new("locked");
    scratch.open().await.close().await;
    let database = Database::builder(scratch.file())
        .lock_wait(Duration::from_millis(60))
        .open()
        .await
        .unwrap();
    let other = Connection::open(scratch.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let waiting = Vec::from_iter((0..3).map(|n| insert(&database, n)));
    for one in waiting {
        let error = one.await.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Locked);
        assert!(error.to_string().contains("another process keeps the file locked"), "{error}");
    }
    assert_eq!(all(&database).await, [0; 0], "a read needs no lock");
    other.execute_batch("COMMIT").unwrap();
    insert(&database, 7).await.unwrap();
    assert_eq!(all(&database).await, [7]);
}

#[tokio::test]
async fn a_lock_that_is_given_back_in_time_harms_nobody() {
    let scratch = Scratch::new("unlocked");
    let database = scratch.open().await;
    let other = Connection::open(scratch.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut waiting = Box::pin(insert(&database, 1));
    assert!(tokio::time::timeout(Duration::from_millis(20), &mut waiting).await.is_err());
    other.execute_batch("COMMIT").unwrap();
    waiting.await.unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_was_replaced_is_not_written() {
    let scratch = Scratch::new("moved");
    let database = scratch.open().await;
    insert(&database, 1).await.unwrap();
    fs::rename(scratch.file(), scratch.folder().join("elsewhere.db")).unwrap();
    let error = insert(&database, 2).await.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Moved);
    fs::rename(scratch.folder().join("elsewhere.db"), scratch.file()).unwrap();
    insert(&database, 3).await.unwrap();
    assert_eq!(all(&database).await, [1, 3]);
}

#[cfg(unix)]
#[tokio::test]
async fn a_new_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new("mode");
    let database = scratch.open().await;
    insert(&database, 1).await.unwrap();
    for file in fs::read_dir(scratch.folder()).unwrap() {
        let file = file.unwrap();
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{file:?}");
    }
}
