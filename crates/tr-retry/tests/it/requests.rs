//! Requests that are no `ToolCall`: http's, and one of the test's own.
use std::{cell::Cell, rc::Rc};
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};
use tr_core::{
    BoxError, Classification, CloneRequest, DefaultPolicy, Effect, End, KeyRef, Ran, RequestPolicy,
    ResponsePolicy, ToolCall, ToolOutcome, Verdict,
};
use tr_retry::RetryLayer;

fn get(path: &str) -> http::Request<String> {
    http::Request::get(format!("http://localhost{path}")).body(String::new()).unwrap()
}

fn answer(status: u16) -> http::Response<()> {
    http::Response::builder().status(status).body(()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn tool_calls_need_no_annotations() {
    let tool = ServiceBuilder::new()
        .layer(RetryLayer::default())
        .service_fn(async |_: ToolCall| Ok::<_, BoxError>(ToolOutcome::default()));
    let call = tokio::spawn(tool.oneshot(crate::common::search()));
    assert!(call.await.unwrap().is_ok(), "and the future is `Send`");
}

#[tokio::test(start_paused = true)]
async fn tr_07_http_a_503_that_stays_comes_back_as_it_is() {
    let attempts = Rc::new(Cell::new(0));
    let counted = attempts.clone();
    let tool = service_fn(move |req: http::Request<String>| {
        let number =
            req.headers().get("x-retry-attempt").map(|one| one.to_str().unwrap().to_owned());
        assert_eq!(number, (counted.get() > 0).then(|| counted.get().to_string()));
        counted.set(counted.get() + 1);
        async { Ok::<_, BoxError>(answer(503)) }
    });
    // Twice, and still four attempts: the response says that it was retried.
    let retry = RetryLayer::default;
    let res = retry().layer(retry().layer(tool)).oneshot(get("/x")).await.unwrap();
    assert_eq!((res.status().as_u16(), attempts.get()), (503, 4));
    let seen = DefaultPolicy.classify(Ok(&res));
    assert!(seen.exhausted && seen.verdict.is_transient());
}

#[tokio::test(start_paused = true)]
async fn a_first_attempt_is_retried_however_its_sender_counts() {
    for (name, first, second) in [
        ("x-retry-attempt", "0", "1"),
        ("x-stainless-retry-count", "0", "1"),
        ("grpc-previous-rpc-attempts", "0", "1"),
        ("x-envoy-attempt-count", "1", "2"),
    ] {
        for (count, expected) in [(first, 4), (second, 1)] {
            let attempts = Rc::new(Cell::new(0));
            let counted = attempts.clone();
            let tool = service_fn(move |_: http::Request<String>| {
                counted.set(counted.get() + 1);
                async { Ok::<_, BoxError>(answer(503)) }
            });
            let mut req = get("/x");
            req.headers_mut().insert(name, count.parse().unwrap());
            RetryLayer::default().layer(tool).oneshot(req).await.unwrap();
            assert_eq!(attempts.get(), expected, "{name}: {count}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn tr_06_http_a_400_gets_one_attempt() {
    let attempts = Rc::new(Cell::new(0));
    let counted = attempts.clone();
    let tool = service_fn(move |_: http::Request<String>| {
        counted.set(counted.get() + 1);
        async { Ok::<_, BoxError>(answer(400)) }
    });
    let res = RetryLayer::default().layer(tool).oneshot(get("/x")).await.unwrap();
    assert_eq!((res.status().as_u16(), attempts.get()), (400, 1));
}

/// A request whose copy of a copy of … can be copied no further.
#[derive(Clone, Copy)]
struct Query {
    copies: u32,
}

impl RequestPolicy<Query> for DefaultPolicy {
    fn key<'r>(&self, _: &'r Query) -> KeyRef<'r> {
        KeyRef::new("query")
    }

    fn effect(&self, _: &Query) -> Effect {
        Effect::ReadOnly
    }
}

impl CloneRequest<Query> for DefaultPolicy {
    fn clone_request(&self, query: &Query) -> Option<Query> {
        Some(Query { copies: query.copies.checked_sub(1)? })
    }
}

struct Rows(bool);

impl ResponsePolicy<Rows> for DefaultPolicy {
    fn classify<'r>(&self, end: End<'r, Rows>) -> Classification<'r> {
        match end {
            Ok(Rows(true)) => Classification::SUCCESS,
            _ => Classification::new(Verdict::TRANSIENT, Ran::No, "busy"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_type_of_ones_own_needs_a_few_answers() {
    for (copies, attempts) in [(0, 1), (1, 2), (2, 4)] {
        let seen = Rc::new(Cell::new(0));
        let counted = seen.clone();
        let database = service_fn(move |_: Query| {
            counted.set(counted.get() + 1);
            async { Ok::<_, BoxError>(Rows(false)) }
        });
        let rows = RetryLayer::default().layer(database).oneshot(Query { copies }).await;
        assert!(!rows.unwrap().0);
        assert_eq!(seen.get(), attempts, "{copies} copies");
    }
}
