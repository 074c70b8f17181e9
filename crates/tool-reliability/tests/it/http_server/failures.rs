//! Handlers that return errors, and those that say that they did not run.
use super::support::*;
use axum::{Extension, Router, body::Body, http::StatusCode, routing::post as route};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tool_reliability::http_server::{Cause, DidNotRun, GuardedBody};
use tower::{Layer as _, ServiceExt as _, load_shed::error::Overloaded, service_fn};
use tr_core::{BoxError, FailureInfo, NotSent, Ran, Verdict, code};

/// Statuses, codes and runs of two requests with one key, where the handler fails so.
async fn twice(
    fails: impl Fn() -> BoxError + Clone + Send + 'static,
) -> ([(u16, String, String); 2], usize) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let service =
        settings().build().unwrap().layer(service_fn(move |_: Request<GuardedBody<Body>>| {
            counted.fetch_add(1, SeqCst);
            let error = fails();
            async { Err::<Response<Body>, _>(error) }
        }));
    let mut problems = Vec::new();
    for _ in 0..2 {
        let request =
            Request::post("/orders").header("x-account", "ada").header("idempotency-key", "k");
        let response = service.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert!(response.extensions().get::<Cause>().is_some(), "for the log");
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let body = String::from_utf8(body.to_vec()).unwrap();
        assert!(!body.contains("secret"), "{body}");
        problems.push(Got { status: head.status.as_u16(), headers: head.headers, body }.problem());
    }
    (problems.try_into().unwrap(), runs.load(SeqCst))
}

#[tokio::test]
async fn an_error_leaves_the_outcome_unknown_and_is_not_shown() {
    let (problems, runs) = twice(|| "secret: connection reset".into()).await;
    assert_eq!(problems[0].0, 500);
    assert_eq!(problems[1], problem(409, "outcome_unknown", "unknown"));
    assert_eq!(runs, 1);
}

#[tokio::test]
async fn an_error_that_says_so_frees_the_key() {
    let (problems, runs) = twice(|| DidNotRun.into()).await;
    assert_eq!(problems, [problem(503, "did_not_run", "no"), problem(503, "did_not_run", "no")]);
    assert_eq!(runs, 2);
}

/// A handler that charged a card and then called a mail service returns the errors of that call with `?`.
#[tokio::test]
async fn an_error_of_a_service_that_the_handler_called_proves_nothing() {
    let hint = Verdict::Transient { retry_after: Some(Duration::from_millis(1500)) };
    for code in [
        code::CIRCUIT_OPEN,
        code::IDEMPOTENCY_CONFLICT,
        code::IDEMPOTENCY_IN_FLIGHT,
        code::STORE_UNAVAILABLE,
        code::ANSWER_NOT_KEPT,
    ] {
        let refused = move || FailureInfo::new(code, Ran::No, hint).by_layer().into();
        let (problems, runs) = twice(refused).await;
        assert_eq!(problems[0], problem(500, "handler_failed", "unknown"), "{code}");
        assert_eq!(problems[1], problem(409, "outcome_unknown", "unknown"), "{code}");
        assert_eq!(runs, 1, "{code}");
    }
    for error in [|| NotSent::new("secret").into(), || BoxError::from(Overloaded::new())] {
        let (problems, runs) = twice(error).await;
        assert_eq!(problems.map(|it| it.0), [500, 409]);
        assert_eq!(runs, 1);
    }
}

#[tokio::test]
async fn a_timeout_is_a_504() {
    let timeout = || FailureInfo::new(code::TIMEOUT, Ran::Unknown, Verdict::TRANSIENT).into();
    let (problems, runs) = twice(timeout).await;
    assert_eq!(
        problems,
        [problem(504, "timeout", "unknown"), problem(409, "outcome_unknown", "unknown")]
    );
    assert_eq!(runs, 1);
}

#[tokio::test]
async fn a_handler_may_say_that_it_did_not_run() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let router = Router::new().route(
        "/orders",
        route(move || async move {
            match counted.fetch_add(1, SeqCst) {
                0 => Err((StatusCode::TOO_MANY_REQUESTS, Extension(DidNotRun))),
                _ => Ok("tea"),
            }
        }),
    );
    let at = serve_router(router.layer(settings().build().unwrap())).await;
    for (status, replayed) in [(429, false), (200, false), (200, true)] {
        let got = got(post(&at, "k", "tea")).await;
        assert_eq!((got.status, got.is_replayed()), (status, replayed));
    }
    assert_eq!(runs.load(SeqCst), 2);
}

#[tokio::test]
async fn a_body_that_breaks_off_leaves_the_outcome_unknown() {
    let service =
        settings().build().unwrap().layer(service_fn(|_: Request<GuardedBody<Body>>| async {
            let broken =
                futures_util::stream::iter([Err::<http_body::Frame<bytes::Bytes>, _>("cut")]);
            Ok::<_, BoxError>(Response::new(http_body_util::StreamBody::new(broken)))
        }));
    for status in [500, 409] {
        let request =
            Request::post("/orders").header("x-account", "ada").header("idempotency-key", "k");
        let response = service.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(response.status(), status);
    }
}
