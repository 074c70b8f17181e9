//! A minimal MCP client over a server process: requests, matched with answers by id, and its tools as a service,
//! of which a call is a request. The doctor and the demo ask with it, too.
use crate::mcp::{
    Effects, Item, LineReader, Server, answer, batch,
    failure::Failure,
    guessed, mark,
    message::{self, Guess, Line, Token},
    server,
};
use anyhow::{Context as _, bail};
use bytes::{Bytes, BytesMut};
use serde_json::{Value, json, value::RawValue};
use std::{
    collections::HashMap,
    ffi::OsString,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    process::ChildStdout,
    sync::{Notify, oneshot},
    time::timeout,
};
use tower_service::Service;
use tr_core::{BoxError, ToolCall, ToolManifest, ToolOutcome, internal::lock};

/// The longest answer that is read, in bytes.
const MAX_LINE: usize = 64 * 1024 * 1024;
/// How long a server may take for its answer to what is asked before the first call. Clients wait 10 to 60 s.
const PATIENCE: Duration = Duration::from_secs(25);
/// How many pages of a server's list of tools are read.
const MAX_PAGES: usize = 100;

/// A connection to a server. Its owner must run [`pump`](Self::pump).
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) server: Server,
    output: LineReader<ChildStdout>,
    /// How many more bytes of its output are read.
    left: usize,
    /// Lines that are not written yet.
    unsent: BytesMut,
    pub(crate) link: Arc<Link>,
}

/// The state that the requests of a connection share.
#[derive(Debug, Default)]
pub(crate) struct Link {
    state: Mutex<State>,
    /// Signals that there is something to write.
    written: Notify,
}

#[derive(Debug, Default)]
struct State {
    next_id: u64,
    outbox: BytesMut,
    waiting: HashMap<u64, oneshot::Sender<Bytes>>,
    gone: bool,
}

/// A request that waits for its answer; dropping it cancels the request.
#[derive(Debug)]
pub(crate) struct Pending {
    link: Arc<Link>,
    id: u64,
    pub(crate) answer: oneshot::Receiver<Bytes>,
}

impl Link {
    /// Sends a request, unless the server is gone.
    pub(crate) fn request(self: &Arc<Self>, method: &str, params: &str) -> Option<Pending> {
        let mut state = lock(&self.state);
        if state.gone {
            return None;
        }
        state.next_id += 1;
        let (id, (sender, answer)) = (state.next_id, oneshot::channel());
        state.waiting.insert(id, sender);
        let method = Value::from(method);
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#);
        state.send(&line);
        self.written.notify_one();
        drop(state);
        Some(Pending { link: self.clone(), id, answer })
    }

    fn note(&self, message: &Value) {
        lock(&self.state).send(&message.to_string());
        self.written.notify_one();
    }

    /// Handles a line of the server's. Answers are read as `tool-guard mcp` reads them: matched by id even
    /// if they are no JSON, and one by one if they are in a batch.
    fn take(&self, line: &Bytes) {
        let repaired = message::repaired(line);
        let line = repaired.as_ref().unwrap_or(line);
        let message = match message::read(line) {
            Line::One(message) => message,
            Line::Batch => return self.take_each(line),
            Line::Unreadable { .. } => {
                return match Guess::of(line).filter(|guess| guess.is_response) {
                    Some(guess) => self.answered(&guess.id, line),
                    None => self.take_each(line),
                };
            }
        };
        let Some(id) = message.id else { return };
        match message.method.as_deref() {
            // A program that echoes what it reads: only clients send this.
            Some("initialize") => {}
            Some("ping") => self.note(&json!({ "jsonrpc": "2.0", "id": id, "result": {} })),
            Some(method) => self.note(&json!({
                "jsonrpc": "2.0", "id": id,
                "error": { "code": -32601, "message": format!("Method not found: {method}") },
            })),
            None if message.is_response() => {
                if let Some(id) = Token::read(id) {
                    self.answered(&id, line);
                }
            }
            None => {}
        }
    }

    /// Handles the messages of a batch; a nested batch is ignored.
    fn take_each(&self, line: &Bytes) {
        for part in batch::parts(line) {
            if part.starts_with(b"{") {
                self.take(&part);
            }
        }
    }

    fn answered(&self, id: &Token, line: &Bytes) {
        if let Some(waiting) = self.waiting(id) {
            // If the receiver is gone, the request was cancelled.
            let _ = waiting.send(line.clone());
        }
    }

    /// The request that waits for this answer.
    fn waiting(&self, id: &Token) -> Option<oneshot::Sender<Bytes>> {
        lock(&self.state).waiting.remove(&id.number()?)
    }

    fn close(&self) {
        let mut state = lock(&self.state);
        state.gone = true;
        state.waiting.clear();
    }
}

impl State {
    fn send(&mut self, line: &str) {
        self.outbox.extend_from_slice(line.as_bytes());
        self.outbox.extend_from_slice(b"\n");
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if lock(&self.link.state).waiting.remove(&self.id).is_some() {
            self.link.note(&json!({
                "jsonrpc": "2.0", "method": "notifications/cancelled",
                "params": { "requestId": self.id, "reason": "the call is over" },
            }));
        }
    }
}

impl Client {
    /// A client of a server that runs, which reads at most so many bytes of its output.
    pub(crate) fn over(mut server: Server, most: usize) -> Self {
        let output = LineReader::new(server.take_output(), MAX_LINE);
        Self { server, output, left: most, unsent: BytesMut::new(), link: Arc::default() }
    }

