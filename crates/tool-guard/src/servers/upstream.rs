//! The MCP server behind an address: messages are posted to it, and its answers are heard.
mod alive;
mod body;
mod faults;
mod headers;
mod http;
mod posting;
mod preflight;

pub(crate) use self::{body::Events, faults::is_protocol_refusal};
use self::{
    faults::{About, Fault, Kind, failure},
    http::Server,
    posting::HttpPost,
};
use crate::{
    engine::{
        failure::Failure,
        options::{HttpOptions, StatusRules},
        server_event::{EventStream, Posted, ServerEvent},
    },
    wire::http_names::SESSION,
};
use anyhow::Context as _;
use bytes::Bytes;
use futures_util::Stream;
use hyper::{HeaderMap, Method, Request, Response, Uri, body::Incoming, http::request::Parts};
use std::sync::{Arc, atomic::AtomicBool};
use tokio::time::Instant;

/// The server behind `--upstream`.
#[derive(Clone, Debug)]
pub(crate) struct Upstream {
    server: Arc<Server>,
    /// The address of messages; `None` for that of the options.
    uri: Option<Uri>,
}

impl Upstream {
    /// The server of the options; messages of more than `max_line` bytes are not kept.
    ///
    /// # Errors
    /// If there is no address, or it may not be used.
    pub(crate) fn new(
        options: &HttpOptions,
        status: StatusRules,
        max_line: usize,
    ) -> anyhow::Result<Self> {
        let url = options.upstream.as_ref().context("--upstream is missing")?;
        let server = Arc::new(Server::new(url, options, status, max_line)?);
        Ok(Self { server, uri: None })
    }

    /// The server as a client's request at this address reaches it.
    pub(crate) fn at(&self, uri: &Uri) -> Self {
        Self { server: self.server.clone(), uri: Some(self.server.on_server(uri)) }
    }

    /// Posts a message. What is heard ends when nothing more can come; dropping it closes the connection.
    pub(crate) fn post(&self, posted: Posted) -> EventStream {
        let is_sent = Arc::<AtomicBool>::default();
        EventStream::of(self.events(posted, is_sent.clone()), is_sent)
    }

    /// The same; `is_sent` becomes true when the first byte may leave.
    pub(crate) fn events(
        &self,
        posted: Posted,
        is_sent: Arc<AtomicBool>,
    ) -> impl Stream<Item = ServerEvent> + Send + use<> {
        let uri = self.uri.as_ref().unwrap_or_else(|| self.server.url()).clone();
        HttpPost::new(self.server.clone(), uri, posted, is_sent).events()
    }

    /// The events of a response.
    pub(crate) fn events_of(&self, body: Incoming) -> Events {
        Events::new(body, self.server.max_line)
    }

    /// A request to the endpoint.
    pub(crate) fn request(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Request<Bytes> {
        http::request(method, self.path().parse().unwrap_or_default(), headers, body)
    }

    /// Whether the server has accepted a request with this session and this credential.
    pub(crate) fn has_answered(&self, head: &Parts) -> bool {
        let alive = &self.server.alive;
        alive.has_worked(&alive.peer(self.server.on_server(&head.uri).query(), &head.headers))
    }

    /// Passes a request on, and its response back.
    ///
    /// # Errors
    /// If the server gave no response, or one that leads elsewhere.
    pub(crate) async fn pass(
        &self,
        request: &Request<Bytes>,
        is_initialize: bool,
    ) -> Result<Response<Incoming>, Failure> {
        let server = &*self.server;
        let mut uri = server.on_server(request.uri());
        let peer = server.alive.peer(uri.query(), request.headers());
        let is_endpoint = request.uri().path() == self.path();
        let failed = |fault: &Fault| {
            let has_session = request.headers().contains_key(SESSION);
            let host = server.host();
            failure(fault, About { kind: Kind::Message, has_session, is_modern: false, host })
        };
        let headers = server.take(request.headers());
        let sent = server.send_on(request.method(), &mut uri, &headers, request.body()).await;
        let (head, body) = sent.map_err(|fault| failed(&fault))?;
        if is_endpoint
            && let Some(fault) = server.elsewhere(request.headers(), is_initialize, &head).await
        {
            return Err(failed(&fault));
        }
        let shows_life = is_endpoint && request.method() != Method::DELETE;
        if head.status.is_success() && shows_life {
            server.alive.note(peer, Instant::now());
        }
        Ok(Response::from_parts(head, body))
    }

    /// The path of the endpoint.
    pub(crate) fn path(&self) -> &str {
        self.server.path()
    }
}
