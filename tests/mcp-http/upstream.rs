//! A scripted MCP server over Streamable HTTP, of 2025-11-25 with sessions and of 2026-07-28 without.
//!
//! Its tool `pay` counts its executions, and `balance` says that it only reads. A fault is played to a
//! call after the tool was executed, unless it is a refusal: so the count shows what is paid twice.

mod fault;
mod held;
mod tools;

pub(crate) use fault::{Auth, Fault, Instead, Lost, Refusal, Tail};

use crate::wire::{Head, close, message, send};
use rustls::{ServerConfig, ServerConnection, StreamOwned, pki_types::pem::PemObject as _};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    io::{BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread,
};
use tr_testkit::tls::Issued;

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) head: Head,
    /// `Null` if there was none.
    pub(crate) body: Value,
}

impl Seen {
    /// The method of its message, or of HTTP.
    pub(crate) fn what(&self) -> &str {
        self.body["method"].as_str().unwrap_or_else(|| self.head.method())
    }
}

#[derive(Debug, Default)]
struct State {
    /// For the next calls, one for each.
    faults: VecDeque<Fault>,
    executed: Vec<Value>,
    /// Whether `payments` shows none.
    hides: bool,
    seen: Vec<Seen>,
    sessions: BTreeSet<String>,
    /// How often a session was begun.
    begun: usize,
    /// Answers by the event after which they are sent again.
    resumable: BTreeMap<String, String>,
    connections: Vec<TcpStream>,
    is_up: bool,
    /// Whether a payment must repeat its order in a header.
    wants_header: bool,
    /// How it answers the next `initialize`s that begin no session.
    refusals: VecDeque<Refusal>,
    /// Whether its answer to `notifications/initialized` is held back.
    holds_initialized: bool,
    refuses_batches: bool,
    /// How it answers the next requests for its own stream: with this status, or, if 200, with a stream that ends.
    streams: VecDeque<u16>,
    /// What it answers in place of an MCP server.
    instead: Option<Instead>,
    /// Whether answers that are held back may go.
    is_released: bool,
    /// The orders of calls whose connections ended before their answers.
    left: Vec<Value>,
}

struct Server {
    address: SocketAddr,
    tls: Option<Arc<ServerConfig>>,
    state: Mutex<State>,
    changed: Condvar,
}

/// The running server.
#[derive(Clone)]
pub(crate) struct Upstream(Arc<Server>);

impl Upstream {
    pub(crate) fn start() -> Self {
        Self::with(None)
    }

