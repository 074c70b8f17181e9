//! Connections: how many, how long their heads may take, and how they end.
use super::{
    access::HEAD_BYTES,
    body::{self, Answered},
};
use anyhow::{Context as _, bail};
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{convert::Infallible, net::SocketAddr, pin::pin, sync::Arc, time::Duration};
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    time::{sleep, timeout},
};
use tokio_io_timeout::TimeoutStream;

const MAX_CONNECTIONS: usize = 1_024;
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
    fn answer(&self, request: Request<Incoming>) -> impl Future<Output = Answered> + Send;
}

/// Listens at `address`.
///
/// # Errors
/// If other machines can reach it, and there is no token or no TLS.
pub(crate) async fn bind(
    address: SocketAddr,
    has_token: bool,
    behind_tls: bool,
) -> anyhow::Result<TcpListener> {
    let is_guarded = has_token && behind_tls;
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

/// Serves connections until `ended`; then those that are open may end what they do.
pub(crate) async fn serve<D: Door>(
    listener: TcpListener,
    door: D,
    ended: impl Future<Output = u8>,
) -> u8 {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let (ending, ends) = watch::channel(false);
    let mut ended = pin!(ended);
    let mut number = 0;
    let signal = loop {
        let accepted = tokio::select! {
            signal = &mut ended => break signal,
            accepted = listener.accept() => accepted,
        };
        let Ok((mut stream, _)) = accepted else {
            // Most likely no file handle is left; the client can connect again.
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        // Else a head and its first event would be 40 ms apart.
        let _ = stream.set_nodelay(true);
        let Ok(place) = places.clone().try_acquire_owned() else {
            const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 1\r\nconnection: close\r\n\r\n";
            tokio::spawn(async move { timeout(HEAD, stream.write_all(FULL)).await });
            continue;
        };
        number += 1;
        let connection = connection(stream, Connection(number), door.clone(), ends.clone());
        tokio::spawn(async move {
            connection.await;
            drop(place);
        });
    };
    drop(listener);
    ending.send_replace(true);
    let all = u32::try_from(MAX_CONNECTIONS).unwrap_or(u32::MAX);
    let _ = timeout(GRACE, places.acquire_many(all)).await;
    signal
}

async fn connection<D: Door>(
    stream: TcpStream,
    number: Connection,
    door: D,
    mut ends: watch::Receiver<bool>,
) {
    let ending = ends.clone();
    let service = service_fn(move |mut req: Request<Incoming>| {
        req.extensions_mut().insert(number);
        let (door, ending) = (door.clone(), ending.clone());
        async move {
            let answer = door.answer(req).await;
            let ended = |mut ends: watch::Receiver<bool>| async move {
                let _ = ends.wait_for(|ending| *ending).await;
            };
            Ok::<_, Infallible>(body::until(answer, || ended(ending)))
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
