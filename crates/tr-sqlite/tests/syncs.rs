//! How often the disk is made to write. One test: the count is the process's.
#![cfg(target_os = "linux")]

use std::{env, fs, process, sync::mpsc::channel, time::Duration};
use tr_sqlite::{Database, Durability, Error, ErrorKind, Pending, Schema};
use tr_testkit::syncs;

const NUMBERS: Schema = Schema::new("numbers", &["CREATE TABLE numbers (n INTEGER) STRICT"]);
const TASKS: u64 = 64;
const WRITES: u64 = 40;

fn insert(database: &Database) -> Pending<()> {
    database.write(|connection| {
        connection.prepare_cached("INSERT INTO numbers VALUES (1)")?.execute([])?;
        Ok(())
    })
}

async fn count(database: &Database) -> u64 {
    let count = database.read(|connection| {
        let sql = "SELECT count(*) FROM numbers";
        Ok::<_, Error>(connection.query_row(sql, [], |row| row.get::<_, i64>(0))?)
    });
    count.await.unwrap().cast_unsigned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn syncs_are_shared_and_their_failures_told() {
    let path = env::temp_dir().join(format!("tr-sqlite-syncs-{}.db", process::id()));
    drop(fs::remove_file(&path));
    let database = Database::open(&path).await.unwrap();
    database.migrate(NUMBERS).await.unwrap();

    // Alone, a write has a sync of its own.
    let before = syncs::count();
    insert(&database).await.unwrap();
    assert_eq!(syncs::count() - before, 1);

    // What waits becomes one commit, also behind a job that fails.
    for fails in [false, true] {
        let (go, wait) = channel::<()>();
        let first = database.write(move |_| {
            let _ = wait.recv();
            if fails { Err(Error::refused("no")) } else { Ok(()) }
        });
        let waiting: Vec<_> = (0..100).map(|_| insert(&database)).collect();
        let before = syncs::count();
        drop(go);
        assert_eq!(first.await.is_err(), fails);
        for one in waiting {
            one.await.unwrap();
        }
        assert_eq!(syncs::count() - before, 1);
    }

    // Many tasks share them, although each waits for its own answer.
    syncs::slow(Duration::from_millis(5));
    let before = syncs::count();
    let tasks = Vec::from_iter((0..TASKS).map(|_| {
        let database = database.clone();
        tokio::spawn(async move {
            for _ in 0..WRITES {
                insert(&database).await.unwrap();
            }
        })
    }));
    for task in tasks {
        task.await.unwrap();
    }
    let made = syncs::count() - before;
    syncs::slow(Duration::ZERO);
    assert!(made < TASKS * WRITES / 30, "{made} syncs for {} writes", TASKS * WRITES);

    // A disk that fails: no caller gets a confirmation, and nothing breaks.
    let kept = count(&database).await;
    syncs::fail(1);
    let error = insert(&database).await.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Io);
    assert!(error.may_be_kept());
    assert!(error.to_string().ends_with("may or may not have been committed"), "{error}");
    assert_eq!(count(&database).await, kept);
    insert(&database).await.unwrap();
    assert_eq!(count(&database).await, kept + 1);
    database.close().await;

    // Without power in mind, no commit waits for the disk.
    let database = Database::builder(&path).durability(Durability::Process).open().await.unwrap();
    insert(&database).await.unwrap();
    let before = syncs::count();
    for _ in 0..100 {
        insert(&database).await.unwrap();
    }
    assert_eq!(syncs::count() - before, 0);
    database.close().await;
    fs::remove_file(path).unwrap();
}
