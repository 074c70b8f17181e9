//! A TCP proxy between a client and a server that injects network faults on request.
//!
//! # When to use
//!
//! With a real client and a real server, to test a bad network: nothing arrives, only the reply is
//! lost, connections are reset or refused, everything is delayed. To fail the server itself, kill
//! or pause it.
//!
//! # Example
//!
//! ```
//! use tokio::{io::{AsyncReadExt, AsyncWriteExt}, net::{TcpListener, TcpStream}};
//! use tr_testkit::faults::Proxy;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
//! let server = TcpListener::bind("127.0.0.1:0").await?;
//! let proxy = Proxy::start(server.local_addr()?)?;
//! let mut client = TcpStream::connect(proxy.addr()).await?;
//! let (mut served, _) = server.accept().await?;
//!
//! client.write_all(b"hello").await?;
//! let mut hello = [0; 5];
//! served.read_exact(&mut hello).await?;
//! assert_eq!(&hello, b"hello");
//!
//! proxy.reset();
//! assert!(client.read_u8().await.is_err());
//! # Ok(()) }
//! ```
//!
//! # Faults
//!
//! | fault | lasts | the ends see |
//! |---|---|---|
//! | [`black_hole`](Proxy::black_hole) | until [healed](Proxy::heal) | silence; sent data arrives after it |
//! | [`cut_requests`](Proxy::cut_requests), [`cut_replies`](Proxy::cut_replies) | until healed | the same, one way |
//! | [`delay`](Proxy::delay) | until healed | each request arrives later |
//! | [`refuse`](Proxy::refuse) | until healed | new connections are refused |
//! | [`reset`](Proxy::reset) | once | connections are reset |
//! | [`truncate_next_reply`](Proxy::truncate_next_reply) | one reply | the beginning of it, then the loss |
//! | [`drop_reply_of`](Proxy::drop_reply_of) | one reply | the command was executed, its reply never arrives |
//!
//! A reply is a frame of Redis's protocol; with another protocol, it is a received chunk, and
//! commands have no names. Each command counts for one reply, so names do not match on a connection
//! that subscribes in RESP2.
//!
//! Real time passes here: don't pause tokio's clock in such a test.

mod carry;
mod frames;
mod loss;

pub use self::loss::Then;

use self::{
    carry::{Carrier, Lasting},
    loss::Losses,
};
use std::{
    future::poll_fn,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::watch,
};
use tr_core::internal::lock;

/// A proxy on loopback in front of one server; a fault starts with the call of its method. The drop
/// closes all its connections.
#[derive(Debug)]
pub struct Proxy {
    addr: SocketAddr,
    lasting: watch::Sender<Lasting>,
    shared: Arc<Shared>,
    /// Reserves the port while new connections are refused: it never listens.
    _port: TcpSocket,
}

#[derive(Debug)]
struct Shared {
    /// `None` while new connections are refused.
    listener: Mutex<Option<TcpListener>>,
    connections: AtomicU64,
    losses: Arc<Losses>,
}

impl Proxy {
    /// Starts a proxy in front of `server`, on a free port of loopback.
    ///
    /// # Errors
    ///
    /// If there is no free port.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime, or in one without I/O.
    pub fn start(server: SocketAddr) -> io::Result<Self> {
        let port = socket((Ipv4Addr::LOCALHOST, 0).into())?;
        let addr = port.local_addr()?;
        let shared = Arc::new(Shared {
            listener: Mutex::new(Some(listen(addr)?)),
            connections: AtomicU64::new(0),
            losses: Arc::default(),
        });
        let (lasting, seen) = watch::channel(Lasting::default());
        tokio::spawn(accept(server, shared.clone(), seen));
        Ok(Self { addr, lasting, shared, _port: port })
    }

    /// The address for clients.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The number of accepted connections.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Stops both directions of old and new connections. Sent data waits, as with retransmitted
    /// packets, and arrives once it is healed.
    pub fn black_hole(&self) {
        self.change(|lasting| (lasting.requests_cut, lasting.replies_cut) = (true, true));
    }

    /// Stops data from clients until it is healed.
    pub fn cut_requests(&self) {
        self.change(|lasting| lasting.requests_cut = true);
    }

    /// Stops data from the server until it is healed: requests are executed, and their replies do
    /// not arrive.
    pub fn cut_replies(&self) {
        self.change(|lasting| lasting.replies_cut = true);
    }

    /// Delays data from clients by this time, one piece after the other.
    pub fn delay(&self, delay: Duration) {
        self.change(|lasting| lasting.delay = delay);
    }

    /// Resets all connections; both ends see an error. New ones are accepted.
    pub fn reset(&self) {
        self.change(|lasting| lasting.resets += 1);
    }

    /// Refuses new connections, until it is healed; old ones go on.
    pub fn refuse(&self) {
        *lock(&self.shared.listener) = None;
        self.change(|_| {});
    }

    /// Passes only the first `bytes` of the next reply on any connection; `then` says what that
    /// connection does after it. The future resolves when that has happened, and panics if the proxy is healed or
    /// dropped before; dropping it changes nothing.
    pub fn truncate_next_reply(
        &self,
        bytes: usize,
        then: Then,
    ) -> impl Future<Output = ()> + use<> {
        self.shared.losses.arm(None, bytes, then)
    }

    /// Drops the next reply to a command of this name (`EVALSHA`, case-insensitive) on any
    /// connection; `then` says what that connection does after it. The future is that of
    /// [`truncate_next_reply`](Self::truncate_next_reply).
    pub fn drop_reply_of(&self, name: &str, then: Then) -> impl Future<Output = ()> + use<> {
        self.shared.losses.arm(Some(name), 0, then)
    }

    /// Ends all faults. Connections that lost a part of a reply are reset, since a real connection
    /// could not continue.
    ///
    /// # Panics
    ///
    /// If its port cannot be bound again; or outside of a tokio runtime.
    pub fn heal(&self) {
        self.shared.losses.clear();
        lock(&self.shared.listener)
            .get_or_insert_with(|| listen(self.addr).expect("the port is kept"));
        self.change(|lasting| {
            let Lasting { resets, heals, .. } = *lasting;
            *lasting = Lasting { resets, heals: heals + 1, ..Lasting::default() };
        });
    }

    /// Notifies all tasks of a change.
    fn change(&self, change: impl FnOnce(&mut Lasting)) {
        self.lasting.send_modify(change);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        *lock(&self.shared.listener) = None;
    }
}

/// Accepts connections until the proxy is dropped.
async fn accept(server: SocketAddr, shared: Arc<Shared>, mut lasting: watch::Receiver<Lasting>) {
    loop {
        let accepted = poll_fn(|cx| match &*lock(&shared.listener) {
            Some(listener) => listener.poll_accept(cx),
            // Woken by a change of the faults.
            None => Poll::Pending,
        });
        tokio::select! {
            accepted = accepted => if let Ok((client, _)) = accepted {
                shared.connections.fetch_add(1, Ordering::Relaxed);
                let carrier = Carrier::new(lasting.clone(), shared.losses.clone());
                tokio::spawn(carrier.carry(client, server));
            },
            changed = lasting.changed() => if changed.is_err() {
                return;
            },
        }
    }
}

fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    socket(addr)?.listen(1024)
}

/// Several sockets of this process may share a port; only one of them listens.
fn socket(addr: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind(addr)?;
    Ok(socket)
}
