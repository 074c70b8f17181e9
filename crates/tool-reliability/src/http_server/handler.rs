//! The handlers as the idempotency layer calls them: a response ends with its body.
use super::{
    body::{Gathered, GuardedBody, gather},
    policy::{HANDLER_FAILED, KeyedRequest, Reply, failed, not_ready},
    recorded::RecordedResponse,
};
use http::{HeaderMap, HeaderName, Request, Response, header};
use http_body::Body;
use std::{
    pin::Pin,
    task::{Context, Poll},
};
use tower_service::Service;
use tr_core::{BoxError, FailureInfo, Ran, Verdict};

/// What is kept of a response.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordRules {
    pub(super) max_bytes: usize,
    pub(super) headers: fn(&HeaderName) -> bool,
}

/// The inner service.
#[derive(Clone, Debug)]
pub(super) struct Handler<S> {
    pub(super) inner: S,
    pub(super) kept: RecordRules,
}

impl<S, B, R> Service<KeyedRequest<B>> for Handler<S>
where
    S: Service<
            Request<GuardedBody<B>>,
            Response = Response<R>,
            Error: Into<BoxError>,
            Future: Send + 'static,
        >,
    R: Body<Error: Into<BoxError>> + Send + 'static,
{
    type Response = Reply<R>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Reply<R>, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(|error| not_ready(error.into()))
    }

    fn call(&mut self, req: KeyedRequest<B>) -> Self::Future {
        let (called, kept) = (self.inner.call(req.request), self.kept);
        Box::pin(async move {
            let response = called.await.map_err(|error| failed(error.into()))?;
            reply(response, kept).await
        })
    }
}

/// Waits for the body of a response.
async fn reply<R>(response: Response<R>, kept: RecordRules) -> Result<Reply<R>, BoxError>
where
    R: Body<Error: Into<BoxError>>,
{
    let (head, body) = response.into_parts();
    if is_stream(&head.headers) {
        let response = Response::from_parts(head, GuardedBody::unread(body));
        return Ok(Reply { response, recorded: None });
    }
    let read = gather(body, kept.max_bytes).await.map_err(|error| {
        FailureInfo::new(HANDLER_FAILED, Ran::Unknown, Verdict::Permanent).because(error)
    })?;
    let (body, recorded) = match read {
        Gathered::Whole(bytes) => {
            let headers = kept_headers(&head.headers, kept.headers);
            let kept = RecordedResponse::new(head.status, headers, bytes.clone());
            (GuardedBody::whole(bytes), Some(kept))
        }
        Gathered::Longer(body) => (body, None),
    };
    Ok(Reply { response: Response::from_parts(head, body), recorded })
}

/// Whether the response is one whose reader wants each piece as it comes, and which may never end.
fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    ["application/x-ndjson", "multipart/x-mixed-replace", "text/event-stream"].contains(&&*kind)
        || kind.starts_with("application/grpc")
}

fn kept_headers(headers: &HeaderMap, is_kept: fn(&HeaderName) -> bool) -> HeaderMap {
    let mut kept = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers.iter().filter(|(name, _)| is_kept(name)) {
        kept.append(name.clone(), value.clone());
    }
    kept
}

/// All headers but those of one connection, those that the server writes for each response, and
/// cookies, which are secrets of one response.
pub(super) fn is_replayed(name: &HeaderName) -> bool {
    ![
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::DATE,
        header::PROXY_AUTHENTICATE,
        header::SET_COOKIE,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
    ]
    .contains(name)
        && !["keep-alive", "proxy-connection"].contains(&name.as_str())
}
