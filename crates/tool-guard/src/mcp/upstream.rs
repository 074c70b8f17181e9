//! The MCP server behind an address: messages are posted to it, and its answers are heard.
mod alive;
mod answered;
mod body;
mod faults;
mod headers;
mod heard;
mod http;
mod posting;
mod preflight;
pub(crate) mod sse;

pub(crate) use self::{
    body::Events,
    faults::{error, is_protocol_refusal},
    heard::{Heard, Hearing, Posted, next_of},
    http::request,
    preflight::client_meta,
};

use self::{
    faults::{About, Kind, failure},
    http::Server,
    posting::Exchange,
};
use super::{
    failure::Failure,
    identity::SESSION,
    options::{HttpOptions, StatusRules},
};
use anyhow::Context as _;
use bytes::Bytes;
use hyper::{Method, Request, Response, Uri, body::Incoming};
use std::sync::Arc;
use tokio::time::Instant;

/// The server behind `--upstream`.
#[derive(Clone, Debug)]
pub(crate) struct Upstream {
    server: Arc<Server>,
    /// The address of messages.
    uri: Uri,
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
        Ok(Self { server, uri: url.clone() })
    }

    /// The server as a client's request at this address reaches it.
    pub(crate) fn at(&self, uri: &Uri) -> Self {
        Self { server: self.server.clone(), uri: self.server.on_server(uri) }
    }

    /// Posts a message. What is heard ends when nothing more can come; dropping it closes the connection.
    pub(crate) fn post(&self, posted: Posted) -> Hearing {
        Exchange::new(self.server.clone(), self.uri.clone(), posted).hearing()
    }

    /// Passes a request on unread, and its response back.
    ///
    /// # Errors
    /// If the server gave no response.
    pub(crate) async fn pass(
        &self,
        request: Request<Bytes>,
    ) -> Result<Response<Incoming>, Failure> {
        let has_session = request.headers().contains_key(SESSION);
        let uri = self.server.on_server(request.uri());
        let peer = self.server.alive.peer(uri.query(), request.headers());
        let shows_life = request.uri().path() == self.path() && request.method() != Method::DELETE;
        match self.server.pass(request).await {
            Ok(response) => {
                if response.status().is_success() && shows_life {
                    self.server.alive.note(peer, Instant::now());
                }
                Ok(response)
            }
            Err(fault) => {
                let host = self.server.host();
                let about = About { kind: Kind::Message, has_session, is_modern: false, host };
                Err(failure(&fault, about))
            }
        }
    }

    /// The path of the endpoint.
    pub(crate) fn path(&self) -> &str {
        self.server.path()
    }
}
