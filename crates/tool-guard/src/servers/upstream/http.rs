//! Requests to the server.
use super::{
    alive::Alive,
    body::last_cause,
    faults::Fault,
    headers::{forwarded, without_connection},
};
use crate::{
    connect::{Connector, Trust, was_not_sent},
    engine::options::{HttpOptions, Preflight, StatusRules},
    front::log_limit::LogLimit,
};
use anyhow::Context as _;
use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    HeaderMap, Method, Request, Uri,
    body::Incoming,
    header::HeaderValue,
    http::{response, uri::PathAndQuery},
};
use hyper_util::client::legacy::{self, Client};
use std::{io, sync::OnceLock};
use tokio_rustls::rustls;
use tr_core::causes;

/// The server, the connections to it, and what all requests to it share.
#[derive(Debug)]
pub(super) struct Server {
    client: Client<Connector, Full<Bytes>>,
    url: Uri,
    /// Where requests to the endpoint go since it was redirected.
    moved: OnceLock<Uri>,
    host: HeaderValue,
    /// The log of what the server is in place of the expected.
    pub(super) limit: LogLimit,
    pub(super) alive: Alive,
    pub(super) status: StatusRules,
    pub(super) preflight: Preflight,
    /// Messages of more bytes are not kept.
    pub(super) max_line: usize,
}

impl Server {
    /// # Errors
    /// If the address may not be used, or no authority is trusted.
    pub(super) fn new(
        url: &Uri,
        options: &HttpOptions,
        status: StatusRules,
        max_line: usize,
    ) -> anyhow::Result<Self> {
        let client = Trust::new(&options.reach)?.connector(url)?.client();
        let host = url.authority().context("--upstream: the URL names no host")?;
        let host = HeaderValue::from_str(host.as_str()).context("--upstream")?;
        Ok(Self {
            client,
            url: url.clone(),
            moved: OnceLock::new(),
            host,
            limit: LogLimit::default(),
            alive: Alive::default(),
            status,
            preflight: options.preflight,
            max_line,
        })
    }

    /// The path at which clients know the endpoint.
    pub(super) fn path(&self) -> &str {
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
        method: Method,
        uri: Uri,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<(response::Parts, Incoming), Fault> {
        let request = request(method, uri, headers, body).map(Full::new);
        let response = self.client.request(request).await.map_err(|error| fault(&error))?;
        let (mut head, body) = response.into_parts();
        without_connection(&mut head.headers);
        Ok((head, body))
    }

    /// The address on the server. That of the endpoint may have a query of its own.
    pub(super) fn on_server(&self, uri: &Uri) -> Uri {
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
