//! A client over HTTP: each request has a connection, which can be cut.
use crate::{
    process::{PATIENCE, until},
    wire::{Head, event, message},
};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    io::{BufReader, Read as _, Write as _},
    net::{Shutdown, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc::Sender,
    },
    thread,
    time::Duration,
};

/// The client of one guard.
#[derive(Debug)]
pub(crate) struct Agent {
    address: String,
    /// Whether it speaks MCP 2026-07-28, which has no sessions.
    is_modern: bool,
    session: Mutex<Option<String>>,
    /// Requests without an answer.
    open: Mutex<HashMap<u64, Open>>,
    /// Whether its guard was killed, so that there is nothing to connect to.
    is_alone: AtomicBool,
    heard: Sender<Heard>,
}

/// The session of a request and its connection, once there are any.
#[derive(Debug, Default)]
struct Open {
    session: Option<String>,
    stream: Option<TcpStream>,
}

/// The end of a request.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) id: u64,
    pub(crate) said: Said,
}

/// What a client sees of a request.
#[derive(Clone, Debug)]
pub(crate) enum Said {
    Answer(Value),
    /// A response without an answer.
    Status(u16, String),
    /// The connection ended without one.
    Cut,
}

impl Agent {
    pub(crate) fn new(address: String, is_modern: bool, heard: Sender<Heard>) -> Arc<Self> {
        let (session, open) = Default::default();
        let is_alone = AtomicBool::new(false);
        Arc::new(Self { address, is_modern, session, open, is_alone, heard })
    }

    /// Begins a session, if it has none and needs one.
    pub(crate) fn greet(&self) {
        until("the guard begins a session", || self.begin());
    }

    pub(crate) fn session(&self) -> Option<String> {
        lock(&self.session).clone()
    }

    /// Forgets its session, of which a server says that it is lost.
    pub(crate) fn forget(&self) {
        *lock(&self.session) = None;
    }

    pub(crate) fn guard_is_up(&self, is_up: bool) {
        self.is_alone.store(!is_up, SeqCst);
    }

    /// Sends a request, on a connection and a thread of its own.
    pub(crate) fn post(self: &Arc<Self>, id: u64, request: Value) {
        lock(&self.open).insert(id, Open::default());
        let agent = self.clone();
        thread::spawn(move || {
            let said = match agent.begin() {
                Some(session) => agent.exchange(id, session.as_deref(), request),
                None => Said::Cut,
            };
            lock(&agent.open).remove(&id);
            let _ = agent.heard.send(Heard { id, said });
        });
    }

    /// Cuts the connection of a request, if it is open; its end will be heard. Gives the request's session.
    pub(crate) fn cut(&self, id: u64) -> Option<String> {
        let open = lock(&self.open).remove(&id)?;
        if let Some(stream) = open.stream {
            let _ = stream.shutdown(Shutdown::Both);
        }
        open.session
    }

    /// The session, begun if there is none and one is needed; `None` if that fails.
    fn begin(&self) -> Option<Option<String>> {
        let mut session = lock(&self.session);
        if self.is_modern || session.is_some() {
            return Some(session.clone());
        }
        let info = json!({ "name": "kills", "version": "1" });
        let params =
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info });
        let hello =
            json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params });
        let (head, said) = self.exchange_as(None, None, &hello);
        let given = head.as_ref().and_then(|head| head.header("mcp-session-id"));
        if let (Some(given), Said::Answer(_)) = (given, said) {
            let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            let (_, said) = self.exchange_as(None, Some(given), &note);
            if matches!(said, Said::Status(202, _)) {
                *session = Some(given.to_owned());
            }
        }
        session.clone().map(Some)
    }

    fn exchange(&self, id: u64, session: Option<&str>, mut request: Value) -> Said {
        if self.is_modern {
            let meta = &mut request["params"]["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
            meta["io.modelcontextprotocol/clientInfo"] = json!({ "name": "kills", "version": "1" });
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        self.exchange_as(Some(id), session, &request).1
    }

    /// Sends a message in a session; its connection is noted if it has an ID.
    fn exchange_as(
        &self,
        id: Option<u64>,
        session: Option<&str>,
        request: &Value,
    ) -> (Option<Head>, Said) {
        const CUT: (Option<Head>, Said) = (None, Said::Cut);
        let Some(mut stream) = self.connect() else { return CUT };
        if let Some(id) = id {
            match lock(&self.open).get_mut(&id) {
                Some(open) => {
                    open.stream = stream.try_clone().ok();
                    open.session = session.map(str::to_owned);
                }
                None => return CUT,
            }
        }
        let _ = stream.set_read_timeout(Some(PATIENCE));
        if stream.write_all(&self.bytes(session, request)).is_err() {
            return CUT;
        }
        let mut from = BufReader::new(stream);
        let Some(head) = Head::read(&mut from) else { return CUT };
        let mut body = BufReader::new(head.body(from));
        let kind = head.header("content-type").unwrap_or_default();
        let mut text = String::new();
        if head.status() == 200 && kind.starts_with("text/event-stream") {
            while let Ok(Some((_, data))) = event(&mut body) {
                text = data;
            }
        } else if body.read_to_string(&mut text).is_err() {
            return (Some(head), Said::Cut);
        }
        let said = match (head.status(), serde_json::from_str(&text)) {
            (200, Ok(answer)) => Said::Answer(answer),
            (200, Err(_)) => Said::Cut,
            (status, _) => Said::Status(status, text),
        };
        (Some(head), said)
    }

    /// Connects as soon as the guard listens.
    fn connect(&self) -> Option<TcpStream> {
        while !self.is_alone.load(SeqCst) {
            if let Ok(stream) = TcpStream::connect(&self.address) {
                return Some(stream);
            }
            thread::park_timeout(Duration::from_millis(1));
        }
        None
    }

    fn bytes(&self, session: Option<&str>, request: &Value) -> Vec<u8> {
        let accept = "application/json, text/event-stream";
        let version = if self.is_modern { "2026-07-28" } else { "2025-06-18" };
        let mut headers = vec![
            ("host", &*self.address),
            ("content-type", "application/json"),
            ("accept", accept),
            ("connection", "close"),
        ];
        if request["method"] != "initialize" {
            headers.push(("mcp-protocol-version", version));
        }
        headers.extend(session.map(|session| ("mcp-session-id", session)));
        if self.is_modern {
            let name = request["params"]["name"].as_str().unwrap_or_default();
            headers.extend([("mcp-method", "tools/call"), ("mcp-name", name)]);
        }
        message("POST /mcp HTTP/1.1", &headers, request.to_string().as_bytes())
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
