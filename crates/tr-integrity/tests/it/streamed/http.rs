//! In front of an HTTP client.
use super::world::{answer, assert_committed, assert_rolled_back, cut, message, sessions, state};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full, StreamBody};
use std::sync::Arc;
use tower::{Layer, Service, ServiceExt, service_fn};
use tr_core::BoxError;
use tr_integrity::{
    ContentFiltered, CycleMode, Format, Layer0Config, ModelGuardLayer, SessionCorrupt, SessionId,
    Sessions, WatchedBody,
};

const FORMAT: Format = Format::AnthropicMessages;

fn request(body: &str) -> Request<String> {
    let mut request = Request::post("/v1/messages").body(body.to_owned()).unwrap();
    request.extensions_mut().insert(SessionId::new("s"));
    request
}

fn hello() -> Request<String> {
    request(r#"{"model":"m","messages":[{"role":"user","content":"go"}]}"#)
}

/// The guard around a client that gives this response.
fn client<B: Body + Clone + Send + 'static>(
    sessions: &Sessions,
    response: Response<B>,
) -> impl Service<Request<String>, Response = Response<WatchedBody<B>>, Error = BoxError> {
    ModelGuardLayer::streamed(sessions.clone()).layer(service_fn(move |_: Request<String>| {
        let response = response.clone();
        async { Ok::<_, BoxError>(response) }
    }))
}

#[tokio::test(start_paused = true)]
async fn a_body_passes_with_its_head_and_trailers() {
    let sessions = sessions(FORMAT, CycleMode::Preserve);
    let text = answer("answered/anthropic-tool-use.sse");
    let trailers = HeaderMap::from_iter([(header::ETAG, "x".parse().unwrap())]);
    let frames = cut(&text, 40).into_iter().map(Frame::data);
    let frames: Arc<[_]> = frames.chain([Frame::trailers(trailers.clone())]).collect();
    let guarded =
        ModelGuardLayer::streamed(sessions.clone()).layer(service_fn(move |_: Request<Bytes>| {
            let frames: Vec<_> = frames
                .iter()
                .map(|frame| match (frame.data_ref(), frame.trailers_ref()) {
                    (Some(data), _) => Frame::data(data.clone()),
                    (_, trailers) => Frame::trailers(trailers.unwrap().clone()),
                })
                .map(Ok::<_, BoxError>)
                .collect();
            let mut response = Response::new(StreamBody::new(stream::iter(frames)));
            response.headers_mut().insert("request-id", "req_1".parse().unwrap());
            async { Ok::<_, BoxError>(response) }
        }));
    let response = guarded.oneshot(hello().map(Bytes::from)).await.unwrap();
    assert_eq!(response.headers()["request-id"], "req_1");
    let collected = response.into_body().collect().await.unwrap();
    assert_eq!(collected.trailers(), Some(&trailers));
    assert_eq!(collected.to_bytes(), text);
    assert_committed(&sessions);
}

/// The body of a client says that it ends with its last frame: it is asked once more all the same.
#[tokio::test(start_paused = true)]
async fn a_blocked_answer_of_known_length_is_told() {
    for (status, name) in [
        (StatusCode::BAD_REQUEST, "filtered/anthropic-blocked-400.json"),
        (StatusCode::OK, "filtered/anthropic-refusal-body.json"),
    ] {
        let sessions = sessions(FORMAT, CycleMode::Preserve);
        let before = state(&sessions);
        let mut response = Response::new(Full::new(Bytes::from(answer(name))));
        *response.status_mut() = status;
        let response = client(&sessions, response).oneshot(hello()).await.unwrap();
        assert_eq!(response.status(), status);
        let mut body = response.into_body();
        let size = body.size_hint().exact();
        let frame = body.frame().await.unwrap().unwrap();
        assert_eq!(frame.data_ref().map(|data| data.len() as u64), size);
        assert!(!body.is_end_stream());
        let error = body.frame().await.unwrap().unwrap_err();
        assert!(body.is_end_stream() && body.frame().await.is_none());
        assert_eq!(error.to_string(), "Content filter triggered. Rolled back 0 messages.");
        assert!(error.is::<ContentFiltered>());
        assert_rolled_back(&sessions, &before);
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_of_failure_rolls_back_whatever_the_body_says() {
    for body in ["", r#"{"ok":true}"#, "<html>"] {
        let sessions = sessions(FORMAT, CycleMode::Preserve);
        let before = state(&sessions);
        let mut response = Response::new(Full::new(Bytes::from(body)));
        *response.status_mut() = StatusCode::BAD_GATEWAY;
        let response = client(&sessions, response).oneshot(hello()).await.unwrap();
        sessions.with("s", |session, _| session.push(message(FORMAT, "assistant", "part")));
        // The failure is the status; nothing is added to it.
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), body);
        assert_rolled_back(&sessions, &before);
    }
}

