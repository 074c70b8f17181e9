//! Retry, breaker and attempt timeout around hyper's client: no tool calls anywhere.
//!
//! The layers support `http::Request` and `http::Response`: calls of one origin share a breaker. GET may be repeated;
//! POST only if the response says that nothing was done, as a 429 does and a 503 does not. A connection that is refused
//! says so, too. Three servers in this program fail. `cargo run -p examples --example http_client`
use axum::{
    Router,
    http::StatusCode,
    routing::{MethodRouter, any},
};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use std::{
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};
use tokio::net::TcpListener;
use tower::{Service, ServiceBuilder, ServiceExt};
use tr_breaker::BreakerLayer;
use tr_core::{BoxError, KeyRef, failure_info};
use tr_retry::{RetryConfig, RetryLayer};
use tr_timeout::AttemptTimeoutLayer;

/// The requests that any server has seen.
static REQUESTS: AtomicU32 = AtomicU32::new(0);

async fn flaky() -> (StatusCode, &'static str) {
    match REQUESTS.fetch_add(1, Relaxed) + 1 {
        1 | 2 => (StatusCode::SERVICE_UNAVAILABLE, "come back later"),
        _ => (StatusCode::OK, "here you are"),
    }
}

async fn orders() -> (StatusCode, &'static str) {
    REQUESTS.fetch_add(1, Relaxed);
    (StatusCode::BAD_GATEWAY, "was that an order?")
}

async fn hangs() {
    REQUESTS.fetch_add(1, Relaxed);
    std::future::pending::<()>().await;
}

/// A server of its own: an origin.
async fn serve(handler: MethodRouter) -> Result<String, BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let at = format!("http://{}", listener.local_addr()?);
    let server = axum::serve(listener, Router::new().route("/", handler));
    tokio::spawn(async { server.await });
    Ok(at)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let mut config = RetryConfig::default();
    config.base = Duration::from_millis(2);
    let breaker = BreakerLayer::builder().consecutive_failures(3).build()?;
    let breakers = breaker.registry().clone();
    let mut client = ServiceBuilder::new()
        .layer(RetryLayer::builder().config(config).build()?)
        .layer(breaker)
        .layer(AttemptTimeoutLayer::builder().after(Duration::from_millis(200)).build()?)
        .service(Client::builder(TokioExecutor::new()).build_http());
    let get = |at: &str| Request::get(at).body(Full::<Bytes>::default());

    let response = client.ready().await?.call(get(&serve(any(flaky)).await?)?).await?;
    let (status, requests) = (response.status(), REQUESTS.swap(0, Relaxed));
    let body = response.into_body().collect().await?.to_bytes();
    println!("GET  /  of the flaky server: {status} {body:?} after {requests} requests");
    assert_eq!((status, requests), (StatusCode::OK, 3));

    let order = Request::post(serve(any(orders)).await?).body(Full::from("1 × tea"))?;
    let status = client.ready().await?.call(order).await?.status();
    let requests = REQUESTS.swap(0, Relaxed);
    println!("POST /  of the shop: {status} after {requests} request: it may have been taken");
    assert_eq!(requests, 1, "what may have been done is not done again");

    let closed = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
    let order = Request::post(format!("http://{closed}")).body(Full::from("1 × tea"))?;
    let error = client.ready().await?.call(order).await.expect_err("nothing listens there");
    let ran = failure_info(&*error).map(tr_core::FailureInfo::ran);
    println!("POST /  of a closed port: ran: {ran:?}: {error}");
    assert_eq!(ran, Some(tr_core::Ran::No), "it was not sent, so it was repeated");

    let slow = serve(any(hangs)).await?;
    let error = client.ready().await?.call(get(&slow)?).await.expect_err("it never answers");
    let requests = REQUESTS.swap(0, Relaxed);
    println!("GET  /  of the slow server: failed after {requests} requests: {error}");
    assert_eq!(requests, 3, "then the breaker is open, and ends retrying");

    let error = client.ready().await?.call(get(&slow)?).await.expect_err("the breaker is open");
    let ran = failure_info(&*error).map(tr_core::FailureInfo::ran);
    println!("GET  /  of the slow server: refused, ran: {ran:?}: {error}");
    assert_eq!(REQUESTS.load(Relaxed), 0, "no request was sent");

    let slow = breakers.get(KeyRef::new(&slow)).ok_or("a breaker for each origin")?;
    println!("its breaker: {}", slow.state().as_str());
    Ok(())
}

#[test]
fn it_does_what_it_says() {
    main().unwrap();
}