    /// Starts the server, and reads its list of tools.
    pub(crate) async fn connect(command: &[OsString]) -> anyhow::Result<(Self, Effects)> {
        let server = Server::start(command).context("cannot start the MCP server")?;
        let mut client = Self::over(server, usize::MAX);
        client.ask("initialize", &hello("tool-guard")).await?;
        client.link.note(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        let mut effects = Effects::default();
        let mut page = json!({});
        for _ in 0..MAX_PAGES {
            let result = client.ask("tools/list", &page).await?;
            effects.learn(&result);
            let cursor = serde_json::from_str::<Value>(result.get())?["nextCursor"].take();
            if !cursor.is_string() {
                break;
            }
            page = json!({ "cursor": cursor });
        }
        Ok((client, effects))
    }

    async fn ask(&mut self, method: &str, params: &Value) -> anyhow::Result<Box<RawValue>> {
        let answer = timeout(PATIENCE, self.answer(method, params)).await.with_context(|| {
            format!("the MCP server has not answered {method} within {PATIENCE:?}, and no call was made: start it by itself to see what it waits for")
        })?;
        let gone = || format!("the MCP server ended without an answer to {method}");
        let line = answer.with_context(gone)?;
        let (result, error) = guessed::parts(&line);
        match (result, error) {
            (Some(result), _) => Ok(result.to_owned()),
            (None, Some(error)) => bail!("the MCP server refused {method}: {}", error.get()),
            (None, None) => {
                bail!(
                    "the MCP server answered {method} with neither a result nor an error in valid JSON"
                )
            }
        }
    }

    /// The line that answers a request; `None` if the server ended before.
    pub(crate) async fn answer(&mut self, method: &str, params: &Value) -> Option<Bytes> {
        let mut pending = self.link.request(method, &params.to_string())?;
        tokio::select! {
            biased;
            answer = &mut pending.answer => answer.ok(),
            () = self.pump() => pending.answer.try_recv().ok(),
        }
    }

    /// Moves lines in both directions until the server's output ends. Dropping the future loses no line.
    pub(crate) async fn pump(&mut self) {
        while self.output.is_open() {
            self.unsent.unsplit(lock(&self.link.state).outbox.split());
            tokio::select! {
                item = self.output.next() => match item {
                    Some(Item::Line(line)) => {
                        self.left = self.left.saturating_sub(line.len());
                        if self.is_cut_off() {
                            self.output.close();
                        }
                        self.link.take(&mark::without(&line));
                    }
                    // Fails the request whose answer was too long to read.
                    Some(Item::Oversized(long)) => {
                        drop(long.token().and_then(|id| self.link.waiting(&id)));
                    }
                    Some(Item::Part(_)) | None => {}
                },
                wrote = server::write(&mut self.server.input, &mut self.unsent), if !self.unsent.is_empty() => {
                    if wrote.is_err() {
                        // The end of its output follows.
                        self.unsent.clear();
                    }
                }
                () = self.link.written.notified() => {}
            }
        }
        self.link.close();
    }

    /// Whether the server's output is open.
    pub(crate) const fn is_open(&self) -> bool {
        self.output.is_open()
    }

    /// Whether no more of its output is read.
    pub(crate) const fn is_cut_off(&self) -> bool {
        self.left == 0
    }

    /// Ends the server.
    pub(crate) async fn end(&mut self) {
        self.server.end().await;
    }
}

/// The params of `initialize`, from a client of this name.
pub(crate) fn hello(name: &str) -> Value {
    let info = json!({ "name": name, "version": env!("CARGO_PKG_VERSION") });
    json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info })
}

/// Calls the tools of a server.
#[derive(Clone, Debug)]
pub(crate) struct RemoteTool(pub(crate) Arc<Link>);

impl Service<ToolCall> for RemoteTool {
    type Response = ToolOutcome;
    type Error = BoxError;
    type Future = RemoteCall;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> RemoteCall {
        let parts = call.parts();
        let knows_keys = call.manifest().is_some_and(|tool| tool.capabilities.idempotency);
        let key = parts.idempotency.key.as_deref().filter(|_| knows_keys);
        let meta = key.map_or_else(String::new, |key| {
            format!(r#","_meta":{}"#, json!({ "idempotencyKey": key }))
        });
        let params = format!(
            r#"{{"name":{},"arguments":{}{meta}}}"#,
            Value::from(parts.tool.name()),
            parts.params.get()
        );
        let codes = call.parts().manifest.clone().filter(|tool| !tool.not_run.is_empty());
        RemoteCall { pending: self.0.request("tools/call", &params), codes }
    }
}

/// A call in flight.
#[derive(Debug)]
pub(crate) struct RemoteCall {
    /// `None` if the server had ended before.
    pending: Option<Pending>,
    /// The manifest with the codes by which the tool says that it did not run.
    codes: Option<Arc<ToolManifest>>,
}

impl Future for RemoteCall {
    type Output = Result<ToolOutcome, BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(pending) = &mut self.pending else {
            return Poll::Ready(Err(Failure::SERVER_GONE_BEFORE.into()));
        };
        let Ok(line) = ready!(Pin::new(&mut pending.answer).poll(cx)) else {
            return Poll::Ready(Err(Failure::GONE_OR_TOO_LONG.into()));
        };
        Poll::Ready(Ok(answer::judged(guessed::of_line(&line), self.codes.as_deref())))
    }
}
