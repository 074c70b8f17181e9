//! Requests that are no `ToolCall`: http's, and one of the test's own.
use std::time::Duration;
use tower::{ServiceBuilder, ServiceExt};
use tr_core::{BoxError, DefaultPolicy, KeyRef, RequestPolicy};
use tr_timeout::{AttemptTimeoutLayer, DeadlineLayer};

#[tokio::test(start_paused = true)]
async fn http_requests_need_no_annotations() {
    let client = ServiceBuilder::new()
        .layer(DeadlineLayer::new())
        .layer(AttemptTimeoutLayer::default())
        .service_fn(async |req: http::Request<String>| {
            Ok::<_, BoxError>(http::Response::new(req.into_body().len()))
        });
    let req = http::Request::get("http://localhost/x").body("hello".to_owned()).unwrap();
    assert_eq!(*client.oneshot(req).await.unwrap().body(), 5);
}

struct Query(Duration);

impl RequestPolicy<Query> for DefaultPolicy {
    fn key<'r>(&self, _: &'r Query) -> KeyRef<'r> {
        KeyRef::new("query")
    }

    fn attempt_timeout(&self, query: &Query) -> Option<Duration> {
        Some(query.0)
    }
}

#[tokio::test(start_paused = true)]
async fn a_type_of_ones_own_needs_a_few_answers() {
    let database = ServiceBuilder::new()
        .layer(AttemptTimeoutLayer::default())
        .service_fn(async |_: Query| std::future::pending::<Result<(), BoxError>>().await);
    let error = database.oneshot(Query(Duration::from_millis(20))).await.unwrap_err();
    assert_eq!(error.to_string(), "Tool timeout after 20ms");
}