    pub(crate) fn start_tls(own: &Issued) -> Self {
        let certificate =
            rustls::pki_types::CertificateDer::from_pem_slice(own.certificate().as_bytes());
        let key = rustls::pki_types::PrivateKeyDer::from_pem_slice(own.key().as_bytes());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.unwrap()], key.unwrap());
        Self::with(Some(Arc::new(config.unwrap())))
    }

    fn with(tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = Server { address, tls, state: Mutex::default(), changed: Condvar::new() };
        let upstream = Self(Arc::new(server));
        upstream.accept(listener);
        upstream
    }

    fn accept(&self, listener: TcpListener) {
        self.state().is_up = true;
        let it = self.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { continue };
                let mut state = it.state();
                if !state.is_up {
                    return;
                }
                state.connections.push(stream.try_clone().unwrap());
                drop(state);
                let it = it.clone();
                thread::spawn(move || it.serve(stream));
            }
        });
    }

    /// Refuses connections from now on, and cuts those that there are.
    pub(crate) fn down(&self) {
        let connections = {
            let mut state = self.state();
            state.is_up = false;
            std::mem::take(&mut state.connections)
        };
        connections.iter().for_each(close);
        // Wakes the one that accepts, which then closes the port.
        let _ = TcpStream::connect(self.0.address);
        crate::wire::until("the port is closed", || {
            TcpStream::connect(self.0.address).is_err().then_some(())
        });
    }

    /// Listens again, as after a restart: it knows none of its sessions.
    pub(crate) fn up_without_sessions(&self) {
        self.state().sessions.clear();
        self.up();
    }

    pub(crate) fn up(&self) {
        let listener =
            crate::wire::until("the port is free", || TcpListener::bind(self.0.address).ok());
        self.accept(listener);
    }

    /// Its endpoint.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.0.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}/mcp", self.0.address.port())
    }

    /// Plays a fault to the next call, after those that are planned already.
    pub(crate) fn play(&self, fault: Fault) {
        self.state().faults.push_back(fault);
    }

    /// How often the tool was executed for this order.
    pub(crate) fn executed(&self, order: &str) -> usize {
        self.state().executed.iter().filter(|params| params["arguments"]["order"] == order).count()
    }

    /// What came of this method.
    pub(crate) fn seen(&self, what: &str) -> Vec<Seen> {
        self.state().seen.iter().filter(|seen| seen.what() == what).cloned().collect()
    }

    /// All that came, by method.
    pub(crate) fn story(&self) -> Vec<String> {
        self.state().seen.iter().map(|seen| seen.what().to_owned()).collect()
    }

    /// From now on a payment must repeat its order in a header, which the list of tools says.
    pub(crate) fn want_header(&self) {
        self.state().wants_header = true;
    }

    /// The next `initialize` begins no session.
    pub(crate) fn refuse_session(&self, how: Refusal) {
        self.state().refusals.push_back(how);
    }

    /// Holds back what it answers to `notifications/initialized`.
    pub(crate) fn hold_initialized(&self) {
        self.state().holds_initialized = true;
    }

    pub(crate) fn refuse_batches(&self) {
        self.state().refuses_batches = true;
    }

    /// The next requests for its own stream get these statuses; one of 200 ends at once, and asks for another at once.
    pub(crate) fn play_streams(&self, statuses: &[u16]) {
        self.state().streams.extend(statuses);
    }

    /// From now on it gives these responses, where there is one, in place of an MCP server's.
    pub(crate) fn answer_instead(&self, response: Instead) {
        self.state().instead = Some(response);
    }

    /// Forgets all sessions.
    pub(crate) fn lose_sessions(&self) {
        self.state().sessions.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }

    fn serve(&self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let raw = stream.try_clone().unwrap();
        let io: Box<dyn Io> = match &self.0.tls {
            Some(tls) => {
                let connection = ServerConnection::new(tls.clone()).unwrap();
                Box::new(StreamOwned::new(connection, stream))
            }
            None => Box::new(stream),
        };
        let mut io = BufReader::new(io);
        while let Some(head) = Head::read(&mut io) {
            let mut body = Vec::new();
            let has_body = head.header("content-length").or(head.header("transfer-encoding"));
            if has_body.is_some() && head.body(&mut io).read_to_end(&mut body).is_err() {
                break;
            }
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let seen = Seen { head, body };
            self.state().seen.push(seen.clone());
            if !self.answer(&seen, io.get_mut(), &raw) {
                break;
            }
        }
        close(&raw);
    }

    /// Answers a request; whether the connection stays.
    fn answer(&self, seen: &Seen, to: &mut dyn Io, raw: &TcpStream) -> bool {
        let mut to = to;
        let instead = self.state().instead;
        if let Some(response) = instead.and_then(|response| response(&seen.head)) {
            return send(&mut to, &response);
        }
        let session = seen.head.header("mcp-session-id");
        let version = seen.head.header("mcp-protocol-version").unwrap_or_default();
        let is_modern = version >= "2026";
        let method = seen.body["method"].as_str().unwrap_or_default();
        match seen.head.method() {
            "POST" if is_modern || method == "initialize" => {}
            "POST" | "GET" | "DELETE" => {
                if !session.is_some_and(|it| self.state().sessions.contains(it)) {
                    return send(&mut to, &fault::lost(Lost::NotFound, &seen.body["id"]));
                }
            }
            _ => return send(&mut to, &message("HTTP/1.1 405 Method Not Allowed", &[], b"")),
        }
        match seen.head.method() {
            "GET" => {
                let after = seen.head.header("last-event-id").unwrap_or_default();
                let found = self.state().resumable.get(after).cloned();
                let status = if found.is_none() { self.state().streams.pop_front() } else { None };
                if let Some(status) = status {
                    let first = format!("HTTP/1.1 {status} Stream");
                    let headers = [("content-type", "text/event-stream")];
                    return send(&mut to, &message(&first, &headers, b"retry: 0\n\n"));
                }
                return send(
                    &mut to,
                    &match found {
                        Some(answer) => fault::sse(&[(Some("resumed-1"), &answer)], Tail::Whole),
                        None => {
                            message("HTTP/1.1 405 Method Not Allowed", &[("allow", "POST")], b"")
                        }
                    },
                );
            }
            "DELETE" => {
                self.state().sessions.remove(session.unwrap_or_default());
                return send(&mut to, &message("HTTP/1.1 200 OK", &[], b""));
            }
            _ => {}
        }
        if seen.body.is_array() && self.state().refuses_batches {
            let error = json!({ "code": -32600, "message": "no batches" });
            let body = json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string();
            let headers = [("content-type", "application/json")];
            return send(&mut to, &message("HTTP/1.1 400 Bad Request", &headers, body.as_bytes()));
        }
        let is_held = method == "notifications/initialized" && self.state().holds_initialized;
        if method == "slow" || is_held {
            self.wait_for_release();
        }
        if seen.body.get("id").is_none() || seen.body.get("method").is_none() {
            return send(&mut to, &message("HTTP/1.1 202 Accepted", &[], b""));
        }
        let id = &seen.body["id"];
        let mut headers = vec![("content-type", "application/json")];
        let begun;
        let mut result = match method {
            "initialize" => {
                let refusal = self.state().refusals.pop_front();
                if let Some(refusal) = refusal {
                    let Some(bytes) = refusal.bytes(id) else {
                        self.wait_for_release();
                        return false;
                    };
                    return send(&mut to, &bytes);
                }
                let mut state = self.state();
                state.begun += 1;
                begun = format!("5e55-{}", state.begun);
                state.sessions.insert(begun.clone());
                headers.push(("mcp-session-id", &begun));
                json!({ "protocolVersion": seen.body["params"]["protocolVersion"],
                        "capabilities": { "tools": {} }, "serverInfo": server_info() })
            }
            "server/discover" => json!({ "supportedVersions": ["2026-07-28"],
                        "capabilities": { "tools": {} }, "serverInfo": server_info() }),
            "ping" if !is_modern => json!({}),
            "tools/list" => tools::listed(self.state().wants_header),
            "tools/call" if seen.body["params"]["name"] == "payments" => {
                tools::payments(&self.state())
            }
            "tools/call" => return self.call(seen, is_modern, to, raw),
            _ => {
                let error = json!({ "code": -32601, "message": "Method not found" });
                let error = json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string();
                let status = if is_modern { "404 Not Found" } else { "200 OK" };
                return send(
                    &mut to,
                    &message(&format!("HTTP/1.1 {status}"), &headers, error.as_bytes()),
                );
            }
        };
        if is_modern {
            result["resultType"] = "complete".into();
        }
        let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
        send(&mut to, &message("HTTP/1.1 200 OK", &headers, answer.as_bytes()))
    }

    fn call(&self, seen: &Seen, is_modern: bool, mut to: &mut dyn Io, raw: &TcpStream) -> bool {
        let params = &seen.body["params"];
        if self.state().wants_header {
            let order = params["arguments"]["order"].as_str();
            if seen.head.header("mcp-param-order") != order {
                return send(&mut to, &fault::form(-32020, &seen.body["id"]));
            }
        }
        let fault = self.state().faults.pop_front().unwrap_or(Fault::None);
        if fault.executes() {
            self.state().executed.push(tools::executed(params));
        }
        let mut result = json!({
            "content": [{ "type": "text", "text": format!("receipt of {}", params["arguments"]["order"]) }],
        });
        if is_modern {
            result["resultType"] = "complete".into();
        }
        let answer = json!({ "jsonrpc": "2.0", "id": seen.body["id"], "result": result });
        let played = fault::play(fault, &answer);
        if let Some((event, answer)) = played.resumable {
            self.state().resumable.insert(event, answer);
        }
        if let Fault::LostSession(_) | Fault::LostSessionBefore(_) = fault {
            self.state().sessions.clear();
        }
        if !send(&mut to, &played.bytes) {
            return false;
        }
        if let Some(rest) = played.held_back {
            self.watch(raw, &params["arguments"]["order"]);
            self.wait_for_release();
            return send(&mut to, &rest);
        }
        !played.is_cut
    }
}

/// A connection.
trait Io: Read + Write + Send {}
impl<T: Read + Write + Send> Io for T {}

fn server_info() -> Value {
    json!({ "name": "scripted bank", "version": "1" })
}
