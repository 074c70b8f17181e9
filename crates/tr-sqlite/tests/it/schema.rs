//! Formats: forward only, all or nothing, several parts in one file.
use crate::scratch::{LOCK_WAIT, NUMBERS, Scratch, all, insert};
use tr_sqlite::{Database, Error, ErrorKind, Schema};

const FIRST: Schema = Schema::new("notes", &["CREATE TABLE notes (text TEXT) STRICT"]);
const SECOND: Schema = Schema::new(
    "notes",
    &["CREATE TABLE notes (text TEXT) STRICT", "ALTER TABLE notes ADD COLUMN at INTEGER"],
);
const BROKEN: Schema = Schema::new(
    "notes",
    &["CREATE TABLE notes (text TEXT) STRICT", "DELETE FROM notes; ALTER TABLE note ADD COLUMN at"],
);

fn add(database: &Database, sql: &'static str) -> tr_sqlite::Pending<usize> {
    database.write(move |connection| Ok(connection.execute(sql, [])?))
}

#[tokio::test]
async fn a_newer_program_takes_the_steps_that_are_missing() {
    let scratch = Scratch::new("forward");
    let database = Database::open(scratch.file()).await.unwrap();
    database.migrate(FIRST).await.unwrap();
    add(&database, "INSERT INTO notes VALUES ('old')").await.unwrap();
    for _ in 0..2 {
        database.migrate(SECOND).await.unwrap();
    }
    add(&database, "INSERT INTO notes VALUES ('new', 1)").await.unwrap();
}

#[tokio::test]
async fn an_older_program_refuses_and_changes_nothing() {
    let scratch = Scratch::new("backward");
    let database = Database::open(scratch.file()).await.unwrap();
    database.migrate(SECOND).await.unwrap();
    let error = database.migrate(FIRST).await.unwrap_err();
    let newer = ErrorKind::Newer { part: "notes".into(), found: 2, known: 1 };
    assert_eq!(*error.kind(), newer);
    assert!(error.to_string().contains("update this program"), "{error}");
    add(&database, "INSERT INTO notes VALUES ('still', 1)").await.unwrap();
}

#[tokio::test]
async fn a_step_that_fails_leaves_the_format_as_it_was() {
    let scratch = Scratch::new("broken-step");
    let database = Database::open(scratch.file()).await.unwrap();
    database.migrate(FIRST).await.unwrap();
    add(&database, "INSERT INTO notes VALUES ('kept')").await.unwrap();
    let error = database.migrate(BROKEN).await.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Statement);
    assert_eq!(add(&database, "DELETE FROM notes").await.unwrap(), 1);
    database.migrate(SECOND).await.unwrap();
}

#[tokio::test]
async fn parts_share_a_file() {
    let scratch = Scratch::new("parts");
    let database = Database::open(scratch.file()).await.unwrap();
    database.migrate(SECOND).await.unwrap();
    database.migrate(NUMBERS).await.unwrap();
    insert(&database, 1).await.unwrap();
    assert_eq!(all(&database).await, [1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_may_make_one_file_at_once() {
    for round in 0..10 {
        let scratch = Scratch::new(&format!("race-{round}"));
        let tasks = Vec::from_iter((0..8).map(|n| {
            let file = scratch.file();
            tokio::spawn(async move {
                let database = Database::builder(file).lock_wait(LOCK_WAIT).open().await?;
                database.migrate(NUMBERS).await?;
                insert(&database, n).await?;
                Ok::<_, Error>(())
            })
        }));
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        assert_eq!(all(&scratch.open().await).await, Vec::from_iter(0..8));
    }
}
