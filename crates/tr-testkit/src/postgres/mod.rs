//! Real PostgreSQL servers of a test's own: started, killed and restarted by it, gone with it.
//!
//! # When to use
//!
//! In the packages under `tests/`, for whatever has to hold with a real server and its crashes. `postgres` and
//! `initdb` have to be on the `PATH` or where Debian puts them; `cargo xtask test` sees to that for packages that ask
//! for it in their manifest (`[package.metadata.xtask]`, `needs = ["postgres"]`). To fail the network instead of the
//! server, put a [`faults::Proxy`](crate::faults::Proxy) in between (feature `faults`).
//!
//! # Example
//!
//! ```no_run
//! use tr_testkit::postgres::Server;
//!
//! let mut server = Server::start()?;
//! println!("{}", server.url()); // postgresql://postgres@127.0.0.1:…/postgres
//! server.kill(); // As kill -9 does.
//! server.restart()?; // At the same address, with all that was committed.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A server listens on loopback only, on a port and in a folder of its own, without any configuration of the
//! system, and trusts whoever connects. It is killed when dropped, and also when the test's process dies in whatever
//! way. Root, whom PostgreSQL refuses, runs it as the user `postgres`, else `nobody`. All of this blocks the thread,
//! for about a second where a server starts.

mod start;

pub use crate::launch::StartError;

use crate::launch::{Folder, Tethered};
#[cfg(feature = "tls")]
use crate::tls::Issued;
use start::Programs;
use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
};

/// A PostgreSQL server of one's own, with the superuser `postgres` and the database `postgres`.
pub struct Server {
    programs: Programs,
    /// Its data.
    folder: Folder,
    options: Options,
    port: u16,
    process: Option<Tethered>,
}

/// What a server is like. Without options: what it has committed outlives its process, not the machine.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Options {
    /// Parameters of `postgresql.conf`, each with its value.
    parameters: Vec<(String, String)>,
    #[cfg(feature = "tls")]
    tls: Option<Issued>,
}

impl Options {
    /// A parameter of `postgresql.conf`, for example `("max_connections", "5")`.
    ///
    /// Before it, `fsync` is off: a kill of the process alone loses nothing that was committed, and tests are fast.
    pub fn set(mut self, parameter: &str, value: &str) -> Self {
        self.parameters.push((parameter.to_owned(), value.to_owned()));
        self
    }

    /// Talks TLS with whoever asks for it, and shows this certificate; without TLS with others.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, issued: Issued) -> Self {
        self.tls = Some(issued);
        let files = [
            ("ssl_cert_file", "tls.crt"),
            ("ssl_key_file", "tls.key"),
            ("ssl_ca_file", "tls-authority.crt"),
        ];
        // Beside its data.
        files.into_iter().fold(self.set("ssl", "on"), |this, (name, file)| this.set(name, file))
    }

    /// Makes a server's folder, starts it, and waits until it takes connections.
    ///
    /// # Errors
    ///
    /// There is no `postgres` or `initdb`, or it does not get ready; the error says what to do, or what it said last.
    pub fn start(self) -> Result<Server, StartError> {
        start::new(self)
    }
}

impl Server {
    /// Starts one as it is by default.
    ///
    /// # Errors
    ///
    /// There is no `postgres` or `initdb`, or it does not get ready; the error says what to do, or what it said last.
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

    /// Its address as clients take it.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_at(self.addr())
    }

    /// The same for another way to it, such as a proxy's address.
    #[must_use]
    pub fn url_at(&self, addr: SocketAddr) -> String {
        format!("postgresql://postgres@{addr}/postgres")
    }

    /// Kills it, as `kill -9` does: its connections break. Its address stays its own.
    pub fn kill(&mut self) {
        // Dropped, it is killed and waited for.
        self.process = None;
    }

    /// Starts it again at the same address, with all that it has committed; kills it first if it still runs.
    ///
    /// # Errors
    ///
    /// It does not get ready.
    pub fn restart(&mut self) -> Result<(), StartError> {
        self.kill();
        let Self { programs, folder, options, port, .. } = self;
        self.process = Some(start::run(programs, folder.path(), &options.parameters, *port)?);
        Ok(())
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
