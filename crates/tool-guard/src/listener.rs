//! A small HTTP listener for operators: the admin page, the scrape of metrics.
use hyper::{
    Request, Response,
    body::{Body, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{
    collections::VecDeque,
    convert::Infallible,
    error::Error,
    net::SocketAddr,
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
use tool_reliability::admin::Peer;
use tower_service::Service;

/// At the limit, the oldest connection that has sent no request is closed for a new one.
const MAX_CONNECTIONS: usize = 64;
/// The limit of a request's time.
const PATIENCE: Duration = Duration::from_secs(30);

/// Serves one request per connection until it is dropped.
pub(crate) async fn serve<S, B>(listener: TcpListener, service: S)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone,
    S: Send + 'static,
    S::Future: Send,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
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
        let answer = answer(stream, peer, service.clone(), asked.clone());
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

async fn answer<S, B>(stream: TcpStream, peer: SocketAddr, service: S, asked: Arc<AtomicBool>)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let service = service_fn(move |mut request: Request<Incoming>| {
        asked.store(true, Ordering::Relaxed);
        request.extensions_mut().insert(Peer(peer));
        service.clone().call(request)
    });
    // The client handles a broken connection.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE / 3)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
