//! An axum server with idempotency keys: `Idempotency-Key`, `Retry-After`, and a deadline from the request.
//!
//! Clients send the same order twice, come too early, and give up before the answer; each order is placed once.
//! `cargo run -p examples --example http_server`
use axum::{
    Extension, Router,
    error_handling::HandleErrorLayer,
    http::{HeaderMap, StatusCode, request::Parts},
    response::{IntoResponse, Response},
    routing::post,
};
use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use std::{
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};
use tokio::{
    net::TcpListener,
    time::{Instant, sleep},
};
use tool_reliability::http_server::{DidNotRun, HttpIdempotencyLayer};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
use tr_core::{BoxError, DefaultPolicy, KeyRef, PolicyExt, RequestPolicy, failure_info};
use tr_retry::RetryLayer;
use tr_timeout::DeadlineLayer;

static ORDERS: AtomicU32 = AtomicU32::new(0);
static REFUSED: AtomicU32 = AtomicU32::new(0);

/// Places an order. Coffee is slow, and the shop is too busy for the first cake.
async fn place_order(what: String) -> Response {
    if what == "cake" && REFUSED.fetch_add(1, Relaxed) == 0 {
        // Nothing has happened: a repeat with the same key may run.
        let wait = [("retry-after", "1"), ("retry-after-ms", "20")];
        return (StatusCode::TOO_MANY_REQUESTS, wait, Extension(DidNotRun)).into_response();
    }
    if what == "coffee" {
        sleep(Duration::from_millis(250)).await;
    }
    let order = ORDERS.fetch_add(1, Relaxed) + 1;
    (StatusCode::CREATED, format!("order {order}: {what}")).into_response()
}

/// Who calls: left in the request by authentication.
#[derive(Clone)]
struct Account(String);

/// Stands for real authentication.
fn authenticated<B>(mut req: Request<B>) -> Request<B> {
    if let Some(name) = req.headers().get("authorization").and_then(|it| it.to_str().ok()) {
        let account = Account(name.to_owned());
        req.extensions_mut().insert(account);
    }
    req
}

/// Until when the client waits.
#[derive(Clone, Copy)]
struct WaitsUntil(Instant);

fn with_deadline<B>(mut req: Request<B>) -> Request<B> {
    let wait = req.headers().get("x-timeout-ms").and_then(|it| it.to_str().ok()?.parse().ok());
    if let Some(wait) = wait.map(Duration::from_millis) {
        req.extensions_mut().insert(WaitsUntil(Instant::now() + wait));
    }
    req
}

/// The deadline that the request brought.
#[derive(Clone, Copy, Debug)]
struct FromRequest;

impl<B> RequestPolicy<Request<B>> for FromRequest {
    fn key<'r>(&self, req: &'r Request<B>) -> KeyRef<'r> {
        DefaultPolicy.key(req)
    }

    fn deadline(&self, req: &Request<B>) -> Option<std::time::Instant> {
        req.extensions().get::<WaitsUntil>().map(|until| until.0.into_std())
    }
}

/// What a client gets when its time is over. The run goes on and is recorded.
async fn too_late(error: BoxError) -> Response {
    let ran = failure_info(&*error).map(tr_core::FailureInfo::ran);
    (StatusCode::GATEWAY_TIMEOUT, format!("{error}; ran: {ran:?}")).into_response()
}

fn app() -> Result<Router, BoxError> {
    let account = |req: &Parts| Some(req.extensions.get::<Account>()?.0.clone());
    let layers = ServiceBuilder::new()
        .map_request(with_deadline)
        .map_request(authenticated)
        .layer(HandleErrorLayer::new(too_late))
        .layer(DeadlineLayer::builder().policy(FromRequest).build()?)
        .layer(HttpIdempotencyLayer::builder("shop", account).require_key(true).build()?);
    Ok(Router::new().route("/orders", post(place_order)).layer(layers))
}

static REQUESTS: AtomicU32 = AtomicU32::new(0);

async fn send(req: Request<Bytes>) -> Result<http::Response<Bytes>, BoxError> {
    REQUESTS.fetch_add(1, Relaxed);
    let response = reqwest::Client::new().execute(reqwest::Request::try_from(req)?).await?;
    let (head, body) = http::Response::<reqwest::Body>::from(response).into_parts();
    Ok(http::Response::from_parts(head, body.collect().await?.to_bytes()))
}

fn order(at: &str, key: &str, what: &'static str) -> Result<Request<Bytes>, http::Error> {
    let req = Request::post(format!("{at}/orders")).header("authorization", "ada");
    req.header("idempotency-key", format!("\"{key}\"")).body(Bytes::from(what))
}

fn is_replayed(headers: &HeaderMap) -> bool {
    headers.contains_key("idempotency-replayed")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let at = format!("http://{}", listener.local_addr()?);
    let server = axum::serve(listener, app()?);
    tokio::spawn(async { server.await });
    // All requests of this client have a key, so a repeat changes nothing more.
    let retry = RetryLayer::builder().policy(DefaultPolicy.idempotent()).build()?;
    let mut client = ServiceBuilder::new().layer(retry).service(service_fn(send));

    println!("── the same order twice, at once");
    let (one, other) = tokio::join!(send(order(&at, "a", "tea")?), send(order(&at, "a", "tea")?));
    let (one, other) = (one?, other?);
    println!("{} {:?}, and {:?}", one.status(), one.body(), other.body());
    assert_eq!((one.status(), one.body()), (StatusCode::CREATED, other.body()));
    assert!(is_replayed(one.headers()) != is_replayed(other.headers()));
    let conflict = send(order(&at, "a", "milk")?).await?;
    println!("{} {:?}", conflict.status(), conflict.body());
    assert_eq!(conflict.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(ORDERS.load(Relaxed), 1);

    println!("── the shop is busy: 429, Retry-After");
    REQUESTS.store(0, Relaxed);
    let cake = client.ready().await?.call(order(&at, "b", "cake")?).await?;
    println!("{} {:?} after {} requests", cake.status(), cake.body(), REQUESTS.load(Relaxed));
    assert_eq!((cake.status(), REQUESTS.load(Relaxed)), (StatusCode::CREATED, 2));
    assert_eq!(ORDERS.load(Relaxed), 2);

    println!("── a client that waits 100 ms for a coffee that takes 250");
    let mut coffee = order(&at, "c", "coffee")?;
    coffee.headers_mut().insert("x-timeout-ms", "100".parse()?);
    let late = send(coffee).await?;
    println!("{} {:?}", late.status(), late.body());
    assert_eq!(late.status(), StatusCode::GATEWAY_TIMEOUT);
    let coffee = client.ready().await?.call(order(&at, "c", "coffee")?).await?;
    println!("{} {:?}, from the record", coffee.status(), coffee.body());
    assert!(is_replayed(coffee.headers()), "the first run went on");
    assert_eq!(ORDERS.load(Relaxed), 3, "one order each");
    Ok(())
}

#[test]
fn it_does_what_it_says() {
    main().unwrap();
}
