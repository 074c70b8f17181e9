//! Real PostgreSQL servers for a test, which starts, kills and restarts them; they end with the
//! test.
//!
//! # When to use
//!
//! In the packages under `tests/`, to test with a real server and its crashes. `postgres` and
//! `initdb` have to be on the `PATH` or in Debian's folder for them; `cargo xtask test` installs
//! them for packages that declare it in their manifest (`[package.metadata.xtask]`, `needs =
//! ["postgres"]`). To fail the network instead of the server, put a
//! [`faults::Proxy`](crate::faults::Proxy) in between (feature `faults`).
//!
//! # Example
//!
//! ```no_run
//! use tr_testkit::postgres::Server;
//!
//! let mut server = Server::start()?;
//! println!("{}", server.url()); // postgresql://postgres@127.0.0.1:…/postgres
//! server.kill(); // Like kill -9.
//! server.restart()?; // At the same address, with all committed data.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A server listens on loopback only, on its own port and in its own folder, without the system's
//! configuration, and trusts all connections. It is killed when it is dropped, and also when the
//! test's process dies in any way. PostgreSQL refuses to run as root; then it runs as the user
//! `postgres`, or as an unprivileged one. These calls block the thread, for about a second when a
//! server starts.

mod start;

pub use self::start::Options;
pub use crate::launch::StartError;

use crate::launch::{Tethered, on_free_port};
use start::Programs;
use std::net::{Ipv4Addr, SocketAddr};
use tempfile::TempDir;

/// A PostgreSQL server for a test, with the superuser `postgres` and the database `postgres`.
pub struct Server {
    programs: Programs,
    /// Ends before its folder goes.
    process: Option<Tethered>,
    /// Its data.
    folder: TempDir,
    options: Options,
    port: u16,
}

impl Options {
    /// Creates a server's folder, starts it, and waits until it accepts connections.
    ///
    /// # Errors
    ///
    /// If there is no `postgres` or `initdb`, or it does not get ready; the error says what to do,
    /// or has the last lines of its log.
    pub fn start(self) -> Result<Server, StartError> {
        let programs = Programs::find()?;
        let folder = start::folder(&programs)?;
        #[cfg(feature = "tls")]
        if let Some(issued) = &self.tls {
            start::give(issued, folder.path(), &programs)?;
        }
        let run = |port| start::run(&programs, folder.path(), &self.parameters, port);
        let (port, process) = on_free_port(run)?;
        Ok(Server { programs, process, folder, options: self, port })
    }
}

impl Server {
    /// Starts a server with the defaults.
    ///
    /// # Errors
    ///
    /// If there is no `postgres` or `initdb`, or it does not get ready; the error says what to do,
    /// or has the last lines of its log.
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

    /// Its URL for clients.
    pub fn url(&self) -> String {
        self.url_at(self.addr())
    }

    /// Its URL with another address, such as a proxy's.
    pub fn url_at(&self, addr: SocketAddr) -> String {
        format!("postgresql://postgres@{addr}/postgres")
    }

    /// Kills it like `kill -9`: its connections break. It keeps its address.
    pub fn kill(&mut self) {
        // The drop kills the process and waits for it.
        self.process = None;
    }

    /// Starts it again at the same address, with all committed data; kills it first if it still
    /// runs.
    ///
    /// # Errors
    ///
    /// If it does not get ready.
    pub fn restart(&mut self) -> Result<(), StartError> {
        self.kill();
        let Self { programs, folder, options, port, .. } = self;
        self.process = Some(start::run(programs, folder.path(), &options.parameters, *port)?);
        Ok(())
    }
}

tr_core::debug_parts! { Server, |it| addr = it.addr(), is_running = it.process.is_some() }
