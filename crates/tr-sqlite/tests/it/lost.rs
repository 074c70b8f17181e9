//! Files of which something is lost: they are refused, and left as they are.
use crate::scratch::{NUMBERS, Scratch, all, insert, numbers};
use std::{
    fs,
    path::{Path, PathBuf},
};
use tr_sqlite::{Database, ErrorKind};

fn beside(file: &Path, ending: &str) -> PathBuf {
    file.with_file_name(format!("numbers.db{ending}"))
}

/// The files that a crash leaves after these commits.
async fn crashed(name: &str, commits: u64) -> Scratch {
    let (scratch, crashed) = (Scratch::new(&format!("{name}-live")), Scratch::new(name));
    let writer = scratch.open().await;
    for n in 0..commits {
        insert(&writer, n).await.unwrap();
    }
    for ending in ["", "-wal", "-shm"] {
        fs::copy(beside(&scratch.file(), ending), beside(&crashed.file(), ending)).unwrap();
    }
    writer.close().await;
    crashed
}

fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let files = files.filter(|path| !path.to_str().unwrap().ends_with("-shm"));
    let mut all: Vec<_> = files.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    all.sort();
    all
}

/// The file is refused, by each way to open it, and not changed.
async fn refused(scratch: &Scratch, said: &str) {
    let before = contents(scratch.folder());
    for _ in 0..2 {
        let opened = Database::open(scratch.file()).await.unwrap_err();
        let checked = Database::builder(scratch.file()).check().unwrap_err();
        for error in [opened, checked] {
            assert_eq!(*error.kind(), ErrorKind::Lost, "{error}");
            assert!(error.to_string().contains(said), "{error}");
        }
        assert!(contents(scratch.folder()) == before, "nothing has changed");
    }
}

/// What is left can be used from then on.
async fn accepted(scratch: &Scratch, left: &[u64]) {
    let database = Database::builder(scratch.file()).accept_loss().open().await.unwrap();
    database.migrate(NUMBERS).await.unwrap();
    assert_eq!(all(&database).await, left);
    database.close().await;
    Database::builder(scratch.file()).check().unwrap();
    numbers(&scratch.file()).await.close().await;
}

#[tokio::test]
async fn any_missing_file_of_the_set_is_noticed() {
    let whole = crashed("lost-none", 5).await;
    Database::builder(whole.file()).check().unwrap();
    fs::remove_file(beside(&whole.file(), "-shm")).unwrap();
    assert_eq!(all(&numbers(&whole.file()).await).await, [0, 1, 2, 3, 4]);

    let log = crashed("lost-log", 5).await;
    fs::remove_file(beside(&log.file(), "-wal")).unwrap();
    refused(&log, "numbers.db-wal is missing").await;
    accepted(&log, &[]).await;

    let emptied = crashed("lost-emptied", 5).await;
    fs::write(beside(&emptied.file(), "-wal"), "").unwrap();
    refused(&emptied, "numbers.db-wal is missing").await;

    for gone in [true, false] {
        let file = crashed("lost-file", 5).await;
        match gone {
            true => fs::remove_file(file.file()).unwrap(),
            false => fs::write(file.file(), "").unwrap(),
        }
        refused(&file, "the file is missing or empty, and its log is not").await;
        accepted(&file, &[]).await;
    }
}

#[tokio::test]
async fn a_damaged_log_is_refused_and_can_be_read_up_to_there() {
    let scratch = crashed("lost-damaged", 9).await;
    let log = beside(&scratch.file(), "-wal");
    let mut bytes = fs::read(&log).unwrap();
    let (middle, page) = (bytes.len() / 2, 4_096);
    bytes[middle..middle + page].fill(0xa5);
    fs::write(&log, bytes).unwrap();
    refused(&scratch, "is damaged at frame").await;
    let reader = Database::builder(scratch.file()).read_only().open().await.unwrap();
    let read = all(&reader).await;
    assert!((1..9).contains(&read.len()), "{read:?}");
    reader.close().await;
    accepted(&scratch, &read).await;
}

#[tokio::test]
async fn the_last_close_leaves_one_file_and_no_mark() {
    let scratch = Scratch::new("lost-closed");
    let (one, other) = (scratch.open().await, scratch.open().await);
    insert(&one, 1).await.unwrap();
    insert(&other, 2).await.unwrap();
    one.close().await;
    insert(&other, 3).await.unwrap();
    other.close().await;
    assert_eq!(fs::read_dir(scratch.folder()).unwrap().count(), 1);
    Database::builder(scratch.file()).check().unwrap();
    assert_eq!(all(&scratch.open().await).await, [1, 2, 3]);
}

/// From then on the file alone is known to lack what came later.
#[tokio::test]
async fn the_log_is_emptied_into_the_file_while_it_is_open() {
    let (scratch, copy) = (Scratch::new("lost-regular"), Scratch::new("lost-regular-copy"));
    let database = scratch.open().await;
    for n in 0..300 {
        insert(&database, n).await.unwrap();
    }
    fs::copy(scratch.file(), copy.file()).unwrap();
    refused(&copy, "numbers.db-wal is missing").await;
    let left = Database::builder(copy.file()).accept_loss().open().await.unwrap();
    assert!(all(&left).await.len() > 250);
    database.close().await;
}

/// As `sqlite3` does when it is closed.
#[tokio::test]
async fn a_log_that_another_program_emptied_is_not_missed() {
    let scratch = crashed("lost-shell", 5).await;
    let shell = tr_sqlite::rusqlite::Connection::open(scratch.file()).unwrap();
    shell.query_row("SELECT count(*) FROM numbers", [], |row| row.get::<_, i64>(0)).unwrap();
    shell.close().unwrap();
    assert!(!beside(&scratch.file(), "-wal").exists());
    assert_eq!(all(&numbers(&scratch.file()).await).await, [0, 1, 2, 3, 4]);
}

#[tokio::test]
async fn a_copy_has_what_was_confirmed_and_is_whole() {
    let (scratch, copies) = (Scratch::new("lost-copy"), Scratch::new("lost-copies"));
    let database = scratch.open().await;
    for n in 0..20 {
        insert(&database, n).await.unwrap();
    }
    let later = Vec::from_iter((20..200).map(|n| insert(&database, n)));
    Database::builder(scratch.file()).copy_to(&copies.file()).unwrap();
    for one in later {
        one.await.unwrap();
    }
    database.close().await;
    Database::builder(copies.file()).check().unwrap();
    let copied = all(&numbers(&copies.file()).await).await;
    assert!(copied.len() >= 20);
    assert_eq!(copied, Vec::from_iter(0..copied.len() as u64));
    let again = Database::builder(scratch.file()).copy_to(&copies.file());
    assert!(again.is_err(), "a file that exists is not overwritten");
}
