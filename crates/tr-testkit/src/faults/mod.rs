//! A TCP proxy between a client and a server that fails the way between them, when and how a test says.
//!
//! # When to use
//!
//! With a real client and a real server, to see what a bad network does to them: nothing arrives, only the reply
//! is lost, connections are reset or refused, everything is late. To fail the server itself, kill or pause it.
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
//! # What it can do
//!
//! | fault | lasts | the ends see |
//! |---|---|---|
//! | [`black_hole`](Proxy::black_hole) | until [healed](Proxy::heal) | silence; what was sent arrives after it |
//! | [`cut_requests`](Proxy::cut_requests), [`cut_replies`](Proxy::cut_replies) | until healed | the same, one way |
//! | [`delay`](Proxy::delay) | until healed | each request arrives later |
//! | [`refuse`](Proxy::refuse) | until healed | new connections are refused |
//! | [`reset`](Proxy::reset) | a moment | connections are reset |
//! | [`truncate_next_reply`](Proxy::truncate_next_reply) | one reply | the beginning of it, then the loss |
//! | [`drop_reply_of`](Proxy::drop_reply_of) | one reply | the command was done, its reply never comes |
//!
//! A reply is a frame of Redis's protocol; where a server speaks another one, it is whatever arrives from it at
//! once, and no command has a name. Each command counts for one reply, so names fit where a connection does
//! nothing else: not where it subscribes in the second version of that protocol.
//!
//! Real time passes here: don't pause tokio's clock in such a test.

mod carry;
mod frames;
mod loss;

pub use self::loss::{Fired, Then};

use self::{carry::Carrier, loss::Losses};
use std::{
    future::poll_fn,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::watch,
};

/// A proxy on loopback in front of one server; faults begin with the call that asks for them. Dropped, it closes
/// all its connections.
#[derive(Debug)]
pub struct Proxy {
    addr: SocketAddr,
    weather: watch::Sender<Weather>,
    shared: Arc<Shared>,
    /// Keeps the port ours while new connections are refused: it never listens.
    _port: TcpSocket,
}

/// What lasts.
#[derive(Clone, Copy, Debug, Default)]
struct Weather {
    requests_cut: bool,
    replies_cut: bool,
    delay: Duration,
    /// How often connections were reset.
    resets: u64,
    /// How often it was healed: those that lost bytes are reset then.
    heals: u64,
}

#[derive(Debug)]
struct Shared {
    /// None while new connections are refused.
    listener: Mutex<Option<TcpListener>>,
    connections: AtomicU64,
    losses: Losses,
}

impl Proxy {
    /// Starts a proxy in front of `server`, on a free port of loopback.
    ///
    /// # Errors
    ///
    /// No port can be had.
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
            losses: Losses::default(),
        });
        let (weather, seen) = watch::channel(Weather::default());
        tokio::spawn(accept(server, shared.clone(), seen));
        Ok(Self { addr, weather, shared, _port: port })
    }

    /// Where clients connect to.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// How many connections were accepted so far.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Nothing arrives, either way, on old and new connections. What is sent waits, as it does where packets are
    /// sent again, and arrives once it is healed.
    pub fn black_hole(&self) {
        self.change(|weather| (weather.requests_cut, weather.replies_cut) = (true, true));
    }

    /// What clients send does not arrive, until it is healed.
    pub fn cut_requests(&self) {
        self.change(|weather| weather.requests_cut = true);
    }

    /// What the server sends does not arrive, until it is healed: requests are done, and nobody hears of it.
    pub fn cut_replies(&self) {
        self.change(|weather| weather.replies_cut = true);
    }

    /// What clients send arrives so much later, one piece after the other.
    pub fn delay(&self, delay: Duration) {
        self.change(|weather| weather.delay = delay);
    }

    /// Resets all connections; both ends see an error. New ones are accepted.
    pub fn reset(&self) {
        self.change(|weather| weather.resets += 1);
    }

    /// Refuses new connections, until it is healed; old ones go on.
    pub fn refuse(&self) {
        *self.listener() = None;
        self.change(|_| {});
    }

    /// Passes only the first `bytes` of the next reply, on whichever connection it comes; `then` says what that
    /// connection does after that.
    pub fn truncate_next_reply(&self, bytes: usize, then: Then) -> Fired {
        self.shared.losses.arm(None, bytes, then)
    }

    /// Drops the next reply to a command of this name (`EVALSHA`, in any case), on whichever connection it comes;
    /// `then` says what that connection does after that.
    pub fn drop_reply_of(&self, name: &str, then: Then) -> Fired {
        self.shared.losses.arm(Some(name), 0, then)
    }

    /// Ends all faults. Connections that lost a part of a reply are reset: no real one goes on after that.
    ///
    /// # Panics
    ///
    /// Nobody may listen on its port any more; or outside of a tokio runtime.
    pub fn heal(&self) {
        self.shared.losses.clear();
        self.listener().get_or_insert_with(|| listen(self.addr).expect("the port is kept"));
        self.change(|weather| {
            let Weather { resets, heals, .. } = *weather;
            *weather = Weather { resets, heals: heals + 1, ..Weather::default() };
        });
    }

    /// Tells all tasks, also of what is not in the weather.
    fn change(&self, change: impl FnOnce(&mut Weather)) {
        self.weather.send_modify(change);
    }

    fn listener(&self) -> MutexGuard<'_, Option<TcpListener>> {
        self.shared.listener()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        *self.listener() = None;
    }
}

impl Shared {
    fn listener(&self) -> MutexGuard<'_, Option<TcpListener>> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Accepts connections until the proxy is dropped.
async fn accept(server: SocketAddr, shared: Arc<Shared>, mut weather: watch::Receiver<Weather>) {
    loop {
        let accepted = poll_fn(|cx| match &*shared.listener() {
            Some(listener) => listener.poll_accept(cx),
            // Woken by the change of weather.
            None => Poll::Pending,
        });
        tokio::select! {
            accepted = accepted => if let Ok((client, _)) = accepted {
                shared.connections.fetch_add(1, Ordering::Relaxed);
                let carrier = Carrier::new(weather.clone(), shared.clone());
                tokio::spawn(carrier.carry(client, server));
            },
            changed = weather.changed() => if changed.is_err() {
                return;
            },
        }
    }
}

fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    socket(addr)?.listen(1024)
}

/// Several of ours may share a port; only one of them listens.
fn socket(addr: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind(addr)?;
    Ok(socket)
}
