//! Sentinels that watch a primary and promote a replica.

use super::{Server, command, start};
use crate::{
    launch::{Folder, StartError, Tethered, free_port, wait},
    resp::Value,
};
use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr},
    sync::mpsc::Receiver,
};

/// How long a server is silent before a sentinel considers it down.
const DOWN_AFTER_MS: u32 = 2_000;

/// The timeout of a failover.
const FAILOVER_MS: u32 = 6_000;

/// Sentinels for a test, which watch one primary and its replicas; killed when dropped.
#[derive(Debug)]
pub struct Sentinels {
    name: String,
    is_tls: bool,
    all: Vec<Sentinel>,
}

#[derive(Debug)]
struct Sentinel {
    folder: Folder,
    port: u16,
    _process: Tethered,
}

impl Sentinels {
    /// Starts this many sentinels, which know the primary by this name, and waits until they know
    /// one another and its replicas. A majority decides that it is down, after two seconds. If the
    /// primary uses TLS, so do they, with its certificate.
    ///
    /// ```no_run
    /// use tr_testkit::redis::{Sentinels, Server};
    ///
    /// let mut primary = Server::start()?;
    /// let replica = Server::options().replica_of(&primary).start()?;
    /// let sentinels = Sentinels::watch("records", &primary, 3)?;
    /// primary.kill();
    /// while sentinels.primary()? != Some(replica.addr()) {}
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If there is no `redis-server`, or they do not get ready.
    pub fn watch(name: &str, primary: &Server, count: usize) -> Result<Self, StartError> {
        let all = (0..count).map(|_| Sentinel::start(name, primary, count / 2 + 1));
        let (all, lines): (_, Vec<_>) = all.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let this = Self { name: name.to_owned(), is_tls: primary.options.is_tls(), all };
        let replicas = primary.command(["INFO", "replication"]).ok();
        let replicas = replicas.as_ref().and_then(|info| {
            info.text()?.lines().find_map(|line| line.strip_prefix("connected_slaves:"))
        });
        let faults = ("a sentinel ended", "the sentinels did not find one another");
        let know_all = || this.all.iter().all(|one| one.knows(name, replicas, count - 1));
        wait(&lines, faults, |_| know_all())?;
        Ok(this)
    }

    /// Their URLs for clients.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        let addr = |one: &Sentinel| SocketAddr::from((Ipv4Addr::LOCALHOST, one.port));
        let scheme = if self.is_tls { "rediss" } else { "redis" };
        self.all.iter().map(|one| format!("{scheme}://{}/", addr(one))).collect()
    }

    /// The primary by the first of them.
    ///
    /// # Errors
    ///
    /// If it does not reply.
    pub fn primary(&self) -> io::Result<Option<SocketAddr>> {
        let asked = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", &self.name];
        let Value::List(parts) = self.all[0].command(asked)? else { return Ok(None) };
        let parts: Vec<_> = parts.iter().filter_map(Value::text).collect();
        Ok(parts.join(":").parse().ok())
    }
}

impl Sentinel {
    /// With the lines that it writes.
    fn start(
        name: &str,
        primary: &Server,
        quorum: usize,
    ) -> Result<(Self, Receiver<String>), StartError> {
        let program = start::program()?;
        let folder = Folder::new("sentinel")?;
        let (home, port) = (folder.path(), free_port());
        let socket = start::socket(home);
        let ports = if primary.options.is_tls() {
            // It uses its primary's certificate, too.
            let files = primary.folder.path().display();
            format!(
                "port 0\ntls-port {port}\ntls-replication yes\ntls-auth-clients no\n\
                 tls-cert-file {files}/tls.crt\ntls-key-file {files}/tls.key\n\
                 tls-ca-cert-file {files}/tls-authority.crt"
            )
        } else {
            format!("port {port}")
        };
        let mut settings = format!(
            "bind 127.0.0.1\n{ports}\ndir {}\nunixsocket {}\n\
             sentinel monitor {name} 127.0.0.1 {} {quorum}\n\
             sentinel down-after-milliseconds {name} {DOWN_AFTER_MS}\n\
             sentinel failover-timeout {name} {FAILOVER_MS}\n",
            home.display(),
            socket.display(),
            primary.port
        );
        if let Some(password) = &primary.options.password {
            settings += &format!("sentinel auth-pass {name} {password}\n");
        }
        // The sentinel rewrites this file.
        let file = home.join("sentinel.conf");
        fs::write(&file, settings).map_err(|error| StartError::folder(&file, &error))?;
        let args = [file.to_string_lossy().into_owned(), "--sentinel".into()];
        let (process, lines) = Tethered::start(&program, &args, None)?;
        Ok((Self { folder, port, _process: process }, lines))
    }

    fn command<S: AsRef<[u8]>>(&self, args: impl IntoIterator<Item = S>) -> io::Result<Value> {
        let args: Vec<S> = args.into_iter().collect();
        command::ask(&start::socket(self.folder.path()), None, &args)
    }

    /// Whether it knows this many replicas and other sentinels.
    fn knows(&self, name: &str, replicas: Option<&str>, others: usize) -> bool {
        let Ok(Value::List(parts)) = self.command(["SENTINEL", "MASTER", name]) else {
            return false;
        };
        let parts: Vec<_> = parts.iter().filter_map(Value::text).collect();
        let field = |name: &str| {
            parts.chunks(2).find(|pair| pair[0] == name).and_then(|pair| pair.get(1).copied())
        };
        field("num-slaves") == replicas
            && field("num-other-sentinels") == Some(&*others.to_string())
    }
}
