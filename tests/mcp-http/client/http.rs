//! A client over Streamable HTTP.
use super::{Call, Era, Kind, Seen, WAITS, hello, modern};
use crate::wire::{Head, event, message, now};
use serde_json::{Value, json};
use std::{
    io::{self, BufRead, BufReader, Read as _, Write as _},
    net::TcpStream,
};

#[derive(Clone, Debug)]
pub(crate) struct Http {
    authority: String,
    path: String,
    pub(crate) kind: Kind,
    pub(crate) era: Era,
    pub(crate) session: Option<String>,
    pub(crate) last_id: u32,
    /// What it sends with each request, such as a credential.
    pub(crate) headers: Vec<(String, String)>,
}

impl Http {
    /// A client that has not sent anything yet.
    pub(crate) fn new(url: &str, kind: Kind, era: Era) -> Self {
        let rest = url.strip_prefix("http://").unwrap();
        let (authority, path) = rest.split_once('/').unwrap();
        Self {
            authority: authority.into(),
            path: format!("/{path}"),
            kind,
            era,
            session: None,
            last_id: 0,
            headers: Vec::new(),
        }
    }

    /// Connects, and reads the list of tools.
    pub(crate) fn open(url: &str, kind: Kind, era: Era) -> Self {
        let mut client = Self::new(url, kind, era);
        client.begin();
        client.list();
        client
    }

    /// The same, at another address.
    pub(crate) fn at(self, url: &str) -> Self {
        let Self { authority, path, .. } = Self::new(url, self.kind, self.era);
        Self { authority, path, ..self }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(it, _)| it != name);
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Begins a session, if there are any.
    pub(crate) fn begin(&mut self) {
        if self.era == Era::Legacy {
            self.session = None;
            let seen = self.request("initialize", hello());
            assert!(matches!(seen, Seen::Answer(_)), "{seen:?}");
            let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            assert!(self.post(&note).is_status(202));
        } else {
            let seen = self.request("server/discover", json!({ "_meta": meta() }));
            assert!(seen.is_success(), "{seen:?}");
        }
    }

    pub(crate) fn list(&mut self) -> Seen {
        let seen = self.request("tools/list", self.params_of_list());
        assert!(seen.is_success(), "{seen:?}");
        seen
    }

    /// The params of a request that says nothing but what its version asks for.
    pub(crate) fn params_of_list(&self) -> Value {
        if self.era == Era::Modern { json!({ "_meta": meta() }) } else { json!({}) }
    }

    /// Makes a call as agents do: with all its repeats, each with what was seen.
    pub(crate) fn call(&mut self, call: &Call) -> Vec<Seen> {
        let mut all = Vec::new();
        loop {
            let seen = self.once(call);
            let repeats = all.len() < 3 && self.kind.repeats(&seen, self.era);
            all.push(seen);
            if !repeats {
                return all;
            }
            if self.era == Era::Legacy {
                self.begin();
            }
        }
    }

    /// Sends a call once.
    pub(crate) fn once(&mut self, call: &Call) -> Seen {
        self.request("tools/call", call.params(self.era))
    }

    /// Sends a call on a connection of its own, and does not wait.
    pub(crate) fn begin_call(&mut self, call: &Call) -> TcpStream {
        let mut stream = self.connect();
        stream.write_all(&self.bytes_of_call(call)).unwrap();
        stream
    }

