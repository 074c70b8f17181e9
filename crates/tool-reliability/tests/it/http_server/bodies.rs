//! Bodies that are long or that stream, and a server of hyper's.
use super::support::*;
use axum::{Router, body::Body, routing::post as route};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use std::{convert::Infallible, pin::pin, sync::Arc};
use tokio::{net::TcpListener, sync::Notify};
use tool_reliability::http_server::GuardedBody;
use tower::{Layer as _, ServiceExt as _, service_fn};

#[tokio::test]
async fn a_long_response_arrives_whole_and_is_not_replayed() {
    let long = "x".repeat(100_000);
    let (limit, text) = (10_000, long.clone());
    let router = Router::new().route("/orders", route(move || async { text }));
    let at =
        serve_router(router.layer(settings().max_response_bytes(limit).build().unwrap())).await;
    let first = got(post(&at, "k", "tea")).await;
    assert_eq!((first.status, first.body), (200, long));
    assert_eq!(first.headers["idempotency-recorded"], "false");
    let again = got(post(&at, "k", "tea")).await;
    assert_eq!(again.problem(), problem(409, "answer_not_kept", "yes"));
}

#[tokio::test]
async fn a_deletion_whose_response_is_not_kept_runs_again() {
    let runs = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = runs.clone();
    let handler = service_fn(move |_: Request<GuardedBody<Full<Bytes>>>| {
        counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        async { Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("x".repeat(100)))) }
    });
    let service = settings().max_response_bytes(10).build().unwrap().layer(handler);
    for _ in 0..2 {
        let request =
            Request::delete("/orders").header("x-account", "ada").header("idempotency-key", "k");
        let response =
            service.clone().oneshot(request.body(Full::default()).unwrap()).await.unwrap();
        assert_eq!(response.status(), 200);
    }
    assert_eq!(runs.load(std::sync::atomic::Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_body_of_many_pieces_and_empty_ones_is_one_body() {
    let service = settings().build().unwrap().layer(service_fn(async |_: Request<_>| {
        let pieces = ["", "te", "", "a", " for", "", " two", ""];
        let frames = pieces.map(|text| Ok::<_, Infallible>(Frame::data(Bytes::from(text))));
        Ok::<_, Infallible>(Response::new(StreamBody::new(stream::iter(frames))))
    }));
    for _ in 0..2 {
        let request =
            Request::post("/orders").header("x-account", "ada").header("idempotency-key", "k");
        let request = request.body(Full::<Bytes>::from("tea")).unwrap();
        let body = service.clone().oneshot(request).await.unwrap().into_body();
        assert_eq!(body.collect().await.unwrap().to_bytes(), "tea for two");
    }
}

#[tokio::test]
async fn events_arrive_while_the_handler_still_sends_them() {
    let go_on = Arc::new(Notify::new());
    let gate = go_on.clone();
    let router = Router::new().route(
        "/orders",
        route(move || async move {
            let events = stream::iter(["data: 1\n\n"]).chain(stream::once(async move {
                gate.notified().await;
                "data: 2\n\n"
            }));
            let events = events.map(|text| Ok::<_, Infallible>(Frame::data(Bytes::from(text))));
            let kind = [("content-type", "text/event-stream; charset=utf-8")];
            (kind, Body::new(StreamBody::new(events)))
        }),
    );
    let at = serve_router(router.layer(settings().build().unwrap())).await;
    let response = post(&at, "k", "tea").send().await.unwrap();
    let response: http::Response<reqwest::Body> = response.into();
    let mut body = pin!(response.into_body());
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(first, "data: 1\n\n");
    go_on.notify_one();
    assert_eq!(body.collect().await.unwrap().to_bytes(), "data: 2\n\n");
    let again = got(post(&at, "k", "tea")).await;
    assert_eq!(again.problem(), problem(409, "answer_not_kept", "yes"));
}

#[tokio::test]
async fn trailers_are_passed_on() {
    let service = settings().build().unwrap().layer(service_fn(|_: Request<_>| async {
        let mut trailers = http::HeaderMap::new();
        trailers.insert("grpc-status", "0".parse().unwrap());
        let frames = [Frame::data(Bytes::from_static(b"1")), Frame::trailers(trailers)];
        Ok::<_, Infallible>(Response::new(StreamBody::new(stream::iter(
            frames.map(Ok::<_, Infallible>),
        ))))
    }));
    let request =
        Request::post("/orders").header("x-account", "ada").header("idempotency-key", "k");
    let request = request.body(Full::<Bytes>::from("tea")).unwrap();
    let body = service.oneshot(request).await.unwrap().into_body().collect().await.unwrap();
    assert_eq!(body.trailers().unwrap()["grpc-status"], "0");
    assert_eq!(body.to_bytes(), "1");
}

#[tokio::test]
async fn hypers_own_server_takes_it_too() {
    let layer = settings().build().unwrap();
    let service =
        layer.layer(service_fn(|request: Request<GuardedBody<hyper::body::Incoming>>| async {
            let body = request.into_body().collect().await?.to_bytes();
            Ok::<_, hyper::Error>(Response::new(Full::new(body)))
        }));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let service = TowerToHyperService::new(service.clone());
            let server = hyper::server::conn::http1::Builder::new();
            tokio::spawn(server.serve_connection(TokioIo::new(connection), service));
        }
    });
    for replayed in [false, true] {
        let got = got(post(&at, "k", "tea")).await;
        assert_eq!((got.status, &*got.body, got.is_replayed()), (200, "tea", replayed));
    }
}
