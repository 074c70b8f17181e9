//! Streamable HTTP, with sessions or without. A session is its credential's: requests of another find none.
use super::{Vault, answer, progress};
use crate::wire::{Head, close, message, send};
use serde_json::Value;
use std::{
    io::{BufReader, Read as _},
    net::TcpStream,
};

const EVENTS: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";

/// Serves one connection.
pub(super) fn serve(vault: &Vault, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let mut from = BufReader::new(&stream);
    while let Some(head) = Head::read(&mut from) {
        let mut body = Vec::new();
        let has_body = head.header("content-length").or(head.header("transfer-encoding"));
        if has_body.is_some() && head.body(&mut from).read_to_end(&mut body).is_err() {
            break;
        }
        let body = serde_json::from_slice(&body).unwrap_or_default();
        if !(Exchange { vault, to: &stream, head, body }).serve() {
            break;
        }
    }
    close(&stream);
}

struct Exchange<'v> {
    vault: &'v Vault,
    to: &'v TcpStream,
    head: Head,
    body: Value,
}

impl Exchange<'_> {
    /// Answers a request; whether the connection stays.
    fn serve(&self) -> bool {
        let body = &self.body;
        let version = self.head.header("mcp-protocol-version").unwrap_or_default();
        let is_stateless = version >= "2026" || !self.vault.0.has_sessions;
        let place = self.head.header("mcp-session-id").filter(|_| !is_stateless).unwrap_or("");
        let is_note = body.get("id").is_none() || body.get("method").is_none();
        match self.head.method() {
            "POST" if is_note => {
                // It does not ask whose a cancellation is, as many servers do not.
                self.vault.note(place, body);
                self.send(&message("HTTP/1.1 202 Accepted", &[], b""))
            }
            "POST" if body["method"] == "initialize" && !is_stateless => self.begin(),
            "POST" | "GET" | "DELETE" if !is_stateless && !self.is_in_session(place) => {
                self.status("404 Not Found")
            }
            "POST" if body["method"] == "tools/call" => self.call(place, version < "2026"),
            "POST" => self.say(&[], &answer(body, Vault::result(body))),
            "DELETE" if !is_stateless => {
                self.vault.state().sessions.remove(place);
                self.vault.end(super::End::Cancelled, |execution| execution.place == place);
                self.status("200 OK")
            }
            "GET" if !is_stateless => self.resume(place),
            _ => self.status("405 Method Not Allowed"),
        }
    }

    fn begin(&self) -> bool {
        let name = {
            let mut state = self.vault.state();
            state.begun += 1;
            // Some servers count their sessions.
            let name = format!("session-{}-open", state.begun);
            let owner = self.head.header("authorization").map(str::to_owned);
            state.sessions.insert(name.clone(), owner);
            name
        };
        let said = answer(&self.body, Vault::result(&self.body));
        self.say(&[("mcp-session-id", &name)], &said)
    }

    fn is_in_session(&self, name: &str) -> bool {
        let state = self.vault.state();
        let owner = state.sessions.get(name);
        owner.is_some_and(|owner| owner.as_deref() == self.head.header("authorization"))
    }

    fn call(&self, place: &str, has_event_ids: bool) -> bool {
        let number = self.vault.execute(place, &self.body);
        let order = self.body["params"]["arguments"]["order"].as_str().unwrap_or_default();
        let is_streamed = self.vault.state().streamed.iter().any(|it| it == order);
        let id = |part: &str| has_event_ids.then(|| format!("id: event-{number}{part}\n"));
        if is_streamed {
            self.send(EVENTS);
            if let Some(id) = id("") {
                self.chunk(&format!("{id}data: \n\n"));
            }
            if let Some(progress) = progress(&self.body) {
                self.chunk(&format!("data: {progress}\n\n"));
            }
        }
        let Ok(result) = self.vault.finish(number) else { return false };
        let said = answer(&self.body, Some(result));
        if !is_streamed {
            return self.say(&[], &said);
        }
        self.chunk(&format!("{}data: {said}\n\n", id("-end").unwrap_or_default()));
        self.send(b"0\r\n\r\n")
    }

    /// Streams what follows an event of this session's.
    fn resume(&self, place: &str) -> bool {
        let after = self.head.header("last-event-id").and_then(|id| id.strip_prefix("event-"));
        let number = after.and_then(|number| number.parse::<usize>().ok());
        let found = number.and_then(|number| {
            let state = self.vault.state();
            let execution = state.executions.get(number)?;
            (execution.place == place).then(|| (number, execution.id.clone()))
        });
        let Some((number, id)) = found else { return self.status("405 Method Not Allowed") };
        let Ok(result) = self.vault.finish(number) else { return self.status("404 Not Found") };
        self.send(EVENTS);
        let said = serde_json::json!({ "jsonrpc": "2.0", "id": id, "result": result });
        self.chunk(&format!("id: event-{number}-end\ndata: {said}\n\n"));
        self.send(b"0\r\n\r\n")
    }

    /// Whether the other side takes the bytes.
    fn send(&self, bytes: &[u8]) -> bool {
        send(&mut &*self.to, bytes)
    }

    fn chunk(&self, text: &str) {
        self.send(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes());
    }

    fn say(&self, headers: &[(&str, &str)], said: &Value) -> bool {
        let headers = [&[("content-type", "application/json")], headers].concat();
        self.send(&message("HTTP/1.1 200 OK", &headers, said.to_string().as_bytes()))
    }

    fn status(&self, status: &str) -> bool {
        self.send(&message(&format!("HTTP/1.1 {status}"), &[], b""))
    }
}
