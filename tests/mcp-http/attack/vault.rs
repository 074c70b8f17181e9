//! A server whose tool makes a secret, another one at each execution: who gets whose is seen by its text. It speaks
//! Streamable HTTP, and the lines of a command through a bridge. Executions wait until they are released.
mod http;
mod pipe;

use crate::{client::random, guard::Shop};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    net::TcpListener,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread,
};

/// The tool that makes a secret.
pub(super) const CREATES: &str = "create_api_key";
/// The same, of which the list of tools says that it only reads.
pub(super) const READS: &str = "read_api_key";

/// The running server.
#[derive(Clone)]
pub(super) struct Vault(Arc<Inside>);

struct Inside {
    /// Whether it begins sessions over HTTP.
    has_sessions: bool,
    http: u16,
    pipe: u16,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    executions: Vec<Execution>,
    /// By order, how many executions wait, from the first on.
    held: HashMap<String, usize>,
    /// The orders whose answers over HTTP are streams of events.
    streamed: Vec<String>,
    /// The sessions over HTTP, and whose they are.
    sessions: HashMap<String, Option<String>>,
    begun: usize,
    pipes: usize,
}

/// One execution of a tool.
struct Execution {
    order: String,
    secret: String,
    /// The session or the process in which its id is valid.
    place: String,
    id: Value,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It runs, or waits.
    Open,
    Answered,
    /// Its client cancelled it, or ended its session: it gets no answer.
    Cancelled,
    /// Its connection ends, or its process.
    Lost,
}

