//! Real Redis servers for a test, which starts, kills, pauses and restarts them; they end with the
//! test.
//!
//! # When to use
//!
//! In the packages under `tests/`, to test with a real server: crashes, pauses, replicas, full
//! memory. `redis-server` has to be on the `PATH`; `cargo xtask test` installs it for packages that
//! declare it in their manifest (`[package.metadata.xtask]`, `needs = ["redis-server"]`). To fail
//! the network instead of the server, put a [`faults::Proxy`](crate::faults::Proxy) in between
//! (feature `faults`).
//!
//! # Example
//!
//! ```no_run
//! use tr_testkit::redis::{Persistence, Server};
//!
//! let mut server = Server::options().persistence(Persistence::Always).start()?;
//! server.command(["SET", "claim", "7"])?;
//! server.kill(); // Like kill -9.
//! server.restart()?; // At the same address, with the data on its disk.
//! assert_eq!(server.command(["GET", "claim"])?.text(), Some("7"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A server listens on loopback only, on its own port and in its own folder, without the system's
//! configuration. It is killed when it is dropped, and also when the test's process dies in any
//! way. These calls block the thread, for about ten milliseconds when a server starts: in an async
//! test, no other task of that thread runs meanwhile.

mod command;
mod options;
mod start;

pub use self::options::{Options, Persistence};
pub use crate::{launch::StartError, resp::Value};

use crate::launch::{self, Tethered, on_free_port};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};
use tempfile::TempDir;
use tr_core::setters;

/// A Redis server for a test.
pub struct Server {
    options: Options,
    program: PathBuf,
    /// Ends before its folder goes.
    process: Option<Tethered>,
    /// Its data, and its own socket.
    folder: TempDir,
    port: u16,
}

impl Options {
    setters! {
        /// Makes it a replica; it is ready once it is in sync with its primary.
        fn replica_of(primary: &Server) { replica_of = Some((primary.port, primary.options.password.clone())) }
    }

    /// Starts a server and waits until it replies.
    ///
    /// # Errors
    ///
    /// If there is no `redis-server`, or it does not get ready.
    pub fn start(self) -> Result<Server, StartError> {
        let (program, folder) = (start::program()?, launch::folder("redis")?);
        let start = |port| start::start(&self, &program, folder.path(), port);
        let (port, process) = on_free_port(start)?;
        Ok(Server { options: self, program, process, folder, port })
    }
}

impl Server {
    /// Starts a server with the defaults: no persistence, unbounded memory, no password.
    ///
    /// # Errors
    ///
    /// If there is no `redis-server`, or it does not get ready; the error says what to do, or has
    /// the server's log.
    pub fn start() -> Result<Self, StartError> {
        Self::options().start()
    }

    /// Starts from the defaults.
    pub fn options() -> Options {
        Options::default()
    }

    /// The address that it listens on.
    pub fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Its URL for clients, with the password if it has one.
    pub fn url(&self) -> String {
        self.url_at(self.addr())
    }

    /// Its URL with another address, such as a proxy's.
    pub fn url_at(&self, addr: SocketAddr) -> String {
        let scheme = if self.options.is_tls() { "rediss" } else { "redis" };
        match &self.options.password {
            Some(password) => format!("{scheme}://:{password}@{addr}/"),
            None => format!("{scheme}://{addr}/"),
        }
    }

    /// Sends one command directly to the server and returns the reply; each time on a new
    /// connection.
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
    /// If the server does not run, is paused (after 30 s), or replies with an error, whose text is
    /// that of the error.
    pub fn command<S: AsRef<[u8]>>(&self, args: impl IntoIterator<Item = S>) -> io::Result<Value> {
        let args: Vec<S> = args.into_iter().collect();
        command::ask(&self.socket(), self.options.password.as_deref(), &args)
    }

    /// Kills it like `kill -9`. It keeps its address.
    pub fn kill(&mut self) {
        // The drop kills the process and waits for it.
        self.process = None;
    }

    /// Starts it again at the same address with the data on its disk; kills it first if it still
    /// runs.
    ///
    /// # Errors
    ///
    /// If it does not get ready.
    pub fn restart(&mut self) -> Result<(), StartError> {
        self.kill();
        self.process =
            Some(start::start(&self.options, &self.program, self.folder.path(), self.port)?);
        Ok(())
    }

    /// Like [`restart`](Self::restart), with an empty disk.
    ///
    /// # Errors
    ///
    /// If it does not get ready, or its folder cannot be emptied.
    pub fn restart_empty(&mut self) -> Result<(), StartError> {
        self.kill();
        self.folder = launch::folder("redis")?;
        self.restart()
    }

    /// Stops it (`SIGSTOP`): connections stay, and it does not reply.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Resumes it after [`pause`](Self::pause): it replies to requests sent meanwhile.
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

tr_core::debug_parts! { Server, |it| addr = it.addr(), is_running = it.process.is_some() }
