//! Connections: how many, how long their heads may take, and how they end.
use super::{
    access::{Access, HEAD_BYTES},
    body::{self, Answered, EndsAtOnce},
    pages,
};
use anyhow::{Context as _, bail};
use bytes::Bytes;
use futures_util::{StreamExt as _, future::join_all};
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Body, Incoming},
    header::{CONNECTION, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_io_timeout::TimeoutStream;
use tool_reliability::{admin::Peer, telemetry::TARGET};
use tower_service::Service;
use tr_core::BoxError;

/// At the limit, the connection that has been idle for longest is closed for a new one.
const MAX_CONNECTIONS: usize = 1_024;
/// The path at which every listener says that it answers.
const HEALTH: &str = "/healthz";
/// How long the head of a request may take.
const HEAD: Duration = Duration::from_secs(10);
/// How long calls that run may go on when the guard is asked to end.
pub(crate) const GRACE: Duration = Duration::from_secs(10);
/// How long a client may read nothing of what is sent to it.
const STALLED: Duration = Duration::from_secs(30);

/// The connection of a request, by its number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connection(pub(crate) u64);

/// Answers requests.
pub(crate) trait Door: Clone + Send + 'static {
    /// What requests must have, if pages of other origins may be among those who send them.
    fn access(&self) -> Option<&Access> {
        None
    }

    fn answer(&self, request: Request<Incoming>) -> impl Future<Output = Answered> + Send;
}

/// A service whose connections carry one request each.
#[derive(Clone)]
pub(crate) struct OneRequest<S>(pub(crate) S);

impl<S, B> Door for OneRequest<S>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible, Future: Send>,
    S: Clone + Send + 'static,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    fn answer(&self, request: Request<Incoming>) -> impl Future<Output = Answered> + Send {
        let called = self.0.clone().call(request);
        async {
            let Ok(mut answer) = called.await;
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            answer.map(|body| body.map_err(Into::into).boxed_unsync())
        }
    }
}

/// Listens at `address`.
///
/// # Errors
/// If other machines can reach it, and it is not guarded by a token and TLS.
pub(crate) async fn bind(address: SocketAddr, is_guarded: bool) -> anyhow::Result<TcpListener> {
    if !address.ip().to_canonical().is_loopback() && !is_guarded {
        bail!(
            "--listen {address}: other machines can reach this address: give --token-file and --behind-tls (a proxy in front of it speaks TLS), or use 127.0.0.1"
        );
    }
    let listener = TcpListener::bind(address).await;
    listener.with_context(|| {
        format!("--listen {address}: cannot listen: give a free port of this machine")
    })
}

/// Listens at an address of the operator's. If another program has it, such as the guard of another window, this one goes
/// on without, and warns.
///
/// # Errors
/// If it cannot listen there for another reason.
pub(crate) async fn bind_for_operator(
    address: SocketAddr,
    option: &str,
) -> anyhow::Result<Option<TcpListener>> {
    match TcpListener::bind(address).await {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let why = "another program listens there, such as the guard of another window: this one goes on without; port 0 takes a free one";
            tracing::warn!(target: TARGET, event = "address_in_use", option, %address, why);
            Ok(None)
        }
        bound => {
            bound.map(Some).with_context(|| format!("{option} {address}: cannot listen there"))
        }
    }
}

