//! A client on standard input and output, a server at an address: the guard is that server's client.
mod headers;
mod open;
mod own_stream;
mod talk;

use self::open::Open;
pub(crate) use self::talk::StdioToHttp;
use crate::{
    engine::{
        answer,
        failure::Failure,
        one_client,
        options::Mode,
        out::{Out, Outgoing},
        proxy::{Proxy, too_long},
        server_event::ServerEvent,
    },
    wire::{
        jsonrpc::{self, Line, NOT_FORWARDED, Token},
        lines::{Item, Oversized},
    },
};
use bytes::Bytes;
use std::{borrow::Cow, future::pending, process::ExitCode, time::Duration};
use tokio::time::timeout;
use tr_core::one_line;

/// How long the end of the session may take.
const GOODBYE: Duration = Duration::from_secs(2);

impl StdioToHttp {
    /// The server's own error in place of the guard's answer.
    fn refusal(&mut self, line: &[u8]) -> Option<Bytes> {
        if self.refusals.is_empty() {
            return None;
        }
        let Line::One(answer) = jsonrpc::read(line) else { return None };
        let id = answer.id.filter(|_| answer.method.is_none()).and_then(Token::read)?;
        let at = self.refusals.iter().position(|(refused, _)| *refused == id)?;
        Some(self.refusals.swap_remove(at).1)
    }

    fn is_enforcing(&self) -> bool {
        self.mode == Mode::Enforce
    }

    fn fail(&mut self, open: &Open, failure: Failure, proxy: &mut Proxy) {
        let said = failure.to_string();
        if self.is_enforcing() {
            for id in &open.batch {
                proxy.on_request_failed(id, &said);
            }
            if let Some(id) = &open.id {
                proxy.on_failed(id, failure);
            }
            return;
        }
        for id in open.id.iter().chain(&open.batch) {
            let error = answer::refusal(&id.to_json(), NOT_FORWARDED, &said);
            proxy.to_client.bytes.copy(&error);
        }
    }

    /// Refuses a line that is too long to be a message over HTTP, also where nothing is guarded.
    fn on_long(&mut self, long: &Oversized, is_of_client: bool, proxy: &mut Proxy) {
        if self.is_enforcing() || long.id.is_none() {
            return;
        }
        let line = too_long(long, long.id.as_deref());
        // The side that asks gets it.
        if long.asks == is_of_client {
            proxy.to_client.bytes.push(line);
        } else {
            self.send(Outgoing { line, attempt: None });
        }
    }
}

impl one_client::Server for StdioToHttp {
    type Event = (Open, Option<ServerEvent>);

    fn on_client(&mut self, item: &Item, proxy: &mut Proxy) {
        if let Item::Oversized(long) = item {
            self.on_long(long, true, proxy);
        }
    }

    fn take(&mut self, proxy: &mut Proxy) {
        while let Some(outgoing) = proxy.to_server.next() {
            self.send(outgoing);
        }
        while let Some(Outgoing { line, .. }) = proxy.to_client.next() {
            let line = self.refusal(&line).unwrap_or(line);
            let unwritten = &mut proxy.to_client.bytes;
            match std::str::from_utf8(&line).map(|text| one_line(text.trim())) {
                Ok(Cow::Owned(text)) => unwritten.push(text.into()),
                Ok(Cow::Borrowed(text)) => unwritten.push(line.slice_ref(text.as_bytes())),
                Err(_) => unwritten.push(line.slice_ref(line.trim_ascii())),
            }
            unwritten.copy(b"\n");
        }
        if proxy.calls.is_empty() {
            self.refusals.clear();
        }
    }

    async fn next(&mut self, _: &mut Out, reads: bool) -> Self::Event {
        if reads { self.heard().await } else { pending().await }
    }

    fn on_event(
        &mut self,
        (open, heard): Self::Event,
        proxy: &mut Proxy,
        _: bool,
    ) -> Option<ExitCode> {
        match heard {
            Some(ServerEvent::Message { line, .. }) => proxy.on_server(&Item::Line(line)),
            Some(ServerEvent::Oversized(long)) => {
                self.on_long(&long, false, proxy);
                proxy.on_server(&Item::Oversized(long));
            }
            Some(ServerEvent::Head(..) | ServerEvent::Between(_)) => {}
            Some(ServerEvent::Refused(response)) => {
                let answer = self.answer(&open, &response);
                let failure = self.refused(&open, &response);
                match (answer, &open.id) {
                    (Some(answer), Some(id)) if open.call.is_some() && self.is_enforcing() => {
                        self.refusals.push((id.clone(), answer));
                        proxy.on_failed(id, failure);
                    }
                    (Some(answer), _) => proxy.on_server(&Item::Line(answer)),
                    (None, _) => self.fail(&open, failure, proxy),
                }
            }
            Some(ServerEvent::Failed(failure)) => self.fail(&open, failure, proxy),
            // Nothing answers it any more: it has ended already, if it was answered.
            None if self.is_enforcing() => self.fail(&open, Failure::UNANSWERED, proxy),
            None => {}
        }
        None
    }

    fn is_over(&self, proxy: &Proxy) -> bool {
        !self.is_busy() && !proxy.is_asked()
    }

    fn may_owe(&self, _: &Proxy) -> bool {
        // What is not guarded, only the talk knows.
        self.mode != Mode::Enforce && self.is_asked()
    }

    async fn end(mut self) -> Option<u8> {
        // A server that does not answer forgets the session by itself.
        let _ = timeout(GOODBYE, self.end_session()).await;
        None
    }
}
