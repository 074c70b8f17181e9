//! Reads: beside the writes, each of one moment.
use crate::scratch::{Scratch, all, hold, insert};
use std::sync::mpsc::channel;
use tr_sqlite::{Error, ErrorKind};

const COUNT: &str = "SELECT count(*) FROM numbers";

#[tokio::test]
async fn a_read_waits_for_no_write() {
    let scratch = Scratch::new("beside");
    let database = scratch.open().await;
    insert(&database, 1).await.unwrap();
    let go = hold(&database);
    let pending = insert(&database, 2);
    assert_eq!(all(&database).await, [1]);
    drop(go);
    pending.await.unwrap();
    assert_eq!(all(&database).await, [1, 2]);
}

#[tokio::test]
async fn a_read_sees_one_moment() {
    let scratch = Scratch::new("moment");
    let database = scratch.open().await;
    let (written, wait) = channel::<()>();
    let (begun, has_begun) = channel();
    let read = database.read(move |connection| {
        let count = || connection.query_row(COUNT, [], |row| row.get::<_, i64>(0));
        let before = count()?;
        begun.send(()).unwrap();
        wait.recv().unwrap();
        Ok::<_, Error>((before, count()?))
    });
    has_begun.recv().unwrap();
    insert(&database, 1).await.unwrap();
    written.send(()).unwrap();
    assert_eq!(read.await.unwrap(), (0, 0));
    assert_eq!(all(&database).await, [1]);
}

#[tokio::test]
async fn a_read_cannot_write() {
    let scratch = Scratch::new("read-only");
    let database = scratch.open().await;
    let read = database.read(|connection| {
        Ok::<_, Error>(connection.execute("INSERT INTO numbers VALUES (1)", [])?)
    });
    assert_eq!(*read.await.unwrap_err().kind(), ErrorKind::Denied);
    assert_eq!(all(&database).await, [0; 0]);
}

#[tokio::test]
async fn a_panicking_read_is_its_own_affair() {
    let scratch = Scratch::new("read-panic");
    let database = scratch.open().await;
    let read = database.read(|_| -> Result<(), Error> { panic!("no such luck") });
    assert_eq!(*read.await.unwrap_err().kind(), ErrorKind::Panicked);
    insert(&database, 1).await.unwrap();
    assert_eq!(all(&database).await, [1]);
}
