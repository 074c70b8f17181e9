//! Bodies of requests and of answers.
use super::access::Refusal;
use bytes::Bytes;
use futures_util::StreamExt as _;
use http_body_util::{BodyExt as _, BodyStream, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    Response, StatusCode,
    body::{Body as _, Incoming},
    header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue},
};
use serde_json::Value;
use std::{pin::pin, time::Duration};
use tokio::time::timeout;
use tr_core::BoxError;

/// How long the body of a request may pause.
const PAUSE: Duration = Duration::from_secs(30);

/// An answer.
pub(crate) type Answered = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// The whole body of a request.
///
/// # Errors
/// If it is too long, pauses, or breaks off.
pub(crate) async fn read(body: Incoming, most: usize) -> Result<Bytes, Refusal> {
    const LONG: &str = "the body is longer than --max-body allows";
    if body.size_hint().lower() > most as u64 {
        return Err((StatusCode::PAYLOAD_TOO_LARGE, LONG));
    }
    let mut body = pin!(body);
    let mut all = Vec::with_capacity(announced(&body, most));
    loop {
        let frame = match timeout(PAUSE, body.frame()).await {
            Err(_) => return Err((StatusCode::REQUEST_TIMEOUT, "the body paused for 30 s")),
            Ok(None) => return Ok(all.into()),
            Ok(Some(Err(_))) => return Err((StatusCode::BAD_REQUEST, "the body broke off")),
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        if all.len() + data.len() > most {
            return Err((StatusCode::PAYLOAD_TOO_LARGE, LONG));
        }
        all.extend_from_slice(&data);
    }
}

/// The room that is made for a body before it comes, whatever length is announced.
const ROOM: u64 = 16 * 1024 * 1024;

/// The room for a body, by its `content-length`: a buffer that grows may be copied, and takes the space twice.
pub(crate) fn announced(body: &Incoming, most: usize) -> usize {
    usize::try_from(body.size_hint().lower().min(ROOM)).unwrap_or(most).min(most)
}

/// Marks an answer whose stream carries no call's answer: it ends at once when the guard is asked to end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndsAtOnce;

/// The answer; if it [`EndsAtOnce`], its body ends with what `ended` gives.
pub(crate) fn until<E: Future<Output = ()> + Send + 'static>(
    answer: Answered,
    ended: impl FnOnce() -> E,
) -> Answered {
    if answer.extensions().get::<EndsAtOnce>().is_none() {
        return answer;
    }
    answer.map(|body| {
        let frames = BodyStream::new(body).take_until(Box::pin(ended()));
        StreamBody::new(frames).boxed_unsync()
    })
}

/// An answer that is JSON.
pub(crate) fn json_of(status: StatusCode, value: &Value) -> Answered {
    respond(status, value.to_string().into())
}

/// An answer that is the text of JSON.
pub(crate) fn respond(status: StatusCode, body: Bytes) -> Answered {
    let mut response =
        Response::new(Full::new(body).map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
