//! A type of one's own, once per key: a transfer whose records are in a SQLite file, and outlive the process.
//!
//! No trait is implemented but serde's. `cargo run -p examples --example own_durable`
use serde::{Deserialize, Serialize};
use std::{
    io,
    path::Path,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
use tr_core::{BoxError, DedupeKey, NamedPolicy, PolicyExt as _, Ran, ran};
use tr_idempotency::{IdempotencyLayer, error::Conflict, sqlite::Sqlite};

#[derive(Clone)]
struct Transfer {
    order: String,
    cents: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    number: u32,
    cents: u32,
}

static TRANSFERS: AtomicU32 = AtomicU32::new(0);

async fn bank(transfer: Transfer) -> Result<Receipt, io::Error> {
    let number = TRANSFERS.fetch_add(1, Relaxed) + 1;
    Ok(Receipt { number, cents: transfer.cents })
}

/// One process: it opens the file, and puts the layer around the bank.
async fn transfer(records: &Path, transfer: Transfer) -> Result<Receipt, BoxError> {
    let policy = NamedPolicy::new("transfer")
        // The key is the order's; the digest is of what else must be the same: another amount is a conflict.
        .idempotency_key_by(|transfer: &Transfer| {
            Some(DedupeKey::of("transfer", &transfer.order, transfer.cents.to_le_bytes()))
        })
        .stored_as_json();
    let layer = IdempotencyLayer::builder_for()
        .policy(policy)
        .store(Sqlite::open(records).await?)
        .build()?;
    let mut bank = ServiceBuilder::new().layer(layer).service(service_fn(bank));
    bank.ready().await?.call(transfer).await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    let records = folder.path().join("records.db");
    let order = |cents| Transfer { order: "order-42".into(), cents };

    let first = transfer(&records, order(500)).await?;
    println!("first:          {first:?}");
    let again = transfer(&records, order(500)).await?;
    println!("after a restart: {again:?}, {} transfer", TRANSFERS.load(Relaxed));
    assert_eq!((&again, TRANSFERS.load(Relaxed)), (&first, 1), "the receipt is the record's");

    let error = transfer(&records, order(900)).await.expect_err("another amount under this key");
    println!("900 instead:     {error}; ran: {:?}", ran(&*error));
    assert!(tr_core::find::<Conflict>(&*error).is_some());
    assert_eq!(ran(&*error), Ran::No);
    Ok(())
}

#[test]
fn it_does_what_it_says() {
    main().unwrap();
}
