//! The stream of the server's own messages, which is opened again when it ends.
use crate::mcp::upstream::{
    Heard, Upstream,
    sse::{Content, Splitter},
};
use futures_util::{Stream, stream};
use http_body_util::{BodyExt as _, Empty};
use hyper::{
    HeaderMap, Method, Request,
    header::{HeaderName, HeaderValue},
};
use std::time::Duration;
use tokio::time::sleep;

const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// How long before it is opened again, unless the server says how long.
const AGAIN: Duration = Duration::from_secs(1);

/// A request without a body.
pub(super) fn request(
    upstream: &Upstream,
    method: Method,
    headers: HeaderMap,
) -> Request<crate::mcp::upstream::BoxBody> {
    let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = upstream.path().parse().unwrap_or_default();
    *request.headers_mut() = headers;
    request
}

/// The server's own messages: a server without them refuses the request.
pub(super) fn own_stream(
    upstream: Upstream,
    headers: HeaderMap,
    max_line: usize,
) -> impl Stream<Item = Heard> + Send {
    struct Own {
        upstream: Upstream,
        headers: HeaderMap,
        max_line: usize,
        now: Option<(hyper::body::Incoming, Splitter)>,
        wait: Option<Duration>,
    }
    let state = Own { upstream, headers, max_line, now: None, wait: None };
    stream::unfold(state, |mut own| async move {
        loop {
            let Some((body, splitter)) = &mut own.now else {
                if let Some(wait) = own.wait {
                    sleep(wait).await;
                }
                let get = request(&own.upstream, Method::GET, own.headers.clone());
                match own.upstream.pass(get).await {
                    Ok(response) if response.status().is_success() => {
                        own.now = Some((response.into_body(), Splitter::new(own.max_line)));
                        own.wait.get_or_insert(AGAIN);
                    }
                    // It has none, or the session is gone.
                    Ok(_) => return None,
                    Err(_) => {
                        own.wait = Some(own.wait.map_or(AGAIN, |it| (it * 2).min(AGAIN * 30)));
                    }
                }
                continue;
            };
            if let Some(piece) = splitter.next() {
                if let Some(id) = piece.id.as_deref().and_then(|id| HeaderValue::from_str(id).ok())
                {
                    own.headers.insert(LAST_EVENT, id);
                }
                own.wait = piece.retry.or(own.wait);
                match piece.content {
                    Content::Message(line) => {
                        return Some((Heard::Message { line, raw: piece.raw }, own));
                    }
                    Content::Oversized(long) => return Some((Heard::Oversized(long), own)),
                    Content::None => continue,
                }
            }
            match body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        splitter.feed(&data);
                    }
                }
                Some(Err(_)) | None => own.now = None,
            }
        }
    })
}
