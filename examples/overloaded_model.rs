//! A model call over HTTP: a POST that the provider answers with 529 while it is overloaded, retried without any impl.
//!
//! `cargo run -p examples --example overloaded_model`
use http::{Request, Response};
use std::{
    io,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
use tr_core::{BoxError, DefaultPolicy, PolicyExt as _, Ran, ran};
use tr_retry::{RetryConfig, RetryLayer};

static REQUESTS: AtomicU32 = AtomicU32::new(0);

/// A fake client in place of hyper's: overloaded twice, then an answer.
async fn provider(request: Request<String>) -> Result<Response<String>, io::Error> {
    let nth = REQUESTS.fetch_add(1, Relaxed) + 1;
    let status = match request.uri().path() {
        "/v1/messages" if nth < 3 => 529,
        "/v1/files" => return Err(io::ErrorKind::ConnectionReset.into()),
        _ => 200,
    };
    let mut response = Response::new(r#"{"type": "message"}"#.to_owned());
    *response.status_mut() = status.try_into().map_err(io::Error::other)?;
    Ok(response)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let mut config = RetryConfig::default();
    config.base = Duration::from_millis(2);

    // A repeat of a model call costs tokens and changes nothing: all its requests are idempotent, POST or not.
    let idempotent =
        RetryLayer::builder().config(config.clone()).policy(DefaultPolicy.idempotent()).build()?;
    let mut model = ServiceBuilder::new().layer(idempotent).service(service_fn(provider));
    let ask = Request::post("http://model.example/v1/messages").body("{}".to_owned())?;
    let answer = model.ready().await?.call(ask).await?;
    println!("POST /v1/messages  {} after {} requests", answer.status(), REQUESTS.swap(0, Relaxed));
    assert_eq!(answer.status(), 200);

    // Where a repeat would do harm, name the one answer that says that nothing was done.
    let refused =
        DefaultPolicy.refused_response(|answer: &Response<String>| answer.status().as_u16() == 529);
    let refused = RetryLayer::builder().config(config).policy(refused).build()?;
    let mut model = ServiceBuilder::new().layer(refused).service(service_fn(provider));
    let ask = Request::post("http://model.example/v1/messages").body("{}".to_owned())?;
    let answer = model.ready().await?.call(ask).await?;
    println!("POST /v1/messages  {} after {} requests", answer.status(), REQUESTS.swap(0, Relaxed));
    assert_eq!(answer.status(), 200);

    // A lost connection is no such answer: this request may have arrived, so it is not repeated.
    let upload = Request::post("http://model.example/v1/files").body("…".to_owned())?;
    let error = model.ready().await?.call(upload).await.expect_err("the connection was lost");
    let requests = REQUESTS.load(Relaxed);
    println!("POST /v1/files     {error} after {requests} request, ran: {:?}", ran(&*error));
    assert_eq!((requests, ran(&*error)), (1, Ran::Unknown));
    assert!(tr_core::find::<io::Error>(&*error).is_some(), "one's own error is in it");
    Ok(())
}

#[test]
fn it_does_what_it_says() {
    main().unwrap();
}
