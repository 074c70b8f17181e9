//! Clients of an MCP server over HTTP, each on a connection and a session of its own.
use crate::turns::{Call, Way};
use bytes::Bytes;
use futures_util::future::try_join_all;
use http::{HeaderName, HeaderValue, Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    body::Incoming,
    client::conn::http1::{SendRequest, handshake},
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpStream,
    runtime::{Builder, Runtime},
};
use tr_core::BoxError;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The rest of the text of a call, which has 1 KiB with its number.
const WORDS: &str = "the order of the customer is on its way to the shop near the river, ";

/// Clients that call at once.
pub(crate) struct Clients {
    runtime: Runtime,
    all: Vec<Client>,
    /// The calls so far.
    calls: u64,
}

struct Client {
    send: SendRequest<Full<Bytes>>,
    port: u16,
    session: Option<HeaderValue>,
}

impl Clients {
    /// So many clients, each with a session.
    pub(crate) fn open(port: u16, count: usize) -> Result<Self, BoxError> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let mut all = Vec::with_capacity(count);
        for _ in 0..count {
            all.push(runtime.block_on(Client::open(port))?);
        }
        Ok(Self { runtime, all, calls: 0 })
    }
}

impl Way for Clients {
    /// Each client makes one call, all at once, with 1 KiB that is echoed.
    fn calls(&mut self, call: Call, _: u64) -> Result<(), BoxError> {
        let first = self.calls;
        self.calls += self.all.len() as u64;
        let calls = self.all.iter_mut().zip(first..).map(|(client, id)| async move {
            let line = request(call, client.port, id);
            let answer = client.call(&line).await?;
            if call.is_answered_by(&answer, Some(id)) {
                Ok(())
            } else {
                Err(BoxError::from(answer.chars().take(500).collect::<String>()))
            }
        });
        self.runtime.block_on(try_join_all(calls)).map(drop)
    }
}

impl Client {
    async fn open(port: u16) -> Result<Self, BoxError> {
        let connection = TcpStream::connect(("127.0.0.1", port)).await?;
        connection.set_nodelay(true)?;
        let (send, running) = handshake(TokioIo::new(connection)).await?;
        tokio::spawn(running);
        let mut client = Self { send, port, session: None };
        let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
        let answer = client.post(hello).await?;
        client.session = answer.headers().get(SESSION).cloned();
        answer.into_body().collect().await?;
        for line in [
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":0,"method":"tools/list"}"#,
        ] {
            client.post(line).await?.into_body().collect().await?;
        }
        Ok(client)
    }

    async fn call(&mut self, line: &str) -> Result<String, BoxError> {
        let body = self.post(line).await?.into_body().collect().await?.to_bytes();
        Ok(String::from_utf8(body.into())?)
    }

    async fn post(&mut self, line: &str) -> Result<Response<Incoming>, BoxError> {
        let mut request = Request::post("/mcp")
            .header(header::HOST, format!("127.0.0.1:{}", self.port))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream")
            .header(VERSION, "2025-06-18")
            .body(Full::from(line.to_owned()))?;
        if let Some(session) = &self.session {
            request.headers_mut().insert(SESSION, session.clone());
        }
        self.send.ready().await?;
        let answer = self.send.send_request(request).await?;
        if answer.status().is_success() {
            Ok(answer)
        } else {
            Err(format!("{} to {line}", answer.status()).into())
        }
    }
}

fn request(call: Call, port: u16, id: u64) -> String {
    let (tool, meta) = (call.tool(), call.key(port.into(), id));
    let text: String = WORDS.chars().cycle().take(1008).collect();
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"text":"{id:016}{text}"}}{meta}}}}}"#,
    )
}
