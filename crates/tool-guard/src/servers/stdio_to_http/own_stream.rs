//! The stream of the server's own messages, which is opened again when it ends.
use super::headers::Headers;
use crate::{
    engine::server_event::ServerEvent,
    servers::upstream::{Events, Upstream},
    wire::{http_names::LAST_EVENT, sse::Content},
};
use bytes::Bytes;
use futures_util::{Stream, stream};
use hyper::{
    Method, StatusCode,
    header::{ACCEPT, HeaderValue},
};
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;

/// How long before it is opened again, unless the server says how long.
const AGAIN: Duration = Duration::from_secs(1);

/// The shortest pause, whatever the server says.
const SHORTEST: Duration = Duration::from_millis(100);
/// The longest pause, unless the server wants a longer one.
const LONGEST: Duration = Duration::from_secs(30);

/// Whether a server that says so has no such stream: it would say it again.
fn is_final(status: StatusCode) -> bool {
    let passes = matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS);
    status.is_client_error() && !passes
}

/// The server's own messages in this session: a server without them refuses the request.
pub(super) fn own_stream(
    upstream: Arc<Upstream>,
    headers: Headers,
) -> impl Stream<Item = ServerEvent> + Send {
    struct Own {
        upstream: Arc<Upstream>,
        headers: Headers,
        now: Option<Events>,
        /// The last event's id, after which the stream goes on.
        last_id: Option<HeaderValue>,
        /// How long before it is opened again.
        pause: Duration,
        /// How often it could not be opened since it last was; `None` before the first time.
        failures: Option<u32>,
    }
    let state = Own { upstream, headers, now: None, last_id: None, pause: AGAIN, failures: None };
    stream::unfold(state, |mut own| async move {
        loop {
            let Some(events) = &mut own.now else {
                if let Some(failures) = own.failures {
                    let pause = own.pause.max(SHORTEST);
                    sleep((pause * 2_u32.pow(failures.min(8))).min(pause.max(LONGEST))).await;
                }
                let mut headers = own.headers.base();
                headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
                headers.extend(own.last_id.clone().map(|id| (LAST_EVENT, id)));
                let get = own.upstream.request(Method::GET, headers, Bytes::new());
                match own.upstream.pass(&get, false).await {
                    Ok(response) if response.status().is_success() => {
                        own.now = Some(Events::new(response.into_body(), own.upstream.max_line));
                        own.failures = Some(0);
                    }
                    // It has none, or the session is gone.
                    Ok(response) if is_final(response.status()) => return None,
                    Ok(_) | Err(_) => {
                        own.failures = Some(own.failures.map_or(0, |it| it.saturating_add(1)));
                    }
                }
                continue;
            };
            let Ok(Some(piece)) = events.next().await else {
                own.now = None;
                continue;
            };
            if let Some(id) = piece.id.as_deref().and_then(|id| HeaderValue::from_str(id).ok()) {
                // An empty one takes the last one back.
                own.last_id = Some(id).filter(|id| !id.is_empty());
            }
            own.pause = piece.retry.unwrap_or(own.pause);
            match piece.content {
                Content::Message(line) => {
                    let heard = ServerEvent::Message { line, raw: piece.raw, answers: false };
                    return Some((heard, own));
                }
                Content::Oversized(long) => return Some((ServerEvent::Oversized(long), own)),
                Content::None => {}
            }
        }
    })
}
