//! Two clients, A and B, in front of one guard: what tells them apart, and their requests.
use super::vault::{CREATES, Vault};
use crate::{
    client::{Call, Era, Http, Kind, Seen, answer, ask, random},
    guard::{Listening, Shop, Way},
    wire::{Head, message},
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{self, BufReader, Read, Write as _},
    net::{Shutdown, TcpStream},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, channel},
    },
    thread,
    time::Duration,
};

/// What the guard stands in front of, and what names the clients' calls there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scene {
    pub(super) is_command: bool,
    pub(super) era: Era,
    pub(super) has_sessions: bool,
    pub(super) conversations: Conversations,
    /// The member of `_meta` with the conversation.
    pub(super) member: &'static str,
}

/// Which conversations the clients name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conversations {
    Unnamed,
    /// Both the same: B knows or guesses A's.
    Same,
    Own,
}

/// The clients' credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Credentials {
    None,
    Same,
    Different,
    /// B has none.
    OnlyA,
    /// A has none.
    OnlyB,
    /// Different ones, as cookies.
    Cookies,
    /// Different ones, in the query.
    Queries,
}

impl Credentials {
    pub(super) const fn differ(self) -> bool {
        !matches!(self, Self::None | Self::Same)
    }

    /// The header by which a client says it.
    fn header(self, name: &str) -> Option<(&'static str, String)> {
        match (self, name) {
            (Self::None | Self::Queries, _) | (Self::OnlyA, "b") | (Self::OnlyB, "a") => None,
            (Self::Same, _) => Some(("authorization", "Bearer both".into())),
            (Self::Cookies, _) => Some(("cookie", format!("session={name}"))),
            _ => Some(("authorization", format!("Bearer {name}"))),
        }
    }
}

/// When B began, its session or else its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Began {
    /// Before A was cut off.
    Before,
    After,
    /// After, and the guard has not seen it.
    Unseen,
}

/// How calls are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ids {
    /// By nothing, and under JSON-RPC ids of their own.
    None,
    /// By nothing, under one JSON-RPC id: the same bytes.
    Request,
    /// By an id that a model counts.
    Weak,
}

/// One guard, its server, and both clients.
pub(super) struct Stage {
    pub(super) scene: Scene,
    pub(super) credentials: Credentials,
    pub(super) vault: Vault,
    pub(super) guard: Listening,
    pub(super) shop: Shop,
}

impl Scene {
    pub(super) fn stage(self, credentials: Credentials) -> Stage {
        self.stage_with(credentials, &["--records", "memory"])
    }

    pub(super) fn stage_with(self, credentials: Credentials, options: &[&str]) -> Stage {
        let vault = Vault::start(self.has_sessions);
        let shop = vault.shop(self.is_command).with(options);
        // What cells do one after the other is no trouble of the server's, and no loop.
        let config = shop.path("config.toml");
        fs::write(&config, "[breaker]\nmode = \"disabled\"\n").unwrap();
        let shop = shop.with(["--loops", "off", "--config"]).with([config]);
        let guard = shop.listen(self.way());
        Stage { scene: self, credentials, vault, guard, shop }
    }

    pub(super) const fn way(self) -> Way {
        if self.is_command { Way::HttpStdio } else { Way::HttpHttp }
    }
}

impl Stage {
    /// A client that has begun.
    pub(super) fn a(&self) -> Party {
        self.open(&self.guard.url, "a")
    }

    pub(super) fn b(&self) -> Party {
        self.open(&self.guard.url, "b")
    }

    /// The client B that begins elsewhere: at the server itself.
    pub(super) fn b_unseen(&self) -> Party {
        let Party { http, meta, .. } = self.open(&self.vault.url(), "b");
        Party { http: http.at(&self.guard.url), meta, line: None }
    }

