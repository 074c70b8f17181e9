//! In front of hyper's own client, over a real connection.
use super::world::{answer, assert_committed, assert_rolled_back, sessions, state};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    time::timeout,
};
use tower::{ServiceBuilder, ServiceExt};
use tr_core::BoxError;
use tr_integrity::{ContentFiltered, CycleMode, Format, ModelGuardLayer, SessionId, Sessions};

/// Longer than any of this takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Serves one request with an event stream in chunks, and says `last` in the place of their end.
async fn serve(listener: TcpListener, events: String, last: &'static str) -> std::io::Result<()> {
    let (mut caller, _) = listener.accept().await?;
    let mut read = Vec::new();
    while !read.ends_with(b"}]}") {
        assert_ne!(caller.read_buf(&mut read).await?, 0, "the request has an end");
    }
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    caller.write_all(head.as_bytes()).await?;
    for piece in events.as_bytes().chunks(50) {
        caller.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await?;
        caller.write_all(&[piece, b"\r\n"].concat()).await?;
    }
    caller.write_all(last.as_bytes()).await
}

/// What the client reads, and the error that ends it.
async fn read(
    sessions: &Sessions,
    name: &str,
    last: &'static str,
) -> Result<(Bytes, Option<BoxError>), BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let uri = format!("http://{}/v1/messages", listener.local_addr()?);
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let guarded = ServiceBuilder::new()
        .layer(ModelGuardLayer::streamed(sessions.clone()))
        .map_request(|request: Request<Bytes>| request.map(Full::new))
        .service(client);

    let body = Bytes::from_static(br#"{"messages":[{"role":"user","content":"go"}]}"#);
    let mut request = Request::post(uri).body(body)?;
    request.extensions_mut().insert(SessionId::new("s"));
    let reading = async {
        let mut body = guarded.oneshot(request).await?.into_body();
        let mut read = Vec::new();
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => read.extend(frame.into_data().unwrap_or_default()),
                Err(error) => return Ok((read.into(), Some(error))),
            }
        }
        Ok((read.into(), None))
    };
    let both = async { tokio::join!(reading, serve(listener, answer(name), last)) };
    let (read, served) = timeout(PATIENCE, both).await?;
    served?;
    read
}

#[tokio::test]
async fn hypers_client_is_guarded() {
    for (name, is_filtered) in
        [("filtered/anthropic-refusal.sse", true), ("answered/anthropic-tool-use.sse", false)]
    {
        let sessions = sessions(Format::AnthropicMessages, CycleMode::Preserve);
        let before = state(&sessions);
        let (bytes, error) = read(&sessions, name, "0\r\n\r\n").await.unwrap();
        assert_eq!(bytes, answer(name));
        if is_filtered {
            assert!(error.unwrap().is::<ContentFiltered>());
            assert_rolled_back(&sessions, &before);
        } else {
            assert!(error.is_none());
            assert_committed(&sessions);
        }
    }
}

#[tokio::test]
async fn a_connection_that_is_cut_off_is_an_error_of_hypers() {
    let sessions = sessions(Format::AnthropicMessages, CycleMode::Preserve);
    let before = state(&sessions);
    let name = "failed/anthropic-cut-in-text.sse";
    let (bytes, error) = read(&sessions, name, "").await.unwrap();
    assert_eq!(bytes, answer(name));
    let error = error.unwrap();
    assert!(tr_core::root_cause(&*error).to_string().contains("unexpected EOF"), "{error:?}");
    assert_rolled_back(&sessions, &before);
}