    /// A connection on which nothing was sent yet.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.authority).unwrap();
        stream.set_read_timeout(Some(WAITS)).unwrap();
        stream
    }

    /// The bytes of a call under the next id.
    pub(crate) fn bytes_of_call(&mut self, call: &Call) -> Vec<u8> {
        self.last_id += 1;
        let params = call.params(self.era);
        let body = json!({ "jsonrpc": "2.0", "id": self.last_id, "method": "tools/call", "params": params });
        self.request_of(&body)
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Seen {
        self.last_id += 1;
        let body =
            json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params });
        self.post(&body)
    }

    /// Sends a call once: the whole response as it comes, of a connection that ends with it.
    pub(crate) fn response(&mut self, call: &Call) -> String {
        let mut stream = self.begin_call(call);
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    pub(crate) fn post(&mut self, body: &Value) -> Seen {
        let is_hello = body["method"] == "initialize";
        let (head, seen) = ask(&self.authority, &self.request_of(body), &body["id"]);
        if let Some(session) =
            head.as_ref().filter(|_| is_hello).and_then(|it| it.header("mcp-session-id"))
        {
            self.session = Some(session.into());
        }
        seen
    }

    /// The bytes of a request with this body.
    pub(crate) fn request_of(&self, body: &Value) -> Vec<u8> {
        let mut headers = self.headers.clone();
        if self.era == Era::Modern {
            headers.push(("mcp-method".into(), body["method"].as_str().unwrap_or_default().into()));
            let name = body["params"]["name"].as_str();
            headers.extend(name.map(|name| ("mcp-name".into(), name.into())));
        }
        if body["method"] != "initialize" {
            headers.push(("mcp-protocol-version".into(), self.era.version().into()));
            let session = self.session.clone();
            headers.extend(session.map(|session| ("mcp-session-id".into(), session)));
        }
        let given: Vec<_> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        self.bytes(&given, body.to_string().as_bytes())
    }

    /// A POST with these headers besides those of every request.
    pub(crate) fn bytes(&self, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
        let accept = "application/json, text/event-stream";
        let own =
            [("host", &*self.authority), ("content-type", "application/json"), ("accept", accept)];
        message(&format!("POST {} HTTP/1.1", self.path), &[&own, headers].concat(), body)
    }

    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }
}

fn meta() -> Value {
    let mut meta = json!({});
    modern(&mut meta);
    meta
}

/// Sends bytes on a new connection: the head of the response, and what is seen of a request with this id.
pub(crate) fn ask(authority: &str, bytes: &[u8], id: &Value) -> (Option<Head>, Seen) {
    let Ok(mut stream) = TcpStream::connect(authority) else { return (None, Seen::Cut) };
    stream.set_read_timeout(Some(WAITS)).unwrap();
    // A server that refuses early may not read all of it.
    let _ = stream.write_all(bytes);
    answer(&mut BufReader::new(stream), id)
}

/// Reads a response: its head, and what is seen of the request with this id.
pub(crate) fn answer(mut from: &mut impl BufRead, id: &Value) -> (Option<Head>, Seen) {
    let since = now();
    let ended = |error: Option<io::Error>| {
        let is_hung = error.is_some_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        if is_hung || since.elapsed() >= WAITS { Seen::Hung } else { Seen::Cut }
    };
    let Some(head) = Head::read(&mut from) else { return (None, ended(None)) };
    let mut body = BufReader::new(head.body(from));
    let is_stream =
        head.header("content-type").is_some_and(|it| it.starts_with("text/event-stream"));
    if is_stream && head.status() == 200 {
        let seen = loop {
            match event(&mut body) {
                Ok(Some((_, data))) if data.is_empty() => {}
                Ok(Some((_, data))) => match serde_json::from_str::<Value>(&data) {
                    Ok(answer) if is_answer(&answer, id) => break Seen::Answer(answer),
                    Ok(_) => {}
                    Err(_) => break Seen::Unreadable(data),
                },
                Ok(None) => break Seen::Cut,
                Err(error) => break ended(Some(error)),
            }
            if since.elapsed() >= WAITS {
                break Seen::Hung;
            }
        };
        return (Some(head), seen);
    }
    let mut text = String::new();
    if let Err(error) = body.read_to_string(&mut text) {
        return (Some(head), ended(Some(error)));
    }
    let seen = match (head.status(), serde_json::from_str::<Value>(&text)) {
        (200, Ok(answer)) if is_answer(&answer, id) => Seen::Answer(answer),
        (200, _) => Seen::Unreadable(text),
        (status, _) => {
            let challenge = head.header("www-authenticate").map(str::to_owned);
            Seen::Status { status, challenge, body: text }
        }
    };
    (Some(head), seen)
}

fn is_answer(message: &Value, id: &Value) -> bool {
    message.get("method").is_none() && message["id"] == *id
}
