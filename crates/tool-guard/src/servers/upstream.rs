//! The MCP server behind an address: messages are posted to it, and its answers are heard.
mod alive;
mod body;
mod faults;
mod headers;
mod http;
mod posting;
mod preflight;

use self::faults::{Fault, Kind, failure};
pub(crate) use self::{body::Events, faults::is_protocol_refusal, http::Upstream};
use crate::engine::failure::Failure;
use bytes::Bytes;
use hyper::{HeaderMap, Method, Request, Response, body::Incoming, http::request::Parts};
use tokio::time::Instant;

impl Upstream {
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
        let uri = self.on_server(&head.uri);
        self.alive.has_worked(&self.alive.peer(uri.query(), &head.headers))
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
        let mut uri = self.on_server(request.uri());
        let peer = self.alive.peer(uri.query(), request.headers());
        let is_endpoint = request.uri().path() == self.path();
        let failed = |fault: &Fault| failure(fault, Kind::Message, self.host());
        let headers = self.take(request.headers());
        let sent = self.send_on(request.method(), &mut uri, &headers, request.body()).await;
        let (head, body) = sent.map_err(|fault| failed(&fault))?;
        if is_endpoint
            && let Some(fault) = self.elsewhere(request.headers(), is_initialize, &head).await
        {
            return Err(failed(&fault));
        }
        let shows_life = is_endpoint && request.method() != Method::DELETE;
        if head.status.is_success() && shows_life {
            self.alive.note(peer, Instant::now());
        }
        Ok(Response::from_parts(head, body))
    }
}