    fn open(&self, url: &str, name: &str) -> Party {
        let query = match self.credentials {
            Credentials::Queries => format!("?key={name}"),
            _ => String::new(),
        };
        let mut http = Http::new(&format!("{url}{query}"), Kind::Keyless, self.scene.era);
        if let Some((header, value)) = self.credentials.header(name) {
            http = http.with(header, &value);
        }
        http.begin();
        http.list();
        // Each counts its requests from a number of its own.
        http.last_id = if name == "a" { 100 } else { 500 };
        Party { http, meta: self.meta(name), line: None }
    }

    fn meta(&self, name: &str) -> Value {
        match self.scene.conversations {
            Conversations::Unnamed => json!({}),
            Conversations::Same => {
                json!({ (self.scene.member): "0199d4c8-6a3e-7c52-9d41-7b1f0a5c2e63" })
            }
            Conversations::Own => {
                json!({ (self.scene.member): format!("0199d4c8-6a3e-7c52-9d41-{name}b1f0a5c2e63") })
            }
        }
    }

    /// Waits until the guard has answered a request, and so has seen what came before it.
    pub(super) fn barrier(&self, party: &Party) {
        party.http.clone().list();
    }

    /// What the answer to B's call for this order is.
    pub(super) fn got(&self, order: &str, seen: &Seen) -> Got {
        let (secrets, text) = (self.vault.secrets(order), format!("{seen:?}"));
        let holds = |secret: &String| text.contains(secret);
        match secrets.iter().position(holds) {
            Some(0) => Got::Theirs,
            Some(_) => Got::Own,
            None if matches!(seen, Seen::Hung) => Got::Nothing,
            None => {
                let is_refusal = matches!(seen, Seen::Answer(answer) if answer["result"]["isError"] == true || answer["error"].is_object());
                if is_refusal { Got::Refused(seen.text()) } else { Got::Other(text) }
            }
        }
    }
}

/// What a client got for a call that another client made first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Got {
    /// The secret of an execution of its own.
    Own,
    /// The secret of the other's execution.
    Theirs,
    /// A refusal in band, and what it says.
    Refused(String),
    Other(String),
    /// It waits.
    Nothing,
}

/// A client.
#[derive(Debug)]
pub(super) struct Party {
    pub(super) http: Http,
    meta: Value,
    /// A connection on which its next call is sent.
    line: Option<TcpStream>,
}

impl Party {
    /// A call of this client's.
    pub(super) fn call(&self, order: &str, ids: Ids) -> Call {
        let mut meta = self.meta.clone();
        if ids == Ids::Weak {
            let number = order.rsplit('-').next().unwrap();
            if meta.get("threadId").is_some() {
                meta["callId"] = format!("call_{number}").into();
            } else {
                meta["claudecode/toolUseId"] = format!("functions.{CREATES}:{number}").into();
            }
        }
        Call { tool: CREATES, order: order.into(), meta, key: None }
    }

    /// The same call under a key that names it alone.
    pub(super) fn keyed(&self, order: &str) -> Call {
        let mut call = self.call(order, Ids::None);
        call.meta["idempotencyKey"] = format!("key-{}", random(20)).into();
        call
    }

