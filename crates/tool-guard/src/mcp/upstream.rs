//! The MCP server behind an address: messages are posted to it, and its answers are heard.
mod alive;
mod answered;
mod body;
mod faults;
mod headers;
mod heard;
mod hearing;
mod http;
mod preflight;
mod shared;
pub(crate) mod sse;

pub(crate) use self::{
    alive::SESSION,
    faults::{error, is_protocol_refusal},
    heard::{Heard, Posted},
    hearing::Hearing,
    http::BoxBody,
};

use self::{
    faults::{About, Judged, Kind, judge},
    shared::Shared,
};
use super::{failure::Failure, options::HttpOptions, status_rules::StatusRules};
use anyhow::Context as _;
use hyper::{Request, Response, body::Incoming};
use std::sync::Arc;
use tokio::time::Instant;
use tr_core::{FailureInfo, Ran, Verdict};

/// The server behind `--upstream`.
#[derive(Clone, Debug)]
pub(crate) struct Upstream(Arc<Shared>);

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
        Ok(Self(Arc::new(Shared::new(url, options, status, max_line)?)))
    }

    /// Posts a message. What is heard ends when nothing more can come; dropping it closes the connection.
    pub(crate) fn post(&self, posted: Posted) -> Hearing {
        Hearing::of(self.0.clone(), posted)
    }

    /// Passes a request on unread, and its response back.
    ///
    /// # Errors
    /// If the server gave no response.
    pub(crate) async fn pass(
        &self,
        request: Request<BoxBody>,
    ) -> Result<Response<Incoming>, Failure> {
        let has_session = request.headers().contains_key(SESSION);
        let peer = self.0.alive.peer(request.headers());
        match self.0.target.pass(request).await {
            Ok(response) => {
                if response.status().is_success() {
                    self.0.alive.note(peer, Instant::now());
                }
                Ok(response)
            }
            Err(fault) => {
                let host = self.0.target.host();
                let about = About { kind: Kind::Message, has_session, is_modern: false, host };
                Err(match judge(&fault, about, &self.0.status) {
                    Judged::Fail(failure) => failure,
                    Judged::Pass => Failure::said(
                        "The MCP server gave no response",
                        FailureInfo::new("connection_reset", Ran::Unknown, Verdict::TRANSIENT),
                    ),
                })
            }
        }
    }

    /// The path of the endpoint.
    pub(crate) fn path(&self) -> &str {
        self.0.target.path()
    }
}
