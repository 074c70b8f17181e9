//! Records in a SQLite file: shared, kept over a crash, and gone.
use super::support::*;
use axum::{Extension, Router, routing::post as route};
use std::{path::Path, thread, time::Duration};
use tempfile::TempDir;
use tool_reliability::{
    http_server::HttpIdempotencyLayer,
    idempotency::{IdempotencyLayer, sqlite::Sqlite},
};
use tr_core::FencingToken;

const LEASE: Duration = Duration::from_millis(400);

async fn over(file: &Path, service: &str) -> (Sqlite, HttpIdempotencyLayer) {
    let store = Sqlite::open(file).await.unwrap();
    let records = IdempotencyLayer::builder_for().store(store.clone()).inflight_ttl(LEASE);
    let layer = HttpIdempotencyLayer::builder(service, account).records(records);
    (store, layer.max_wait(Duration::ZERO).build().unwrap())
}

#[tokio::test]
async fn processes_with_one_file_share_their_records() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("records.db");
    let shop = Shop::new();
    let mut got_by = Vec::new();
    for service in ["shop", "shop", "kitchen"] {
        let at = serve(shop.clone(), over(&file, service).await.1).await;
        let got = got(post(&at, "k", "tea")).await;
        got_by.push((got.status, got.body.clone(), got.is_replayed()));
    }
    let first = "order 1: tea".to_owned();
    let kitchen = (201, "order 2: tea".to_owned(), false);
    assert_eq!(got_by, [(201, first.clone(), false), (201, first, true), kitchen]);
}

#[tokio::test]
async fn after_a_crash_the_outcome_is_unknown_and_the_handler_does_not_run_again() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("records.db");
    let shop = Shop::closed();
    let (crashed, path) = (shop.clone(), file.clone());
    // A runtime that ends in the middle of the run, as a process would.
    let process = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let at = serve(crashed.clone(), over(&path, "shop").await.1).await;
            tokio::spawn(got(post(&at, "k", "tea")));
            until(|| crashed.runs() == 1).await;
        });
        runtime.shutdown_background();
    });
    process.join().unwrap();
    let at = serve(shop.clone(), over(&file, "shop").await.1).await;
    let settled = async {
        loop {
            let got = got(post(&at, "k", "tea")).await;
            if got.problem() != problem(409, "idempotency_in_flight", "unknown") {
                return got;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let after = tokio::time::timeout(Duration::from_secs(20), settled).await.unwrap();
    assert_eq!(after.problem(), problem(409, "outcome_unknown", "unknown"));
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn without_its_store_nothing_that_changes_something_runs() {
    let folder = TempDir::new().unwrap();
    let shop = Shop::new();
    let (store, layer) = over(&folder.path().join("records.db"), "shop").await;
    let at = serve(shop.clone(), layer).await;
    store.close().await;
    let refused = got(post(&at, "k", "tea")).await;
    assert_eq!(refused.problem(), problem(503, "store_unavailable", "no"));
    assert!(refused.header("retry-after").is_some());
    assert_eq!(shop.runs(), 0);
    // A `PUT` may run twice, so it runs, and says that it was not recorded.
    let put = reqwest::Client::new().put(format!("{at}/orders")).header("x-account", "ada");
    let put = got(put.header("idempotency-key", "k").body("tea")).await;
    assert_eq!((put.status, put.header("idempotency-recorded")), (201, Some("false")));
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn a_handler_sees_the_claim_under_which_it_runs() {
    let folder = TempDir::new().unwrap();
    let (_, layer) = over(&folder.path().join("records.db"), "shop").await;
    let order = |Extension(claim): Extension<FencingToken>| async move { claim.provider_key() };
    let at = serve_router(Router::new().route("/orders", route(order)).layer(layer)).await;
    let first = got(post(&at, "k", "tea")).await;
    assert_eq!((first.status, first.body.len()), (200, 64));
    assert_ne!(got(post(&at, "other", "tea")).await.body, first.body);
}
