//! A file that is only read: beside its writers, and left as it is.
use crate::scratch::{NUMBERS, Scratch, all, insert, numbers};
use std::{collections::BTreeMap, fs, path::Path};
use tr_sqlite::{Database, Error, ErrorKind, Schema, rusqlite::Connection};

async fn open(file: &Path) -> Result<Database, Error> {
    let database = Database::builder(file).read_only().open().await?;
    database.migrate(NUMBERS).await?;
    Ok(database)
}

/// What is in a folder, but for SQLite's table of locks.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let named = files.map(|path| {
        (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap())
    });
    named.filter(|(name, _)| !name.ends_with("-shm")).collect()
}

#[tokio::test]
async fn a_file_that_nobody_has_open_is_left_alone() {
    let scratch = Scratch::new("look-alone");
    let writer = scratch.open().await;
    insert(&writer, 1).await.unwrap();
    writer.close().await;
    let before = contents(scratch.folder());
    let reader = open(&scratch.file()).await.unwrap();
    assert_eq!(all(&reader).await, [1]);
    let error = insert(&reader, 2).await.unwrap_err();
    assert_eq!((error.kind(), error.may_be_kept()), (&ErrorKind::ReadOnly, false));
    reader.close().await;
    assert_eq!(contents(scratch.folder()), before, "and nothing is left beside it");
    assert_eq!(fs::read_dir(scratch.folder()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_file_that_is_written_meanwhile_is_read() {
    let scratch = Scratch::new("look-beside");
    let writer = scratch.open().await;
    insert(&writer, 1).await.unwrap();
    let before = contents(scratch.folder());
    let reader = open(&scratch.file()).await.unwrap();
    assert_eq!(all(&reader).await, [1]);
    assert_eq!(contents(scratch.folder()), before);
    insert(&writer, 2).await.unwrap();
    assert_eq!(all(&reader).await, [1, 2]);
    reader.close().await;
    insert(&writer, 3).await.unwrap();
    writer.close().await;
    assert_eq!(all(&numbers(&scratch.file()).await).await, [1, 2, 3]);
}

#[tokio::test]
async fn what_a_crash_has_left_is_read_and_stays() {
    let (scratch, crashed) = (Scratch::new("look-live"), Scratch::new("look-crashed"));
    let writer = scratch.open().await;
    insert(&writer, 1).await.unwrap();
    for ending in ["", "-wal", "-shm"] {
        let name = format!("numbers.db{ending}");
        fs::copy(scratch.folder().join(&name), crashed.folder().join(&name)).unwrap();
    }
    let before = contents(crashed.folder());
    let reader = open(&crashed.file()).await.unwrap();
    assert_eq!(all(&reader).await, [1]);
    reader.close().await;
    assert_eq!(contents(crashed.folder()), before);
    assert_eq!(before.len(), 2, "the file and its log");
    writer.close().await;
}

#[tokio::test]
async fn nothing_is_made() {
    let scratch = Scratch::new("look-nothing");
    let error = open(&scratch.file()).await.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::NotFound);
    assert_eq!(*open(scratch.folder()).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(fs::read_dir(scratch.folder()).unwrap().count(), 0);
}

#[tokio::test]
async fn what_is_not_ours_is_not_touched() {
    let scratch = Scratch::new("look-foreign");
    for text in ["", "dear diary", &"dear diary, ".repeat(1_000)] {
        fs::write(scratch.file(), text).unwrap();
        assert_eq!(*open(&scratch.file()).await.unwrap_err().kind(), ErrorKind::NotADatabase);
        assert_eq!(fs::read_to_string(scratch.file()).unwrap(), text);
    }
    fs::remove_file(scratch.file()).unwrap();
    let other = Connection::open(scratch.file()).unwrap();
    other.execute_batch("CREATE TABLE users (name TEXT)").unwrap();
    drop(other);
    let before = contents(scratch.folder());
    assert_eq!(*open(&scratch.file()).await.unwrap_err().kind(), ErrorKind::Foreign);
    assert_eq!(contents(scratch.folder()), before);
}

#[tokio::test]
async fn other_formats_are_named() {
    const NEXT: Schema = Schema::new("numbers", &["CREATE TABLE n (n)", "CREATE TABLE m (m)"]);
    let scratch = Scratch::new("look-formats");
    let empty = Database::open(scratch.file()).await.unwrap();
    empty.close().await;
    let older = |found, known| ErrorKind::Older { part: "numbers".into(), found, known };
    let error = open(&scratch.file()).await.unwrap_err();
    assert_eq!(*error.kind(), older(0, 1));
    assert!(error.to_string().contains("the file was not changed"), "{error}");

    scratch.open().await.close().await;
    let reader = Database::builder(scratch.file()).read_only().open().await.unwrap();
    let error = reader.migrate(NEXT).await.unwrap_err();
    assert_eq!(*error.kind(), older(1, 2));
    reader.close().await;

    let writer = Database::open(scratch.file()).await.unwrap();
    writer.migrate(NEXT).await.unwrap();
    writer.close().await;
    let error = open(&scratch.file()).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Newer { found: 2, known: 1, .. }), "{error}");
}