impl Vault {
    pub(super) fn start(has_sessions: bool) -> Self {
        let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
        let (http, pipe) = (listen(), listen());
        let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
        let vault = Self(Arc::new(Inside {
            has_sessions,
            http: port(&http),
            pipe: port(&pipe),
            state: Mutex::default(),
            changed: Condvar::new(),
        }));
        for (listener, serve) in
            [(http, http::serve as fn(&Self, _)), (pipe, pipe::serve as fn(&Self, _))]
        {
            let vault = vault.clone();
            thread::spawn(move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    let vault = vault.clone();
                    thread::spawn(move || serve(&vault, stream));
                }
            });
        }
        vault
    }

    /// Its endpoint.
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.0.http)
    }

    /// A guard's folder in front of it: at its address, or as a command.
    pub(super) fn shop(&self, is_command: bool) -> Shop {
        if is_command {
            Shop::over_script(&pipe::command(self.0.pipe))
        } else {
            Shop::at(&self.url())
        }
    }

    /// So many executions for this order will wait.
    pub(super) fn hold(&self, order: &str, executions: usize) {
        self.state().held.insert(order.into(), executions);
    }

    /// Its answers for this order will be streams of events.
    pub(super) fn stream(&self, order: &str) {
        self.state().streamed.push(order.into());
    }

    /// Lets the executions for this order go on.
    pub(super) fn release(&self, order: &str) {
        self.change(|state| {
            state.held.remove(order);
        });
    }

    /// Ends the connections, or the processes, of the executions for this order, which are not answered.
    pub(super) fn lose(&self, order: &str) {
        self.end(End::Lost, |execution| execution.order == order);
    }

    /// The secrets that were made for this order, the first one first.
    pub(super) fn secrets(&self, order: &str) -> Vec<String> {
        let state = self.state();
        let all = state.executions.iter().filter(|execution| execution.order == order);
        all.map(|execution| execution.secret.clone()).collect()
    }

    /// How many processes it has served.
    pub(super) fn processes(&self) -> usize {
        self.state().pipes
    }

    /// How many executions for this order were cancelled.
    pub(super) fn cancelled(&self, order: &str) -> usize {
        let state = self.state();
        let all = state.executions.iter().filter(|execution| execution.order == order);
        all.filter(|execution| execution.end == End::Cancelled).count()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.0.changed.notify_all();
    }

    fn end(&self, end: End, is_it: impl Fn(&Execution) -> bool) {
        self.change(|state| {
            let open = state.executions.iter_mut().filter(|execution| execution.end == End::Open);
            open.filter(|execution| is_it(execution)).for_each(|execution| execution.end = end);
        });
    }

    /// Executes a call; its number.
    fn execute(&self, place: &str, body: &Value) -> usize {
        let mut state = self.state();
        let order = body["params"]["arguments"]["order"].as_str().unwrap_or_default().to_owned();
        let number = state.executions.len();
        let secret = format!("sk-{number}-{}", random(16));
        let (place, id) = (place.to_owned(), body["id"].clone());
        state.executions.push(Execution { order, secret, place, id, end: End::Open });
        number
    }

    /// Waits for the end of an execution; its result, if it has one.
    fn finish(&self, number: usize) -> Result<Value, End> {
        let waits = |state: &mut State| {
            let execution = &state.executions[number];
            let before = state.executions[..number].iter();
            let before = before.filter(|other| other.order == execution.order).count();
            let is_held = state.held.get(&execution.order).is_some_and(|held| before < *held);
            is_held && execution.end == End::Open
        };
        let mut state = self.0.changed.wait_while(self.state(), waits).unwrap();
        let execution = &mut state.executions[number];
        if let End::Cancelled | End::Lost = execution.end {
            return Err(execution.end);
        }
        execution.end = End::Answered;
        let text = format!("the key is {}", execution.secret);
        Ok(json!({ "content": [{ "type": "text", "text": text }] }))
    }

    /// Takes a message that asks for no answer.
    fn note(&self, place: &str, body: &Value) {
        if body["method"] == "notifications/cancelled" {
            let id = &body["params"]["requestId"];
            self.end(End::Cancelled, |execution| execution.place == place && execution.id == *id);
        }
    }

    /// What answers a request that is no call.
    fn result(body: &Value) -> Option<Value> {
        let info = json!({ "name": "vault", "version": "1" });
        let capabilities = json!({ "tools": {} });
        Some(match body["method"].as_str()? {
            "initialize" => json!({ "protocolVersion": body["params"]["protocolVersion"],
                "capabilities": capabilities, "serverInfo": info }),
            "server/discover" => json!({ "supportedVersions": ["2026-07-28"],
                "capabilities": capabilities, "serverInfo": info, "resultType": "complete" }),
            "ping" => json!({}),
            "tools/list" => {
                let schema =
                    json!({ "type": "object", "properties": { "order": { "type": "string" } } });
                let tool = |name: &str, annotations: Value| json!({ "name": name, "inputSchema": schema, "annotations": annotations });
                json!({ "tools": [tool(CREATES, json!({})), tool(READS, json!({ "readOnlyHint": true }))],
                    "ttlMs": 60_000, "cacheScope": "private", "resultType": "complete" })
            }
            _ => return None,
        })
    }
}

/// The message that answers this request.
fn answer(body: &Value, result: Option<Value>) -> Value {
    match result {
        Some(mut result) => {
            let is_call = body["method"] == "tools/call";
            let is_modern =
                body["params"]["_meta"].get("io.modelcontextprotocol/protocolVersion").is_some();
            if is_call && is_modern {
                result["resultType"] = "complete".into();
            }
            json!({ "jsonrpc": "2.0", "id": body["id"], "result": result })
        }
        None => {
            let error = json!({ "code": -32601, "message": "Method not found" });
            json!({ "jsonrpc": "2.0", "id": body["id"], "error": error })
        }
    }
}

/// The progress of a call, if its client asks for it.
fn progress(body: &Value) -> Option<Value> {
    let token = body["params"]["_meta"].get("progressToken")?;
    let said = format!("progress of {}", body["params"]["arguments"]["order"]);
    let params = json!({ "progressToken": token, "progress": 1, "message": said });
    Some(json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }))
}
