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

/// For a further connection, the oldest that has asked for nothing goes.
const MAX_CONNECTIONS: usize = 64;
/// How long a request may take in all.
const PATIENCE: Duration = Duration::from_secs(30);

/// Guards `admin` by the token in a file, if there is one.
pub(crate) fn with_token(admin: Admin, file: Option<&Path>) -> anyhow::Result<Admin> {
    let Some(file) = file else { return Ok(admin) };
    let token =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let admin = admin.token(token.trim_end_matches(['\r', '\n']));
    admin.with_context(|| format!("{} holds no token", file.display()))
}

/// Listens at `address`, which only this machine can reach unless a token is asked for.
pub(crate) async fn bind(address: SocketAddr, has_token: bool) -> anyhow::Result<TcpListener> {
    if !has_token && !address.ip().to_canonical().is_loopback() {
        bail!(
            "--admin {address}: others can reach this address: give --admin-token-file, or take 127.0.0.1"
        );
    }
    let listener = TcpListener::bind(address).await;
    listener.with_context(|| format!("--admin {address}: cannot listen there"))
}

/// Answers until it is dropped.
pub(crate) async fn serve(listener: TcpListener, admin: Admin) {
    if let Ok(address) = listener.local_addr() {
        tracing::warn!(target: TARGET, event = "admin_listening", address = %address);
    }
    let mut open: VecDeque<Connection> = VecDeque::new();
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            // No file handle left, most likely: whoever asks can ask again.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        open.retain(|connection| !connection.task.is_finished());
        if open.len() >= MAX_CONNECTIONS {
            // The oldest that has not said yet what it wants: a request of an operator's is there
            // at once, and answered in milliseconds.
            let idle = open.iter().position(|it| !it.asked.load(Ordering::Relaxed));
            open.remove(idle.unwrap_or(0));
        }
        let asked = Arc::new(AtomicBool::new(false));
        let answer = answer(stream, peer, admin.clone(), asked.clone());
        let task = tokio::spawn(async move {
            let _ = timeout(PATIENCE, answer).await;
        });
        open.push_back(Connection { task, asked });
        // Whoever has said what it wants is heard before the next comes in.
        tokio::task::yield_now().await;
    }
}

/// A connection, which ends when this is dropped.
struct Connection {
    task: JoinHandle<()>,
    /// The head of its request was read.
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
    // A connection that breaks off is the client's affair.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE / 3)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
