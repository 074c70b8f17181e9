//! `tool-guard mcp --admin`: a small HTTP listener beside the proxy.
use anyhow::{Context as _, bail};
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{
    collections::VecDeque,
    fs,
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::timeout,
};
use tool_reliability::{
    admin::{Admin, Peer},
    telemetry::TARGET,
};
use tower_service::Service as _;

/// At the limit, the oldest connection that has sent no request is closed for a new one.
const MAX_CONNECTIONS: usize = 64;
/// The limit of a request's time.
const PATIENCE: Duration = Duration::from_secs(30);

/// Protects `admin` by the token in a file, if there is one.
pub(crate) fn with_token(admin: Admin, file: Option<&Path>) -> anyhow::Result<Admin> {
    let Some(file) = file else { return Ok(admin) };
    let token =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let admin = admin.token(token.trim_end_matches(['\r', '\n']));
    admin.with_context(|| format!("{} holds no usable token", file.display()))
}

/// Listens at `address`, which must be a loopback address unless there is a token.
pub(crate) async fn bind(address: SocketAddr, has_token: bool) -> anyhow::Result<TcpListener> {
    if !has_token && !address.ip().to_canonical().is_loopback() {
        bail!(
            "--admin {address}: other machines can reach this address: give --admin-token-file, or use 127.0.0.1"
        );
    }
    let listener = TcpListener::bind(address).await;
    listener.with_context(|| format!("--admin {address}: cannot listen there"))
}

/// Serves requests until it is dropped.
pub(crate) async fn serve(listener: TcpListener, admin: Admin) {
    if let Ok(address) = listener.local_addr() {
        tracing::warn!(target: TARGET, event = "admin_listening", address = %address);
    }
    let mut open: VecDeque<Connection> = VecDeque::new();
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            // Most likely no file handle is left; the client can connect again.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        open.retain(|connection| !connection.task.is_finished());
        if open.len() >= MAX_CONNECTIONS {
            // The oldest that has sent no request yet: an operator's request arrives at once, and is answered
            // within milliseconds.
            let idle = open.iter().position(|it| !it.asked.load(Ordering::Relaxed));
            open.remove(idle.unwrap_or(0));
        }
        let asked = Arc::new(AtomicBool::new(false));
        let answer = answer(stream, peer, admin.clone(), asked.clone());
        let task = tokio::spawn(async move {
            let _ = timeout(PATIENCE, answer).await;
        });
        open.push_back(Connection { task, asked });
        // Connections that have sent a request are served before the next is accepted.
        tokio::task::yield_now().await;
    }
}

/// A connection; dropping it closes the connection.
struct Connection {
    task: JoinHandle<()>,
    /// Whether the head of its request was read.
    asked: Arc<AtomicBool>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(stream: TcpStream, peer: SocketAddr, admin: Admin, asked: Arc<AtomicBool>) {
    let service = service_fn(move |mut request| {
        asked.store(true, Ordering::Relaxed);
        request.extensions_mut().insert(Peer(peer));
        admin.clone().call(request)
    });
    // The client handles a broken connection.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE / 3)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
