//! Requests of the protocol without sessions: all clients share a child.
use super::{
    HttpToCommand,
    answered::{Asked, NoResult, answered, not_started, of_sessions},
    session::caller,
};
use crate::{
    front::body::Answered,
    servers::connection::{Connection, Sharing},
    wire::{http_names::status_of, jsonrpc::METHOD_NOT_FOUND},
};
use bytes::Bytes;
use hyper::HeaderMap;
use std::io;
use tr_core::{Ran, internal::lock};

impl HttpToCommand {
    /// The child of requests without a session, for one with these headers.
    pub(super) fn child(&self, headers: &HeaderMap) -> io::Result<Connection> {
        let mut shared = lock(&self.shared);
        let child = match shared.child.as_ref().filter(|child| !child.is_gone()) {
            Some(child) => child.clone(),
            None => {
                let child = self.start(Sharing::Clients)?;
                shared.child.insert(child).clone()
            }
        };
        let caller = caller(headers);
        // Clients without a credential are not told apart.
        let is_other = shared.caller.is_some() && shared.caller != caller;
        if caller.is_none() || is_other {
            child.mix();
        }
        shared.caller = caller.or(shared.caller);
        drop(shared);
        Ok(child)
    }

    /// Answers a request of the protocol without sessions.
    pub(super) async fn modern(&self, headers: &HeaderMap, body: Bytes, asked: &Asked) -> Answered {
        let discovers = asked.method.as_deref() == Some("server/discover");
        if discovers && lock(&self.shared).is_legacy {
            return of_sessions(&asked.id);
        }
        let child = match self.child(headers) {
            Ok(child) => child,
            Err(error) => return not_started(&asked.id, &error),
        };
        let mut answer = answered(child.post(body, false, None), &self.guard, asked, false).await;
        let code = match answer.extensions().get() {
            Some(NoResult::Error(code)) => *code,
            // Some servers end when their first request is no `initialize`.
            Some(NoResult::Unanswered(Ran::Unknown)) if discovers => return of_sessions(&asked.id),
            _ => {
                lock(&self.shared).is_modern |= discovers;
                return answer;
            }
        };
        // A server that knows no discovery answers it with one of these, every time.
        if discovers && matches!(code, -32602..=-32600) && !lock(&self.shared).is_modern {
            // Other codes may be of this request alone.
            if code == METHOD_NOT_FOUND {
                let mut shared = lock(&self.shared);
                shared.is_legacy = true;
                // No client will ask it anything.
                shared.child.take_if(|_| child.streams() == 0).as_ref().inspect(|it| it.end());
            }
            return of_sessions(&asked.id);
        }
        *answer.status_mut() = status_of(code);
        answer
    }
}
