//! Requests that are refused before the handler runs.
use super::support::*;
use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use std::convert::Infallible;
use tower::{Layer as _, ServiceExt as _, service_fn};

#[tokio::test]
async fn a_key_must_be_there_where_it_is_required() {
    let shop = Shop::new();
    let at = serve(shop.clone(), settings().require_key(true).build().unwrap()).await;
    let missing = got(bare(&at, "tea")).await;
    assert_eq!(missing.problem(), problem(400, "idempotency_key_missing", "no"));
    assert_eq!(shop.runs(), 0);
    for method in ["GET", "HEAD", "PUT", "DELETE"] {
        let request =
            reqwest::Client::new().request(method.parse().unwrap(), format!("{at}/orders"));
        assert_eq!(got(request).await.status, 201, "{method}");
    }
}

#[tokio::test]
async fn a_malformed_key_and_two_keys_are_refused() {
    let (shop, at) = shop().await;
    for key in ["\"a", "a, b", "\"\""] {
        let got = got(post(&at, key, "tea")).await;
        assert_eq!(got.problem(), problem(400, "idempotency_key_invalid", "no"), "{key}");
    }
    let two = post(&at, "a", "tea").header("idempotency-key", "a");
    assert_eq!(got(two).await.problem(), problem(400, "idempotency_key_invalid", "no"));
    assert_eq!(shop.runs(), 0);
}

#[tokio::test]
async fn a_key_of_nobody_is_refused() {
    let (shop, at) = shop().await;
    let url = format!("{at}/orders");
    let nobody = reqwest::Client::new().post(&url).header("idempotency-key", "k");
    assert_eq!(got(nobody).await.problem(), problem(403, "no_principal", "no"));
    assert_eq!(shop.runs(), 0);
    let without_key = reqwest::Client::new().post(url);
    assert_eq!(got(without_key).await.status, 201);
}

#[tokio::test]
async fn another_request_with_the_same_key_is_a_conflict() {
    let (shop, at) = shop().await;
    assert_eq!(got(post(&at, "k", "tea")).await.status, 201);
    let client = reqwest::Client::new();
    for (method, path, body) in [
        ("POST", "orders", "coffee"),
        ("POST", "order", "tea"),
        ("POST", "orders?x=1", "tea"),
        ("PATCH", "orders", "tea"),
        ("PUT", "orders", "tea"),
    ] {
        let other = client.request(method.parse().unwrap(), format!("{at}/{path}")).body(body);
        let other = other.header("x-account", "ada").header("idempotency-key", "k");
        let got = got(other).await;
        assert_eq!(
            got.problem(),
            problem(422, "idempotency_conflict", "no"),
            "{method} {path} {body}"
        );
    }
    assert_eq!(shop.runs(), 1);
    assert!(got(post(&at, "k", "tea")).await.is_replayed());
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused_whether_its_length_is_known_or_not() {
    let layer = settings().max_request_bytes(5).build().unwrap();
    let service = layer.layer(service_fn(|_: Request<_>| async {
        Ok::<_, Infallible>(Response::new(Body::empty()))
    }));
    let request = |key: &str, body: Body| {
        let request = Request::post("/orders").header("x-account", "ada");
        service.clone().oneshot(request.header("idempotency-key", key).body(body).unwrap())
    };
    let chunks = |texts: &'static [&'static str]| {
        let frame = |text: &&'static str| {
            Ok::<_, Infallible>(Frame::data(Bytes::from_static(text.as_bytes())))
        };
        Body::new(StreamBody::new(stream::iter(texts.iter().map(frame))))
    };
    assert_eq!(request("a", Body::from("12345")).await.unwrap().status(), 200);
    assert_eq!(request("b", chunks(&["123", "45"])).await.unwrap().status(), 200);
    assert_eq!(
        request("a", chunks(&["1", "2345"])).await.unwrap().headers()["idempotency-replayed"],
        "true"
    );
    for body in [Body::from("123456"), chunks(&["123", "456"])] {
        let response = request("c", body).await.unwrap();
        assert_eq!(response.status(), 413);
        let text = response.into_body().collect().await.unwrap().to_bytes();
        assert!(text.starts_with(b"{\"code\":\"body_too_large\""), "{text:?}");
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_is_no_request() {
    let service = settings().build().unwrap().layer(service_fn(|_: Request<_>| async {
        Ok::<_, Infallible>(Response::new(Body::empty()))
    }));
    let broken = Body::new(StreamBody::new(stream::iter([
        Ok(Frame::data(Bytes::from_static(b"1"))),
        Err(std::io::Error::other("reset")),
    ])));
    let request =
        Request::post("/orders").header("x-account", "ada").header("idempotency-key", "k");
    let response = service.oneshot(request.body(broken).unwrap()).await.unwrap();
    assert_eq!(response.status(), 400);
}