#[tokio::test(start_paused = true)]
async fn a_compressed_answer_is_not_judged() {
    let sessions = sessions(FORMAT, CycleMode::Preserve);
    let mut response = Response::new(Full::new(Bytes::from_static(b"(\xb5/\xfd$\x05)\0\0hello")));
    response.headers_mut().insert(header::CONTENT_ENCODING, "zstd".parse().unwrap());
    let response = client(&sessions, response).oneshot(hello()).await.unwrap();
    response.into_body().collect().await.unwrap();
    assert_committed(&sessions);
}

#[tokio::test(start_paused = true)]
async fn a_corrupt_session_is_blocked_or_repaired_before_it_is_sent() {
    let corrupt = r#"{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"pay","input":{}}]},{"role":"user","content":"so?"}]}"#;
    for auto_repair in [false, true] {
        let config = format!(r#"{{"autoRepair":{auto_repair}}}"#);
        let config: Layer0Config = serde_json::from_str(&config).unwrap();
        let sessions = Sessions::builder(FORMAT).config(config).build().unwrap();
        let echo = service_fn(async |request: Request<String>| {
            let length = request.headers()[header::CONTENT_LENGTH].to_str().unwrap().to_owned();
            assert_eq!(length, request.body().len().to_string());
            Ok::<_, BoxError>(Response::new(Full::new(Bytes::from(request.into_body()))))
        });
        let mut request = request(corrupt);
        request.headers_mut().insert(header::CONTENT_LENGTH, corrupt.len().into());
        let answer = ModelGuardLayer::streamed(sessions).layer(echo).oneshot(request).await;
        if auto_repair {
            let sent = answer.unwrap().into_body().collect().await.unwrap().to_bytes();
            let sent = String::from_utf8(sent.into()).unwrap();
            assert!(sent.contains("outcome unknown, may have run"), "{sent}");
        } else {
            assert!(answer.unwrap_err().is::<SessionCorrupt>());
        }
    }
}

/// A client that collects the body itself: the guard takes it whole.
#[tokio::test(start_paused = true)]
async fn a_response_that_is_here_as_a_whole_needs_no_stream() {
    for (status, body, is_filtered) in [
        (StatusCode::BAD_REQUEST, answer("filtered/anthropic-blocked-400.json"), true),
        (StatusCode::SERVICE_UNAVAILABLE, r#"{"ok":true}"#.to_owned(), false),
        (StatusCode::OK, answer("answered/anthropic-body.json"), false),
    ] {
        let sessions = sessions(FORMAT, CycleMode::Preserve);
        let before = state(&sessions);
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = status;
        let whole = service_fn(move |_: Request<String>| {
            let response = response.clone();
            async { Ok::<_, BoxError>(response) }
        });
        let guarded = ModelGuardLayer::new(sessions.clone()).layer(whole);
        let answer = guarded.oneshot(hello()).await;
        if status == StatusCode::OK {
            assert_committed(&sessions);
        } else {
            assert_rolled_back(&sessions, &before);
        }
        assert_eq!(answer.is_err(), is_filtered);
    }
}
