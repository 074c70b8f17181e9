//! A client that keeps a ledger of what it was told.
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::PathBuf,
    process::{ChildStdin, ChildStdout},
};

/// What the server says of failures: one that leaves a payment unknown, and one that does not.
const UNKNOWN: &str = "HTTP 503: lost";
const FAILED: &str = "invalid amount";

/// The ways to a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Door {
    Stdio,
    Http,
    Decide,
    Serve,
}

/// How a client identifies a call.
#[derive(Clone, Debug)]
enum Id {
    None,
    Key(u64),
    /// The model's.
    Model(String),
}

/// What a client is told of a call.
struct Told {
    code: Option<String>,
    /// Of a call that was made.
    is_unknown: bool,
    answer: Value,
}

pub(super) struct Client {
    pub(super) door: Door,
    pub(super) input: ChildStdin,
    pub(super) output: BufReader<ChildStdout>,
    /// Where the guard listens, and the session that it gave.
    pub(super) address: String,
    pub(super) session: String,
    pub(super) last: u64,
    pub(super) crashes: u32,
    pub(super) folder: PathBuf,
    pub(super) ledger: Ledger,
}

/// What the client was told.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ledger {
    pub(super) calls: u64,
    pub(super) replayed: u64,
    pub(super) refused: BTreeMap<String, u64>,
    pub(super) unknown: u64,
}

