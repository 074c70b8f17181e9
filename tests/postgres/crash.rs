//! A process is killed at every labelled point of its turns, and another one loads the session.
#[path = "../../crates/tr-integrity/tests/it/crash/harness/mod.rs"]
mod harness;

use harness::{Order, Place};
use std::{env, fs, path::PathBuf, process};
use tr_integrity::postgres::Postgres;
use tr_testkit::{postgres::Server, rounds};

/// A server's address.
struct Address;

impl Place for Address {
    type Store = Postgres;

    async fn open(place: &str) -> Postgres {
        Postgres::builder(place).build().unwrap()
    }
}

/// Removed in the end.
struct Runs(PathBuf);

impl Runs {
    fn new(name: &str) -> Self {
        Self(env::temp_dir().join(format!("tr-postgres-{name}-{}.ledger", process::id())))
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_at_a_point_leaves_whole_turns() {
    if let Some(order) = Order::given() {
        return order.obey::<Address>().await;
    }
    let (server, runs) = (Server::start().unwrap(), Runs::new("point"));
    let test = "crash::a_process_killed_at_a_point_leaves_whole_turns";
    harness::at_points::<Address>(test, &server.url(), runs.0.clone(), rounds(50, 1_000)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_at_any_moment_leaves_whole_turns() {
    if let Some(order) = Order::given() {
        return order.obey::<Address>().await;
    }
    let (server, runs) = (Server::start().unwrap(), Runs::new("moment"));
    let test = "crash::a_process_killed_at_any_moment_leaves_whole_turns";
    harness::at_any_moment::<Address>(test, &server.url(), runs.0.clone(), rounds(20, 1_000)).await;
}
