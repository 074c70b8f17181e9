//! Layers around your own request type: two small impls and a third for retry, and no type annotations.
//!
//! `cargo run -p examples --example own_request`
use std::{
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
use tr_breaker::BreakerLayer;
use tr_core::{
    BoxError, Classification, CloneRequest, DefaultPolicy, Effect, End, KeyRef, Ran, RequestPolicy,
    ResponsePolicy, Verdict,
};
use tr_retry::{RetryConfig, RetryLayer};

/// A query to a database.
#[derive(Clone, Debug)]
struct Query {
    shard: &'static str,
    sql: &'static str,
}

/// The database's answer.
#[derive(Debug, PartialEq)]
enum Answer {
    Rows(u32),
    /// Another transaction holds the lock.
    Locked,
}

/// No deadline, no attempt number: the defaults are enough.
impl RequestPolicy<Query> for DefaultPolicy {
    /// Each shard has its own breaker.
    fn key<'r>(&self, query: &'r Query) -> KeyRef<'r> {
        KeyRef::new(query.shard)
    }

    /// Reads may be repeated after any failure.
    fn effect(&self, query: &Query) -> Effect {
        if query.sql.starts_with("SELECT") { Effect::ReadOnly } else { Effect::Mutating }
    }
}

impl CloneRequest<Query> for DefaultPolicy {
    fn clone_request(&self, query: &Query) -> Option<Query> {
        Some(query.clone())
    }
}

/// A lock is transient, and nothing was done. All other errors are classified by their texts and codes.
impl ResponsePolicy<Answer> for DefaultPolicy {
    fn classify<'r>(&self, end: End<'r, Answer>) -> Classification<'r> {
        match end {
            Ok(Answer::Rows(_)) => Classification::SUCCESS,
            Ok(Answer::Locked) => Classification::new(Verdict::TRANSIENT, Ran::No, "locked"),
            Err(error) => tr_core::classify::error(error).end,
        }
    }
}

static QUERIES: AtomicU32 = AtomicU32::new(0);

/// Locked twice, then free.
async fn database(query: Query) -> Result<Answer, BoxError> {
    match (query.sql, QUERIES.fetch_add(1, Relaxed)) {
        ("DROP everything", _) => Err("permission denied".into()),
        (_, 0 | 1) => Ok(Answer::Locked),
        _ => Ok(Answer::Rows(7)),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let mut config = RetryConfig::default();
    config.base = Duration::from_millis(2);
    let mut database = ServiceBuilder::new()
        .layer(RetryLayer::builder().config(config).build()?)
        .layer(BreakerLayer::default())
        .service(service_fn(database));

    let update = Query { shard: "eu-1", sql: "UPDATE seats SET taken = 1" };
    let answer = database.ready().await?.call(update).await?;
    println!("UPDATE: {answer:?} after {} queries", QUERIES.load(Relaxed));
    assert_eq!(answer, Answer::Rows(7), "a lock means that nothing was done, so it was repeated");

    let before = QUERIES.load(Relaxed);
    let drop = Query { shard: "eu-1", sql: "DROP everything" };
    let error = database.ready().await?.call(drop).await.expect_err("not allowed");
    let queries = QUERIES.load(Relaxed) - before;
    println!("DROP: {error} after {queries} query");
    assert_eq!(queries, 1, "a repeat would be denied, too");
    Ok(())
}

#[test]
fn it_does_what_it_says() {
    main().unwrap();
}
