//! Bodies of requests and of answers.
use super::{
    access::Refusal,
    budget::{Held, NoRoom, hold},
};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use hyper::{
    Response, StatusCode,
    body::{Body as _, Incoming},
    header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER},
};
use std::{pin::pin, time::Duration};
use tokio::time::{Instant, timeout_at};
use tr_core::BoxError;

/// How long [`PACE`] bytes of a request's body, or the rest of it, may take: bodies that trickle hold what others need.
const PAUSE: Duration = Duration::from_secs(30);
const PACE: usize = 64 * 1024;

/// An answer.
pub(crate) type Answered = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// The whole body of a request.
///
/// # Errors
/// If it is too long, too slow, or breaks off, or if others hold too much.
pub(crate) async fn read(body: Incoming, most: usize) -> Result<Bytes, Refusal> {
    const LONG: &str = "the body is longer than --max-body allows";
    const SLOW: &str = "the body paused: 30 s brought less than 64 KiB of it";
    const FULL: Refusal = (
        StatusCode::SERVICE_UNAVAILABLE,
        "too many long bodies are held for other clients: nothing was done with this one; send it again later",
    );
    if body.size_hint().lower() > most as u64 {
        return Err((StatusCode::PAYLOAD_TOO_LARGE, LONG));
    }
    let mut held = Held::nothing();
    held.grow(announced(&body, most)).map_err(|NoRoom| FULL)?;
    let mut body = pin!(body);
    let mut all = Vec::with_capacity(announced(&body, most));
    let (mut until, mut wanted) = (Instant::now() + PAUSE, PACE);
    loop {
        let frame = match timeout_at(until, body.frame()).await {
            Err(_) => return Err((StatusCode::REQUEST_TIMEOUT, SLOW)),
            Ok(None) => return Ok(held.with(all.into())),
            Ok(Some(Err(_))) => return Err((StatusCode::BAD_REQUEST, "the body broke off")),
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        if all.len() + data.len() > most {
            return Err((StatusCode::PAYLOAD_TOO_LARGE, LONG));
        }
        held.grow(all.len() + data.len()).map_err(|NoRoom| FULL)?;
        all.extend_from_slice(&data);
        if all.len() >= wanted {
            (until, wanted) = (Instant::now() + PAUSE, all.len() + PACE);
        }
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

/// An answer that is the text of JSON; if others hold too much, one that says so in its place.
pub(crate) fn respond(status: StatusCode, body: Bytes) -> Answered {
    const FULL: &[u8] = br#"{"error":"the answer came, but was not kept: too many long ones are held for other clients","ran":"unknown"}"#;
    let (status, body) = match hold(body) {
        Ok(body) => (status, body),
        Err(NoRoom) => (StatusCode::SERVICE_UNAVAILABLE, Bytes::from_static(FULL)),
    };
    let mut response =
        Response::new(Full::new(body).map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
