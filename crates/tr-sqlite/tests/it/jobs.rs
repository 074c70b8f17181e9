//! Writes: one commit for many, each with its own fate.
use crate::scratch::{Scratch, all, hold, insert, numbers};
use std::{
    fs,
    sync::{Arc, Barrier, mpsc::channel},
    time::Duration,
};
use tokio::time::timeout;
use tr_sqlite::{
    Database, Error, ErrorKind,
    rusqlite::{self, Connection},
};

#[tokio::test]
async fn what_waits_is_written_together() {
    let scratch = Scratch::new("together");
    let database = scratch.open().await;
    let go = hold(&database);
    let waiting: Vec<_> = (0..100).map(|n| insert(&database, n)).collect();
    drop(go);
    for one in waiting {
        one.await.unwrap();
    }
    assert_eq!(all(&database).await, Vec::from_iter(0..100));
}

#[tokio::test]
async fn a_failing_job_undoes_itself_alone() {
    let scratch = Scratch::new("failing");
    let database = scratch.open().await;
    let go = hold(&database);
    let first = insert(&database, 1);
    let failing = database.write(|connection| {
        connection.execute("INSERT INTO numbers VALUES (2)", [])?;
        connection.execute("INSERT INTO numbers VALUES (1)", [])?;
        Ok::<_, Error>(())
    });
    let last = insert(&database, 3);
    drop(go);

    let (first, failing, last) = (first.await, failing.await.unwrap_err(), last.await);
    assert!(first.is_ok() && last.is_ok());
    assert_eq!(*failing.kind(), ErrorKind::Statement);
    assert!(failing.to_string().contains("UNIQUE constraint failed"), "{failing}");
    assert!(!failing.may_be_kept());
    assert_eq!(all(&database).await, [1, 3]);
}

/// The first has the transaction to itself.
#[tokio::test]
async fn a_failing_first_job_undoes_itself_alone() {
    let scratch = Scratch::new("first-failing");
    let database = scratch.open().await;
    let (go, wait) = channel::<()>();
    let first = database.write(move |connection| {
        connection.execute("INSERT INTO numbers VALUES (2)", [])?;
        let _ = wait.recv();
        connection.execute("INSERT INTO numbers VALUES (2)", [])?;
        Ok::<_, Error>(())
    });
    let others = [insert(&database, 1), insert(&database, 2)];
    drop(go);
    assert_eq!(*first.await.unwrap_err().kind(), ErrorKind::Statement);
    for other in others {
        other.await.unwrap();
    }
    assert_eq!(all(&database).await, [1, 2]);
}

#[tokio::test]
async fn a_job_fails_with_an_error_of_its_own() {
    #[derive(Debug, PartialEq)]
    enum Refusal {
        TooMany,
        Store(ErrorKind),
    }
    impl From<Error> for Refusal {
        fn from(error: Error) -> Self {
            Self::Store(error.kind().clone())
        }
    }
    let scratch = Scratch::new("own-error");
    let database = scratch.open().await;
    let refused = database.write(|_| Err::<(), _>(Refusal::TooMany)).await;
    assert_eq!(refused, Err(Refusal::TooMany));
    database.close().await;
    let refused = database.write(|_| Err::<(), _>(Refusal::TooMany)).await;
    assert_eq!(refused, Err(Refusal::Store(ErrorKind::Closed)));
}

#[tokio::test]
async fn a_panicking_job_undoes_itself_alone() {
    let scratch = Scratch::new("panic");
    let database = scratch.open().await;
    let go = hold(&database);
    let first = insert(&database, 1);
    let panicking = database.write(|connection| {
        connection.execute("INSERT INTO numbers VALUES (2)", [])?;
        if all_is_lost() {
            panic!("no such luck");
        }
        Ok::<_, Error>(())
    });
    let last = insert(&database, 3);
    drop(go);

    assert!(first.await.is_ok());
    let error = panicking.await.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Panicked);
    assert!(error.to_string().contains("no such luck"), "{error}");
    assert!(last.await.is_ok());
    assert_eq!(all(&database).await, [1, 3]);
}

#[tokio::test]
async fn an_answer_that_panics_harms_nobody() {
    struct Answer;
    impl Drop for Answer {
        fn drop(&mut self) {
            assert!(!all_is_lost(), "no such luck");
        }
    }
    let scratch = Scratch::new("answer");
    let database = scratch.open().await;
    // It comes when no task waits for it any more.
    let gone = Arc::new(Barrier::new(3));
    let late = || {
        let gone = gone.clone();
        move |_: &Connection| {
            gone.wait();
            Ok::<_, Error>(Answer)
        }
    };
    drop(database.write(late()));
    drop(database.read(late()));
    gone.wait();
    insert(&database, 1).await.unwrap();
    assert_eq!(all(&database).await, [1]);
}