/// Serves connections until `ended`; then those that are open may end what they do. The log has the address as this event.
pub(crate) async fn serve<D: Door>(
    (listener, event): (TcpListener, &'static str),
    door: D,
    ended: impl Future<Output = u8>,
) -> u8 {
    if let Ok(address) = listener.local_addr() {
        tracing::warn!(target: TARGET, event, %address);
    }
    let mut open: Vec<Open> = Vec::new();
    let (ending, ends) = watch::channel(false);
    let mut ended = pin!(ended);
    let mut count = 0;
    let signal = loop {
        let accepted = tokio::select! {
            signal = &mut ended => break signal,
            accepted = listener.accept() => accepted,
        };
        let Ok((mut stream, peer)) = accepted else {
            // Most likely no file handle is left; the client can connect again.
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        // Else a head and its first event would be 40 ms apart.
        let _ = stream.set_nodelay(true);
        if !has_place(&mut open) {
            const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 1\r\nconnection: close\r\n\r\n";
            tokio::spawn(async move { timeout(HEAD, stream.write_all(FULL)).await });
            continue;
        }
        count += 1;
        let idle = Idle::new(now().into());
        let number = (Connection(count), Peer(peer));
        let this = connection(stream, number, door.clone(), ends.clone(), idle.clone());
        open.push(Open { task: tokio::spawn(this), idle });
    };
    drop(listener);
    ending.send_replace(true);
    let _ = timeout(GRACE, join_all(open.into_iter().map(|connection| connection.task))).await;
    signal
}

/// An open connection.
struct Open {
    task: JoinHandle<()>,
    idle: Idle,
}

/// Whether there is a place for another connection; the one that has been idle for longest makes one.
fn has_place(open: &mut Vec<Open>) -> bool {
    if open.len() < MAX_CONNECTIONS {
        return true;
    }
    open.retain(|connection| !connection.task.is_finished());
    if open.len() < MAX_CONNECTIONS {
        return true;
    }
    let since = |at: &usize| open[*at].idle.load(Ordering::Relaxed);
    let Some(oldest) = (0..open.len()).min_by_key(since).filter(|at| since(at) != BUSY) else {
        return false;
    };
    open.swap_remove(oldest).task.abort();
    true
}

/// Since when a connection has carried no request: the number of that moment among those of all connections.
type Idle = Arc<AtomicU64>;

/// The connection carries a request.
const BUSY: u64 = u64::MAX;

fn now() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed)
}

/// A request that a connection carries, until its answer is sent. HTTP/1.1 carries one at a time.
struct Busy(Idle);

impl Busy {
    fn of(idle: &Idle) -> Self {
        idle.store(BUSY, Ordering::Relaxed);
        Self(idle.clone())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(now(), Ordering::Relaxed);
    }
}

async fn connection<D: Door>(
    stream: TcpStream,
    (number, peer): (Connection, Peer),
    door: D,
    mut ends: watch::Receiver<bool>,
    idle: Idle,
) {
    let ending = ends.clone();
    let service = service_fn(move |mut req: Request<Incoming>| {
        req.extensions_mut().insert(number);
        req.extensions_mut().insert(peer);
        let (door, mut ending, busy) = (door.clone(), ending.clone(), Busy::of(&idle));
        async move {
            let origin = door.access().and_then(|access| pages::origin(access, &req));
            let mut answer = match origin.as_ref().and_then(|_| pages::preflight(&req)) {
                Some(answer) => answer,
                // For load balancers, which have no token.
                None if req.method() == Method::GET && req.uri().path() == HEALTH => {
                    body::respond(StatusCode::OK, Bytes::from_static(b"ok\n"))
                }
                None => door.answer(req).await,
            };
            if let Some(origin) = origin {
                pages::may_read(origin, &mut answer);
            }
            if answer.extensions().get::<EndsAtOnce>().is_some() {
                let ended = Box::pin(async move { ending.wait_for(|it| *it).await.is_ok() });
                let frames = |body| BodyStream::new(body).take_until(ended);
                answer = answer.map(|body| StreamBody::new(frames(body)).boxed_unsync());
            }
            // The connection is busy as long as the body lives, which holds the closure.
            let carried = move |error| {
                let _held = &busy;
                error
            };
            Ok::<_, Infallible>(answer.map(|body| body.map_err(carried).boxed_unsync()))
        }
    });
    // A client that does not read would hold its place, and its call, for ever.
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(STALLED));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(Box::pin(stream)), service);
    let mut connection = pin!(connection);
    // The client handles a broken connection.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = ends.wait_for(|ending| *ending) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    #[tokio::test]
    async fn the_longest_idle_connection_makes_place() {
        let connection = || Open { task: tokio::spawn(pending()), idle: Idle::new(now().into()) };
        let mut open: Vec<_> = (0..MAX_CONNECTIONS).map(|_| connection()).collect();
        // The second was idle again after the third began.
        let carried = Busy::of(&open[0].idle);
        drop(Busy::of(&open[1].idle));
        let third = open[2].task.abort_handle();
        assert!(has_place(&mut open));
        assert_eq!(open.len(), MAX_CONNECTIONS - 1);
        tokio::task::yield_now().await;
        assert!(third.is_finished() && open.iter().all(|it| !it.task.is_finished()));
        open.push(connection());
        let all: Vec<_> = open.iter().map(|it| Busy::of(&it.idle)).collect();
        assert!(!has_place(&mut open));
        drop((carried, all));
        assert!(has_place(&mut open));
    }
}
