//! Real Redis servers of a test's own: started, killed, paused and restarted by it, gone with it.
//!
//! # When to use
//!
//! In the packages under `tests/`, for whatever has to hold with a real server: a memory of its own, crashes,
//! pauses, replicas. `redis-server` has to be on the `PATH`; `cargo xtask test` sees to that for packages that
//! ask for it in their manifest (`[package.metadata.xtask]`, `needs = ["redis-server"]`). To fail the network
//! instead of the server, put a [`faults::Proxy`](crate::faults::Proxy) in between (feature `faults`).
//!
//! # Example
//!
//! ```no_run
//! use tr_testkit::redis::{Persistence, Server};
//!
//! let mut server = Server::options().persistence(Persistence::Always).start()?;
//! server.command(["SET", "claim", "7"])?;
//! server.kill(); // As kill -9 does.
//! server.restart()?; // At the same address, with what the disk has kept.
//! assert_eq!(server.command(["GET", "claim"])?.text(), Some("7"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A server listens on loopback only, on a port and in a folder of its own, without any configuration of the
//! system. It is killed when dropped, and also when the test's process dies in whatever way. All of this blocks
//! the thread, for some ten milliseconds where a server starts: in an async test, nothing else of that thread
//! goes on meanwhile.

mod client;
mod options;
mod sentinel;
mod start;
mod value;

pub use self::{
    options::{Options, Persistence},
    sentinel::Sentinels,
    value::Value,
};
pub use crate::launch::StartError;

use crate::launch::{Folder, Tethered};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

/// A Redis server of one's own.
pub struct Server {
    options: Options,
    program: PathBuf,
    /// Its data, and the socket that is surely this server's.
    folder: Folder,
    port: u16,
    process: Option<Tethered>,
}

impl Server {
    /// Starts one as it is by default: nothing is kept on disk, memory is not bounded, no password.
    ///
    /// # Errors
    ///
    /// There is no `redis-server`, or it does not get ready; the error says what to do, or what the server said.
    pub fn start() -> Result<Self, StartError> {
        Self::options().start()
    }

    /// Starts from the defaults.
    pub fn options() -> Options {
        Options::default()
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Its address as clients take it, with the password if it has one.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_at(self.addr())
    }

    /// The same for another way to it, such as a proxy's address.
    #[must_use]
    pub fn url_at(&self, addr: SocketAddr) -> String {
        let scheme = if self.options.is_tls() { "rediss" } else { "redis" };
        match &self.options.password {
            Some(password) => format!("{scheme}://:{password}@{addr}/"),
            None => format!("{scheme}://{addr}/"),
        }
    }

    /// Sends one command, past any proxy, and returns the reply; each time on a connection of its own.
    ///
    /// ```no_run
    /// # let server = tr_testkit::redis::Server::start()?;
    /// assert_eq!(server.command(["INCR", "calls"])?.int(), Some(1));
    /// let refused = server.command(["LPUSH", "calls", "x"]).unwrap_err();
    /// assert!(refused.to_string().starts_with("WRONGTYPE"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The server is not there or paused (after 5 s), or its reply is an error: then that is the error's text.
    pub fn command<S: AsRef<[u8]>>(&self, args: impl IntoIterator<Item = S>) -> io::Result<Value> {
        let args: Vec<S> = args.into_iter().collect();
        client::ask(&self.socket(), self.options.password.as_deref(), &args)
    }

    /// Kills it, as `kill -9` does. Its address stays its own.
    pub fn kill(&mut self) {
        // Dropped, it is killed and waited for.
        self.process = None;
    }

    /// Starts it again at the same address with what its disk has kept; kills it first if it still runs.
    ///
    /// # Errors
    ///
    /// It does not get ready.
    pub fn restart(&mut self) -> Result<(), StartError> {
        self.kill();
        self.process =
            Some(start::start(&self.options, &self.program, self.folder.path(), self.port)?);
        Ok(())
    }

    /// The same with nothing on its disk.
    ///
    /// # Errors
    ///
    /// It does not get ready, or its folder cannot be emptied.
    pub fn restart_empty(&mut self) -> Result<(), StartError> {
        self.kill();
        self.folder.empty()?;
        self.restart()
    }

    /// Stops it where it is (`SIGSTOP`): connections stay, nothing is answered.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on after [`pause`](Self::pause): it answers what was asked meanwhile.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let id = self.process.as_ref().and_then(|process| i32::try_from(process.id()).ok());
        if let Some(pid) = id.and_then(Pid::from_raw) {
            kill_process(pid, signal).expect("it is a process of ours, not yet waited for");
        }
    }

    fn socket(&self) -> PathBuf {
        start::socket(self.folder.path())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Before its folder goes.
        self.kill();
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("addr", &self.addr())
            .field("is_running", &self.process.is_some())
            .finish_non_exhaustive()
    }
}
