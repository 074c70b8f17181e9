//! Refusals that say that the server is elsewhere, or speaks something else: redirects, logins, the transport before
//! Streamable HTTP.
use super::{faults::Fault, http::Server};
use crate::front::access::text;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::{
    HeaderMap, Method, StatusCode, Uri,
    body::{Body as _, Incoming},
    header::{ACCEPT, AUTHORIZATION, HOST, HeaderValue, LOCATION, WWW_AUTHENTICATE},
    http::response,
};
use std::{pin::pin, time::Duration};
use tokio::time::timeout;
use tool_reliability::telemetry::TARGET;
use url::Url;

/// How long the older transport may take to show itself, and in how many bytes.
const SHOWN: Duration = Duration::from_secs(2);
const FIRST: usize = 4 * 1024;

impl Server {
    /// Sends a request, and follows its redirects.
    ///
    /// # Errors
    /// If the server gave no response.
    pub(super) async fn send_on(
        &self,
        method: &Method,
        uri: &mut Uri,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<(response::Parts, Incoming), Fault> {
        loop {
            let to = uri.clone();
            let sent = self.send(method.clone(), to, headers.clone(), body.clone()).await?;
            if !self.follow(&sent.0, uri) {
                return Ok(sent);
            }
        }
    }

    /// Follows a redirect from the endpoint to the same path with or without a slash at its end. All later requests go
    /// there, too.
    pub(super) fn follow(&self, head: &response::Parts, uri: &mut Uri) -> bool {
        // With other redirects, POST becomes GET.
        let keeps_method =
            matches!(head.status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        let asked = Url::parse(&uri.to_string()).ok().filter(|_| keeps_method);
        let target = asked.as_ref().zip(text(&head.headers, &LOCATION));
        let Some(target) = target.and_then(|(asked, to)| asked.join(to).ok()) else {
            return false;
        };
        let slash = |a: &str, b: &str| a.strip_suffix('/') == Some(b);
        let (to, from) = (target.path(), uri.path());
        let is_same_origin = asked.is_some_and(|asked| asked.origin() == target.origin());
        let is_same = is_same_origin && (slash(to, from) || slash(from, to));
        is_same && from == self.path() && self.move_to(to, uri)
    }

    /// What a response says of the server instead of answering.
    pub(super) async fn elsewhere(
        &self,
        asked: &HeaderMap,
        is_initialize: bool,
        head: &response::Parts,
    ) -> Option<Fault> {
        let (status, headers) = (head.status, &head.headers);
        let fault = match status {
            StatusCode::UNAUTHORIZED
                if !asked.contains_key(AUTHORIZATION)
                    && is_login_elsewhere(headers, text(asked, &HOST)) =>
            {
                Fault::Login
            }
            StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED
                if is_initialize && self.is_older().await =>
            {
                Fault::Older
            }
            _ if status.is_redirection() => {
                // A query may hold a secret.
                let to = text(headers, &LOCATION)?.split('?').next().unwrap_or_default();
                Fault::Redirected(status, to.chars().take(200).collect())
            }
            _ => return None,
        };
        if let Some(left_out) = self.limit.now() {
            let what = match &fault {
                Fault::Redirected(_, to) => format!("redirects to {to}"),
                Fault::Login => "asks for a login (OAuth): clients cannot log in through the guard; send a token with each request (--header-file), or connect them to the server itself".to_owned(),
                _ => "speaks HTTP with SSE, the transport before Streamable HTTP".to_owned(),
            };
            tracing::warn!(target: TARGET, event = "upstream_elsewhere", host = self.host(), what, left_out);
        }
        Some(fault)
    }

    /// Whether a GET of the endpoint begins with the event `endpoint`, as in MCP 2024-11-05.
    async fn is_older(&self) -> bool {
        let mut headers = self.take(&HeaderMap::new());
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let asked = async {
            let sent = self.send(Method::GET, self.url().clone(), headers, Bytes::new()).await;
            match sent {
                Ok((head, body)) if head.status.is_success() => begins_with_endpoint(body).await,
                _ => false,
            }
        };
        timeout(SHOWN, asked).await.unwrap_or_default()
    }
}

async fn begins_with_endpoint(body: Incoming) -> bool {
    let (mut body, mut begun) = (pin!(body), Vec::new());
    while !body.is_end_stream() && begun.len() < FIRST {
        let Some(Ok(frame)) = body.frame().await else { break };
        begun.extend_from_slice(&frame.into_data().unwrap_or_default());
        let mut lines = begun.split(|byte| matches!(byte, b'\r' | b'\n'));
        if lines.any(|line| matches!(line, b"event: endpoint" | b"event:endpoint")) {
            return true;
        }
    }
    false
}

/// Whether a challenge leads clients to a login which they refuse: its metadata is that of another address than they
/// asked.
fn is_login_elsewhere(headers: &HeaderMap, host: Option<&str>) -> bool {
    const METADATA: &str = "resource_metadata=";
    let challenges = headers.get_all(WWW_AUTHENTICATE);
    let mut challenges = challenges.iter().filter_map(|value| value.to_str().ok());
    challenges.any(|challenge| {
        let is_bearer = challenge.get(..6).is_some_and(|it| it.eq_ignore_ascii_case("bearer"));
        let Some(host) = host else { return is_bearer };
        let metadata = challenge.split_once(METADATA).map(|(_, url)| url.trim_start_matches('"'));
        let metadata = metadata.and_then(|url| url.split(['"', ',', ' ']).next());
        let url: Option<Uri> = metadata.and_then(|url| url.parse().ok());
        let authority = url.as_ref().and_then(|url| url.authority());
        is_bearer && authority.is_some_and(|it| !it.as_str().eq_ignore_ascii_case(host))
    })
}
