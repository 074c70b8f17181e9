//! Requests to the server, and refusals that say that it is elsewhere, or speaks something else: redirects, logins, the
//! transport before Streamable HTTP.
use super::{
    alive::Alive,
    body::last_cause,
    faults::Fault,
    headers::{forwarded, without_connection},
};
use crate::{
    connect::{Connector, Trust, was_not_sent},
    engine::options::{HttpOptions, Preflight, StatusRules},
    front::{access::text, log_limit::LogLimit},
};
use anyhow::Context as _;
use bytes::Bytes;
use futures_util::StreamExt as _;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    HeaderMap, Method, Request, StatusCode, Uri,
    body::Incoming,
    header::{ACCEPT, AUTHORIZATION, HOST, HeaderValue, LOCATION, WWW_AUTHENTICATE},
    http::{response, uri::PathAndQuery},
};
use hyper_util::client::legacy::{self, Client};
use std::{
    io,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::time::timeout;
use tokio_rustls::rustls;
use tool_reliability::telemetry::TARGET;
use tr_core::causes;
use url::Url;

/// How long the older transport may take to show itself, and in how many bytes.
const SHOWN: Duration = Duration::from_secs(2);
const FIRST: usize = 4 * 1024;

/// The server, the connections to it, and what all requests to it share.
#[derive(Debug)]
pub(crate) struct Upstream {
    client: Client<Connector, Full<Bytes>>,
    url: Uri,
    /// Where requests to the endpoint go since it was redirected.
    moved: OnceLock<Uri>,
    host: HeaderValue,
    /// The log of what the server is in place of the expected.
    limit: LogLimit,
    pub(super) alive: Alive,
    pub(super) status: StatusRules,
    pub(super) preflight: Preflight,
    /// Messages of more bytes are not kept.
    pub(crate) max_line: usize,
}

impl Upstream {
    /// The server of the options; messages of more than `max_line` bytes are not kept.
    ///
    /// # Errors
    /// If there is no address, or it may not be used, or no authority is trusted.
    pub(crate) fn new(
        options: &HttpOptions,
        status: StatusRules,
        max_line: usize,
    ) -> anyhow::Result<Arc<Self>> {
        let url = options.upstream.as_ref().context("--upstream is missing")?;
        let client = Trust::new(&options.reach)?.connector(url)?.client();
        let host = url.authority().context("--upstream: the URL names no host")?;
        let host = HeaderValue::from_str(host.as_str()).context("--upstream")?;
        Ok(Arc::new(Self {
            client,
            url: url.clone(),
            moved: OnceLock::new(),
            host,
            limit: LogLimit::default(),
            alive: Alive::default(),
            status,
            preflight: options.preflight,
            max_line,
        }))
    }

    /// The path at which clients know the endpoint.
    pub(crate) fn path(&self) -> &str {
        self.url.path()
    }

    /// The address of the endpoint.
    pub(super) fn url(&self) -> &Uri {
        self.moved.get().unwrap_or(&self.url)
    }

    /// Sends this request, and all later ones to the endpoint, to another path of the server.
    pub(super) fn move_to(&self, path: &str, request: &mut Uri) -> bool {
        let Some(moved) = with_path(&self.url, path) else { return false };
        let moved = self.moved.get_or_init(|| moved);
        let at = with_path(request, moved.path());
        at.map(|at| *request = at).is_some()
    }

    /// Where the server is, for messages.
    pub(super) fn host(&self) -> &str {
        self.host.to_str().unwrap_or("its address")
    }

    /// A client's headers as the server gets them.
    pub(super) fn take(&self, headers: &HeaderMap) -> HeaderMap {
        forwarded(headers, &self.host)
    }

    /// Sends a request to an address of the server's.
    pub(super) async fn send(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<(response::Parts, Incoming), Fault> {
        let request = request(method.clone(), uri.clone(), headers.clone(), body.clone());
        let sent = self.client.request(request.map(Full::new)).await;
        let response = sent.map_err(|error| fault(&error))?;
        let (mut head, body) = response.into_parts();
        without_connection(&mut head.headers);
        Ok((head, body))
    }

    /// The address on the server. That of the endpoint may have a query of its own.
    pub(crate) fn on_server(&self, uri: &Uri) -> Uri {
        let is_endpoint = uri.path() == self.url.path();
        if is_endpoint && uri.query().is_none() {
            return self.url().clone();
        }
        let mut parts = self.url.clone().into_parts();
        let path = uri.path_and_query().cloned();
        parts.path_and_query = Some(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
        let at = Uri::from_parts(parts).unwrap_or_else(|_| self.url.clone());
        let moved = self.moved.get().filter(|_| is_endpoint);
        moved.and_then(|moved| with_path(&at, moved.path())).unwrap_or(at)
    }

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
            let sent = self.send(method, uri, headers, body).await?;
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
        let to = text(&head.headers, &LOCATION).filter(|_| keeps_method);
        let Some((asked, to)) = Url::parse(&uri.to_string()).ok().zip(to) else { return false };
        let Ok(target) = asked.join(to) else { return false };
        let slash = |a: &str, b: &str| a.strip_suffix('/') == Some(b);
        let (to, from) = (target.path(), uri.path());
        let is_same = asked.origin() == target.origin() && (slash(to, from) || slash(from, to));
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
            match self.send(&Method::GET, self.url(), &headers, &Bytes::new()).await {
                Ok((head, body)) if head.status.is_success() => begins_with_endpoint(body).await,
                _ => false,
            }
        };
        timeout(SHOWN, asked).await.unwrap_or_default()
    }
}

/// The address with another path.
fn with_path(uri: &Uri, path: &str) -> Option<Uri> {
    let mut parts = uri.clone().into_parts();
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    parts.path_and_query = Some(PathAndQuery::try_from(format!("{path}{query}")).ok()?);
    Uri::from_parts(parts).ok()
}

/// A request.
pub(super) fn request(method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Request<Bytes> {
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    request
}

fn fault(error: &legacy::Error) -> Fault {
    let why = last_cause(error);
    let is_tls = |cause: &(dyn std::error::Error + 'static)| {
        let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        cause.is::<rustls::Error>()
            || inner.is_some_and(|it| it.downcast_ref::<rustls::Error>().is_some())
    };
    match () {
        () if error.is_connect() && causes(error).any(is_tls) => Fault::Tls(why),
        () if was_not_sent(error) => Fault::NotConnected(why),
        () => Fault::Dropped(why),
    }
}

async fn begins_with_endpoint(body: Incoming) -> bool {
    let (mut body, mut begun) = (body.into_data_stream(), Vec::new());
    while begun.len() < FIRST
        && let Some(Ok(data)) = body.next().await
    {
        begun.extend_from_slice(&data);
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