fn all_is_lost() -> bool {
    true
}

#[tokio::test]
async fn a_job_that_ends_the_transaction_fails_with_its_group() {
    let scratch = Scratch::new("rollback");
    let database = scratch.open().await;
    let go = hold(&database);
    let first = insert(&database, 1);
    let ending = database.write(|connection| Ok::<_, Error>(connection.execute_batch("ROLLBACK")?));
    drop(go);
    assert_eq!(*first.await.unwrap_err().kind(), ErrorKind::Undone);
    assert_eq!(*ending.await.unwrap_err().kind(), ErrorKind::Undone);

    insert(&database, 2).await.unwrap();
    assert_eq!(all(&database).await, [2], "a confirmed write is there, a failed one is not");
}

#[tokio::test]
async fn what_nobody_waits_for_is_done_all_the_same() {
    let scratch = Scratch::new("dropped");
    let database = scratch.open().await;
    let mut rng = fastrand::Rng::with_seed(7);
    for n in 0..1_000 {
        let pending = insert(&database, n);
        if rng.bool() {
            drop(timeout(Duration::ZERO, pending).await);
        }
    }
    insert(&database, 1_000).await.unwrap();
    assert_eq!(all(&database).await, Vec::from_iter(0..=1_000));
}

#[tokio::test]
async fn past_the_limit_a_write_is_refused() {
    let scratch = Scratch::new("overload");
    scratch.open().await.close().await;
    let database = Database::builder(scratch.file()).max_waiting(2).open().await.unwrap();
    let go = hold(&database);
    let waiting = [insert(&database, 1), insert(&database, 2)];
    let error = insert(&database, 3).await.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Overloaded);
    drop(go);
    for one in waiting {
        one.await.unwrap();
    }
    insert(&database, 4).await.unwrap();
    assert_eq!(all(&database).await, [1, 2, 4]);
}

#[tokio::test]
async fn closing_writes_what_was_sent() {
    let scratch = Scratch::new("close");
    let database = scratch.open().await;
    let (other, go) = (database.clone(), hold(&database));
    let pending = insert(&database, 1);
    let closing = tokio::spawn(async move { other.close().await });
    tokio::task::yield_now().await;
    drop(go);
    closing.await.unwrap();
    pending.await.unwrap();
    assert_eq!(*insert(&database, 2).await.unwrap_err().kind(), ErrorKind::Closed);
    database.close().await;

    let files: Vec<_> = fs::read_dir(scratch.folder()).unwrap().collect();
    assert_eq!(files.len(), 1, "all is in the one file: {files:?}");
    assert_eq!(all(&scratch.open().await).await, [1]);
}

#[tokio::test]
async fn the_last_handle_leaves_nothing_behind() {
    let scratch = Scratch::new("drop-all");
    let database = scratch.open().await;
    let go = hold(&database);
    let pending = Vec::from_iter((0..10).map(|n| insert(&database, n)));
    drop(database);
    drop(go);
    for one in pending {
        one.await.unwrap();
    }
    assert_eq!(all(&numbers(&scratch.file()).await).await, Vec::from_iter(0..10));
}

#[tokio::test]
async fn a_full_disk_fails_the_write_and_keeps_the_rest() {
    let scratch = Scratch::new("full");
    let database = scratch.open().await;
    insert(&database, 1).await.unwrap();
    // SQLite's own limit, which fails as a full disk does.
    let limit = |database: &Database, pages: i64| {
        database.write(move |connection| {
            Ok::<_, Error>(connection.pragma_update(None, "max_page_count", pages)?)
        })
    };
    let fill = |connection: &rusqlite::Connection| {
        for n in 2..10_000 {
            connection.execute("INSERT INTO numbers VALUES (?1)", [n])?;
        }
        Ok::<_, Error>(())
    };
    limit(&database, 10).await.unwrap();
    let error = database.write(fill).await.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Full);
    assert!(error.to_string().contains("the disk is full"), "{error}");
    assert_eq!(all(&database).await, [1]);

    limit(&database, 1_000_000).await.unwrap();
    database.write(fill).await.unwrap();
    assert_eq!(all(&database).await.len(), 9_999);
}
