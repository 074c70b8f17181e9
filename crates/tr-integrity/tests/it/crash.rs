//! A process is killed at every labelled point of its turns, and another one loads the session: it
//! is valid, every acknowledged turn is there, and no cycle is there in part.
mod early;
mod harness;

use early::Early;
use harness::{Order, Place};
use std::{env, fs, path::PathBuf, process};
use tr_integrity::sqlite::Sqlite;
use tr_testkit::rounds;

/// A SQLite file in a folder.
struct File;

impl Place for File {
    type Store = Sqlite;

    async fn open(place: &str) -> Sqlite {
        Sqlite::open(place).await.unwrap()
    }
}

/// Removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("tr-sessions-{name}-{}", process::id()));
        drop(fs::remove_dir_all(&folder));
        fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    fn place(&self) -> String {
        self.0.join("sessions.db").to_str().unwrap().to_owned()
    }

    fn ledger(&self) -> PathBuf {
        self.0.join("ledger")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_at_a_point_leaves_whole_turns() {
    if let Some(order) = Order::given() {
        return order.obey::<File>().await;
    }
    let folder = Folder::new("point");
    let test = "crash::a_process_killed_at_a_point_leaves_whole_turns";
    harness::at_points::<File>(test, &folder.place(), folder.ledger(), rounds(50, 1_000)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_at_any_moment_leaves_whole_turns() {
    if let Some(order) = Order::given() {
        return order.obey::<File>().await;
    }
    let folder = Folder::new("moment");
    let test = "crash::a_process_killed_at_any_moment_leaves_whole_turns";
    harness::at_any_moment::<File>(test, &folder.place(), folder.ledger(), rounds(20, 1_000)).await;
}

/// The rounds would find a store that confirms what is not written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[should_panic(expected = "is back")]
async fn a_store_that_confirms_too_early_is_found() {
    if let Some(order) = Order::given() {
        return order.obey::<Early>().await;
    }
    let folder = Folder::new("early");
    let test = "crash::a_store_that_confirms_too_early_is_found";
    harness::at_points::<Early>(test, &folder.place(), folder.ledger(), 23).await;
}
