//! A minimal MCP client of a server process: requests and their answers, and its tools as a service, of which a call
//! is a request. The doctor and the demo ask with it, too.
use crate::{
    engine::{answer, effects::Effects, failure::Failure, guessed, server_event::ServerEvent},
    servers::{
        connection::{Connection, Sharing},
        process::Server,
    },
    wire::{
        jsonrpc::{self, Line, METHOD_NOT_FOUND},
        mark,
    },
};
use anyhow::{Context as _, bail};
use bytes::Bytes;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use std::{
    ffi::OsString,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::timeout;
use tr_core::{BoxError, Capability, Json, Ran, ToolCall, ToolOutcome};

/// The longest answer that is read, in bytes.
const MAX_LINE: usize = 64 * 1024 * 1024;
/// How long a server may take for its answer to what is asked before the first call. Clients wait 10 to 60 s.
const PATIENCE: Duration = Duration::from_secs(25);
/// How many pages of a server's list of tools are read.
const MAX_PAGES: usize = 100;

/// What follows the answer to `initialize`.
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A client of a server. A clone is another handle of it, and calls its tools as a service.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    server: Connection,
    last_id: Arc<AtomicU64>,
}

/// A request that waits for its answer; dropping it cancels the request.
struct Pending {
    client: Client,
    /// `None` once it has ended.
    id: Option<u64>,
}

impl Client {
    /// A client of a server that runs.
    ///
    /// # Errors
    /// If its output cannot be read.
    pub(crate) fn over(server: Server) -> io::Result<Self> {
        let server = Connection::over(server, "server".into(), Sharing::Session, MAX_LINE)?;
        let mut unasked = server.listen();
        let client = Self { server, last_id: Arc::default() };
        let this = client.clone();
        tokio::spawn(async move {
            while let Some(ServerEvent::Message { line, .. }) = unasked.next().await {
                this.reply(&line);
            }
        });
        Ok(client)
    }

    /// Starts the server, and reads its list of tools.
    pub(crate) async fn connect(command: &[OsString]) -> anyhow::Result<(Self, Effects)> {
        let server = Server::start(command).context("cannot start the MCP server")?;
        let client = Self::over(server)?;
        client.ask("initialize", &hello("tool-guard")).await?;
        client.note(INITIALIZED);
        let mut effects = Effects::default();
        let mut page = json!({});
        for _ in 0..MAX_PAGES {
            let result = client.ask("tools/list", &page).await?;
            effects.learn(result.as_raw());
            let cursor = serde_json::from_str::<Value>(result.get())?["nextCursor"].take();
            if !cursor.is_string() {
                break;
            }
            page = json!({ "cursor": cursor });
        }
        Ok((client, effects))
    }

    async fn ask(&self, method: &str, params: &Value) -> anyhow::Result<Json> {
        let answer = timeout(PATIENCE, self.answer(method, params)).await.with_context(|| {
            format!("the MCP server has not answered {method} within {PATIENCE:?}, and no call was made: start it by itself to see what it waits for")
        })?;
        let gone = || format!("the MCP server ended without an answer to {method}");
        let line = answer.with_context(gone)?;
        let outcome = guessed::of_line(&line);
        let error = outcome.error().and_then(|error| error.details.as_ref());
        match (outcome.content(), error) {
            (Some(result), _) => Ok(result.clone()),
            (None, Some(error)) => bail!("the MCP server refused {method}: {}", error.get()),
            (None, None) => bail!(
                "the MCP server answered {method} with neither a result nor an error in valid JSON"
            ),
        }
    }

    /// The line that answers a request; `None` if the server ended before.
    pub(crate) async fn answer(&self, method: &str, params: &Value) -> Option<Bytes> {
        self.request(method, &params.to_string()).await.ok()
    }

    /// Sends a request; dropping the future cancels it.
    pub(crate) fn request(
        &self,
        method: &str,
        params: &str,
    ) -> impl Future<Output = Result<Bytes, Failure>> + Send + use<> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let method = Value::from(method);
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#);
        let pending = Pending { client: self.clone(), id: Some(id) };
        let mut post = self.server.post(line.into(), false, None);
        async move {
            // Else a copy of its id is what ends.
            let mut pending = pending;
            let ended = loop {
                match post.next().await {
                    Some(ServerEvent::Message { line, answers: true, .. }) => {
                        break Ok(mark::without(&line));
                    }
                    Some(ServerEvent::Message { line, .. }) => pending.client.reply(&line),
                    Some(ServerEvent::Failed(failure)) if failure.ran() == Ran::No => {
                        break Err(failure);
                    }
                    _ => break Err(Failure::GONE_OR_TOO_LONG),
                }
            };
            pending.id = None;
            ended
        }
    }

    /// Sends what is not answered.
    pub(crate) fn note(&self, message: impl Into<Bytes>) {
        drop(self.server.post(message.into(), false, None));
    }

    /// Answers a request of the server's.
    fn reply(&self, line: &[u8]) {
        let Line::One(message) = jsonrpc::read(line) else { return };
        let (Some(id), Some(method)) = (message.id, message.method.as_deref()) else { return };
        match method {
            // A program that echoes what it reads: only clients send this.
            "initialize" => {}
            "ping" => self.note(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)),
            _ => {
                let why = format!("Method not found: {method}");
                self.note(answer::refusal(id.get(), METHOD_NOT_FOUND, &why));
            }
        }
    }

    /// Ends the server; returns its exit code, if it ended by itself.
    pub(crate) async fn end(&self) -> Option<u8> {
        self.server.end();
        self.server.ended().await
    }

    /// Calls a tool.
    pub(crate) fn call(
        &self,
        call: ToolCall,
    ) -> impl Future<Output = Result<ToolOutcome, BoxError>> + Send + use<> {
        let parts = call.parts();
        let knows_keys = call.manifest().is_some_and(|tool| tool.can(Capability::Idempotency));
        let key = parts.idempotency.key.as_deref().filter(|_| knows_keys);
        let meta = key.map_or_else(String::new, |key| {
            format!(r#","_meta":{}"#, json!({ "idempotencyKey": key }))
        });
        let params = format!(
            r#"{{"name":{},"arguments":{}{meta}}}"#,
            Value::from(parts.tool.name()),
            parts.params.get()
        );
        let pending = self.request("tools/call", &params);
        async move {
            let line = pending.await?;
            Ok(answer::judged(guessed::of_line(&line), call.manifest()))
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.client.note(jsonrpc::cancellation(id, "the call is over"));
        }
    }
}

/// The params of `initialize`, from a client of this name.
pub(crate) fn hello(name: &str) -> Value {
    let info = json!({ "name": name, "version": env!("CARGO_PKG_VERSION") });
    json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info })
}
