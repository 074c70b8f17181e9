//! What is behind the door for clients over HTTP: a server at an address, or servers that run a command.
use super::{
    answer,
    presence::{Presence, Watched},
    server_event::{EventStream, Posted},
};
use crate::front::body::{Answered, respond};
use bytes::Bytes;
use hyper::{HeaderMap, Request, StatusCode, Uri, http::request::Parts};
use std::future::Future;

/// A server, to which messages are posted one by one.
pub(crate) trait Backend: Clone + Send + Sync + 'static {
    /// The server as a request at this address reaches it.
    fn at(&self, _: &Uri) -> Self {
        self.clone()
    }

    /// The path of the endpoint.
    fn path(&self) -> &str;

    /// Whether no server of HTTP is behind, which resumes streams itself: then the guard checks what such a server
    /// checks.
    const IS_COMMAND: bool = false;

    /// # Errors
    /// If this request can have no call: its session is not known.
    fn admit(&self, _: &Parts) -> Result<(), Box<Answered>> {
        Ok(())
    }

    /// Whether the server has accepted a request with this session and this credential.
    fn has_answered(&self, _: &Parts) -> bool {
        false
    }

    /// Sends a message, of a client whose presence tells whether it is there.
    fn post(&self, posted: Posted, presence: Option<&Presence>) -> EventStream;

    /// The response to a guarded call as its client gets it.
    fn kept(&self, _: &HeaderMap, answer: Answered, _: &Watched) -> Answered {
        answer
    }

    /// Answers a request that is no guarded call.
    fn other(&self, request: Request<Bytes>) -> impl Future<Output = Answered> + Send;
}

/// A response with a JSON-RPC error of the guard's.
pub(crate) fn refused(status: StatusCode, id: &str, code: i64, why: &str) -> Answered {
    respond(status, answer::refusal(id, code, why))
}
