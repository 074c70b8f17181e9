//! Retry, breaker and attempt timeout around a plain HTTP client: no tool calls anywhere.
//!
//! The layers support `http::Request` and `http::Response`: calls of one origin share a breaker. GET may be repeated;
//! POST only if the response says that nothing was done, as a 429 does and a 503 does not. `cargo run -p examples --example http_client`
use http::{Request, Response, StatusCode};
use std::{
    convert::Infallible,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
use tr_breaker::BreakerLayer;
use tr_core::{BoxError, KeyRef, failure_info};
use tr_retry::{RetryConfig, RetryLayer};
use tr_timeout::AttemptTimeoutLayer;

static REQUESTS: AtomicU32 = AtomicU32::new(0);

/// A fake client (in place of hyper, or reqwest with `tower`) whose servers fail.
async fn server(request: Request<String>) -> Result<Response<String>, Infallible> {
    let nth = REQUESTS.fetch_add(1, Relaxed) + 1;
    let answer = |status, text: &str| {
        let mut response = Response::new(text.to_owned());
        *response.status_mut() = status;
        Ok(response)
    };
    match request.uri().path() {
        "/flaky" if nth < 3 => answer(StatusCode::SERVICE_UNAVAILABLE, "come back later"),
        "/orders" => answer(StatusCode::BAD_GATEWAY, "was that an order?"),
        "/hangs" => std::future::pending().await,
        _ => answer(StatusCode::OK, "here you are"),
    }
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
        .layer(AttemptTimeoutLayer::builder().after(Duration::from_millis(20)).build()?)
        .service(service_fn(server));

    let get = |uri: &str| Request::get(uri).body(String::new());

    let flaky = client.ready().await?.call(get("http://one.example/flaky")?).await?;
    println!("GET  /flaky   {} after {} requests", flaky.status(), REQUESTS.swap(0, Relaxed));
    assert_eq!(flaky.status(), StatusCode::OK);

    let order = Request::post("http://two.example/orders").body("1 × tea".to_owned())?;
    let order = client.ready().await?.call(order).await?;
    let requests = REQUESTS.swap(0, Relaxed);
    println!("POST /orders  {} after {requests} request: it may have been taken", order.status());
    assert_eq!(requests, 1, "what may have been done is not done again");

    let hangs = client.ready().await?.call(get("http://slow.example/hangs")?).await;
    let requests = REQUESTS.swap(0, Relaxed);
    let error = hangs.expect_err("it never answers");
    println!("GET  /hangs   failed after {requests} requests: {error}");
    assert_eq!(requests, 3, "then the breaker is open, and ends retrying");

    let refused = client.ready().await?.call(get("http://slow.example/hangs")?).await;
    let error = refused.expect_err("the breaker is open");
    let ran = failure_info(&*error).map(tr_core::FailureInfo::ran);
    println!("GET  /hangs   refused, ran: {ran:?}: {error}");
    assert_eq!(REQUESTS.load(Relaxed), 0, "no request was sent");

    let slow =
        breakers.get(KeyRef::new("http://slow.example")).ok_or("a breaker for each origin")?;
    println!("breaker of {}: {}", slow.name(), slow.state().as_str());
    Ok(())
}

#[test]
fn it_does_what_it_says() {
    main().unwrap();
}