impl Client {
    /// Sends a line, and reads its answer: a server that is back has news, too.
    fn line(&mut self, sent: &Value) -> Value {
        writeln!(self.input, "{sent}").unwrap();
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the guard has ended");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer.get("method").is_none() {
                return answer;
            }
        }
    }

    pub(super) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let line = json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params });
        if self.door == Door::Stdio {
            return self.line(&line);
        }
        let mut stream = self.post(&line);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let session = answer.lines().find(|line| line.starts_with("mcp-session-id:"));
        if let Some(session) = session {
            self.session = format!("{session}\r\n");
        }
        let message = answer.lines().find_map(|line| {
            let data = line.strip_prefix("data: ").unwrap_or(line);
            serde_json::from_str::<Value>(data).ok().filter(|it| it["id"] == self.last)
        });
        message.unwrap_or_else(|| panic!("{answer}"))
    }

    /// Sends a message over HTTP.
    fn post(&self, message: &Value) -> TcpStream {
        let body = message.to_string();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n{}content-length: {}\r\n\r\n{body}",
            self.session,
            body.len()
        )
        .unwrap();
        stream
    }

    fn tell(&mut self, tool: &str, order: u64, how: &str, id: &Id) -> Told {
        let arguments = json!({ "order": order, "how": how });
        let key = match id {
            Id::Key(key) => Some(format!("order-{key}")),
            _ => None,
        };
        let model = match id {
            Id::Model(id) => Some(id.clone()),
            _ => None,
        };
        let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
        match self.door {
            Door::Stdio | Door::Http => {
                let mut meta = json!({});
                key.into_iter().for_each(|key| meta["idempotencyKey"] = key.into());
                model.into_iter().for_each(|id| meta["claudecode/toolUseId"] = id.into());
                let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
                let answer = self.ask("tools/call", &params);
                let result = &answer["result"];
                let error = &result["_meta"]["tool-reliability/error"];
                let said = result["content"].to_string();
                // The guard's words, for a call that was sent: the server is gone, or silent.
                let is_sent = error["ran"] == "unknown"
                    && ["server_gone", "timeout"].iter().any(|code| error["code"] == *code);
                let code = text(&error["code"]).filter(|_| !is_sent);
                Told { code, is_unknown: is_sent || said.contains("[MAY HAVE RUN]"), answer }
            }
            Door::Decide => {
                self.last += 1;
                let effect = if tool == "search" { "read_only" } else { "mutating" };
                let mut before = json!({ "event": "before", "id": self.last, "tool": tool,
                    "params": arguments, "effect": effect, "session": "s" });
                key.into_iter().for_each(|key| before["key"] = key.into());
                model.into_iter().for_each(|id| before["call"] = id.into());
                let answer = self.line(&before);
                if answer["decision"] == "block" {
                    let code = text(&answer["code"]).filter(|code| code != "replayed");
                    return Told { code, is_unknown: false, answer };
                }
                let after = json!({ "event": "after", "id": "a", "before": self.last,
                    "output": how, "isError": how != "ok" });
                let answer = self.line(&after);
                let is_unknown = answer["notes"].to_string().contains("[MAY HAVE RUN]");
                Told { code: None, is_unknown, answer }
            }
            Door::Serve => {
                let mut call = json!({ "tool": tool, "action": "", "params": arguments });
                key.into_iter().for_each(|key| call["idempotencyKey"] = key.into());
                let answer = self.line(&call);
                let error = &answer["error"];
                let refusals = ["outcome_unknown", "idempotency_conflict"];
                let code = text(&error["code"]).filter(|code| refusals.contains(&&**code));
                let is_unknown = code.is_none() && error["ran"] == "unknown";
                Told { code, is_unknown, answer }
            }
        }
    }

    /// Makes a call, of which the guard says `repeats`, if it does not make it.
    fn call(&mut self, tool: &str, order: u64, how: &str, id: &Id, repeats: Option<&str>) {
        let Told { code, is_unknown, answer } = self.tell(tool, order, how, id);
        self.ledger.calls += 1;
        match (repeats, code) {
            (Some("replayed"), None) => self.ledger.replayed += 1,
            (Some(refused), Some(code)) => {
                assert_eq!(code, refused, "{answer}");
                *self.ledger.refused.entry(code).or_default() += 1;
            }
            (None, None) => self.ledger.unknown += u64::from(is_unknown),
            other => panic!("{other:?}: {answer}"),
        }
    }

    /// One of the ways in which calls go, and what comes after it.
    pub(super) fn play(&mut self, chance: u64, order: u64) {
        let key = Id::Key(order);
        let by_model = |end: &str| Id::Model(format!("toolu_01A09q90qw90lq{order:09}{end}"));
        let (first, other) = (by_model("Ax"), by_model("Bz"));
        match chance % 12 {
            0 => self.call("search", order, "ok", &Id::None, None),
            1 => self.call("search", order, FAILED, &first, None),
            2 => self.call("pay", order, "ok", &Id::None, None),
            3 => {
                self.call("pay", order, "ok", &key, None);
                self.call("pay", order, "ok", &key, Some("replayed"));
                self.call("pay", order + 1_000_000, "ok", &key, Some("idempotency_conflict"));
            }
            4 => {
                self.call("pay", order, UNKNOWN, &key, None);
                self.call("pay", order, UNKNOWN, &key, Some("outcome_unknown"));
            }
            5 => {
                self.call("pay", order, FAILED, &key, None);
                self.call("pay", order, FAILED, &key, Some("replayed"));
            }
            // An equal call without an id, and under a new one of the model's.
            6 if self.door != Door::Serve && self.door != Door::Decide => {
                self.call("pay", order, UNKNOWN, &Id::None, None);
                self.call("pay", order, UNKNOWN, &Id::None, Some("outcome_unknown"));
            }
            7 if self.door != Door::Serve => {
                self.call("pay", order, UNKNOWN, &first, None);
                self.call("pay", order, UNKNOWN, &other, Some("outcome_unknown"));
            }
            // A server that crashes more often stays down.
            8 if self.door == Door::Stdio && order.is_multiple_of(10) && self.crashes < 4 => {
                self.crashes += 1;
                self.call("pay", order, "crash", &key, None);
                self.call("pay", order, "crash", &key, Some("outcome_unknown"));
                let is_back = |told: &Told| told.code.is_none();
                crate::until("the server is back", || {
                    let told = self.tell("search", order, "ok", &Id::None);
                    self.ledger.calls += 1;
                    if !is_back(&told) {
                        *self.ledger.refused.entry("server_gone".into()).or_default() += 1;
                    }
                    is_back(&told).then_some(())
                });
            }
            // A tool that is silent.
            9 if self.door != Door::Decide && order.is_multiple_of(4) => {
                self.call("wait", order, "never", &key, None);
                self.call("wait", order, "never", &key, Some("outcome_unknown"));
            }
            // A connection that breaks once the server has the call.
            10 if self.door == Door::Http => {
                self.last += 1;
                let params = json!({ "name": "pay", "arguments": { "order": order, "how": "late" },
                    "_meta": { "idempotencyKey": format!("order-{order}") } });
                let message = json!({ "jsonrpc": "2.0", "id": self.last, "method": "tools/call", "params": params });
                let connection = self.post(&message);
                let got = self.folder.join(format!("got-{order}"));
                crate::until("the server has the call", || got.exists().then_some(()));
                drop(connection);
                self.ledger.calls += 1;
                self.call("pay", order, "late", &key, Some("replayed"));
            }
            _ => self.call("pay", order, "ok", &first, None),
        }
    }
}