    /// Opens a connection, and makes a request on it.
    pub(super) fn connect(&mut self) {
        let params = self.http.params_of_list();
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params });
        let mut line = self.http.connect();
        line.write_all(&self.http.request_of(&body)).unwrap();
        let (head, seen) = answer(&mut BufReader::new(&line), &json!(1));
        assert!(seen.is_success(), "{head:?} {seen:?}");
        self.line = Some(line);
    }

    /// Sends a call, and does not wait.
    pub(super) fn begin(&mut self, call: &Call) -> Pending {
        let bytes = self.http.bytes_of_call(call);
        let mut stream = self.line.take().unwrap_or_else(|| self.http.connect());
        stream.write_all(&bytes).unwrap();
        Pending::of(stream, self.http.last_id)
    }

    pub(super) fn once(&mut self, call: &Call) -> Seen {
        self.begin(call).wait()
    }

    /// Cancels a request, as if it were its own.
    pub(super) fn cancel(&mut self, id: &Value) {
        let mut params = json!({ "requestId": id });
        if self.http.era == Era::Modern {
            params["_meta"] = self.http.params_of_list()["_meta"].clone();
        }
        let note =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
        self.http.post(&note);
    }

    /// The bytes of a request without a body; `session` names another session than its own.
    pub(super) fn bare(
        &self,
        method: &str,
        session: Option<&str>,
        more: &[(&str, &str)],
    ) -> Vec<u8> {
        let mut headers = vec![
            ("host", self.http.authority()),
            ("accept", "text/event-stream"),
            ("mcp-protocol-version", self.http.era.version()),
        ];
        headers.extend(self.http.headers.iter().map(|(name, value)| (&**name, &**value)));
        headers.extend(session.map(|session| ("mcp-session-id", session)));
        headers.extend(more);
        message(&format!("{method} /mcp HTTP/1.1"), &headers, b"")
    }

    /// Asks for the end of a session; the status of the response.
    pub(super) fn delete(&self, session: Option<&str>) -> u16 {
        let bytes = self.bare("DELETE", session, &[]);
        let (head, seen) = ask(self.http.authority(), &bytes, &Value::Null);
        head.unwrap_or_else(|| panic!("{seen:?}")).status()
    }

    /// Asks for the stream behind an event.
    pub(super) fn resume(&self, session: Option<&str>, event: &str) -> Pending {
        let mut stream = self.http.connect();
        stream.write_all(&self.bare("GET", session, &[("last-event-id", event)])).unwrap();
        // It answers a request of A's, if any.
        Pending::of(stream, 0)
    }

    /// Whether its requests are answered.
    pub(super) fn is_answered(&self) -> bool {
        let mut http = self.http.clone();
        let params = http.params_of_list();
        http.request("tools/list", params).is_success()
    }

    /// Ends its session, if it has one.
    pub(super) fn end(&self) {
        if let Some(session) = self.session() {
            self.delete(Some(session));
        }
    }

    /// The same client, with the session of another.
    pub(super) fn in_session_of(&self, other: &Self) -> Self {
        let mut http = self.http.clone();
        http.session.clone_from(&other.http.session);
        Self { http, meta: self.meta.clone(), line: None }
    }

    pub(super) fn session(&self) -> Option<&str> {
        self.http.session.as_deref()
    }
}

/// A request that was sent.
pub(super) struct Pending {
    stream: TcpStream,
    pub(super) id: u32,
    text: Arc<Mutex<String>>,
    seen: Receiver<(Option<Head>, Seen)>,
}

impl Pending {
    fn of(stream: TcpStream, id: u32) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let (send, seen) = channel();
        let tee = Tee { stream: stream.try_clone().unwrap(), text: text.clone() };
        thread::spawn(move || send.send(answer(&mut BufReader::new(tee), &json!(id))));
        Self { stream, id, text, seen }
    }

    /// What came until now.
    pub(super) fn text(&self) -> String {
        self.text.lock().unwrap().clone()
    }

    pub(super) fn wait(&self) -> Seen {
        self.seen.recv().unwrap().1
    }

    /// Waits for the head and the end, or the answer.
    pub(super) fn response(&self) -> (Option<Head>, Seen) {
        self.seen.recv().unwrap()
    }

    /// Waits for the answer, if it comes without another's help.
    pub(super) fn soon(&self) -> Seen {
        const SOON: Duration = Duration::from_secs(5);
        self.seen.recv_timeout(SOON).map_or(Seen::Hung, |(_, seen)| seen)
    }

    /// The client vanishes. The guard closes the connection then: it knows.
    pub(super) fn cut(self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
        let seen = self.wait();
        assert!(matches!(seen, Seen::Cut), "{seen:?}");
    }
}

/// Keeps the text of what is read.
struct Tee {
    stream: TcpStream,
    text: Arc<Mutex<String>>,
}

impl Read for Tee {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let size = self.stream.read(into)?;
        self.text.lock().unwrap().push_str(&String::from_utf8_lossy(&into[..size]));
        Ok(size)
    }
}
