//! Options of a test Redis server, and the arguments of `redis-server` made from them (`start.rs`).

#[cfg(feature = "tls")]
use crate::tls::Issued;
use std::iter;
use tr_core::setters;

/// The options of a test Redis server. By default: no persistence, unbounded memory, no password, a primary.
#[derive(Clone, Default)]
#[must_use]
pub struct Options {
    pub(super) persistence: Persistence,
    pub(super) password: Option<String>,
    /// Port and password of the primary; set in `redis.rs`.
    pub(super) replica_of: Option<(u16, Option<String>)>,
    pub(super) is_sentinel: bool,
    /// Directives of `redis.conf`, each with its values.
    pub(super) directives: Vec<Vec<String>>,
    #[cfg(feature = "tls")]
    pub(super) tls: Option<Issued>,
}

/// What survives a kill of the process or a failure of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Persistence {
    /// Nothing.
    #[default]
    None,
    /// All confirmed writes survive a kill; a failure of the machine may lose about the last second
    /// (`appendfsync everysec`).
    EverySecond,
    /// All confirmed writes survive both (`appendfsync always`).
    Always,
}

impl Options {
    setters! {
        /// Sets what survives a crash.
        fn persistence(persistence: Persistence) { persistence = persistence }

        /// Sets a password, of letters and digits only, so that it needs no escaping in an address.
        fn password(password: &str) { password = Some(password.to_owned()) }

        /// Uses TLS only, with this certificate. Clients need none, unless `("tls-auth-clients",
        /// ["yes"])` is set.
        #[cfg(feature = "tls")]
        fn tls(issued: Issued) { tls = Some(issued) }

        /// Makes it a sentinel: it watches what the directives `sentinel` tell it, such as
        /// `("sentinel", ["monitor", "records", "127.0.0.1", "6379", "2"])`.
        fn sentinel() { is_sentinel = true }

        /// Sets any other directive of `redis.conf`, for example `("maxclients", ["3"])`.
        fn set(directive: &str, values: impl IntoIterator<Item = impl Into<String>>) {
            directives.push(iter::once(directive.to_owned()).chain(values.into_iter().map(Into::into)).collect())
        }
    }

    /// Limits the memory, in bytes, and sets the eviction policy: `noeviction`, `allkeys-lru`, …
    pub fn max_memory(self, bytes: u64, policy: &str) -> Self {
        self.set("maxmemory", [bytes.to_string()]).set("maxmemory-policy", [policy])
    }

    /// Whether it uses TLS only.
    #[cfg(feature = "tls")]
    pub(super) const fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether it uses TLS only.
    #[cfg(not(feature = "tls"))]
    pub(super) const fn is_tls(&self) -> bool {
        false
    }

    /// The arguments for `redis-server`.
    pub(super) fn args(&self, folder: &str, socket: &str, port: u16) -> Vec<String> {
        let (appends, syncs) = match self.persistence {
            Persistence::None => ("no", "no"),
            Persistence::EverySecond => ("yes", "everysec"),
            Persistence::Always => ("yes", "always"),
        };
        let port = port.to_string();
        let mut args: Vec<String> = [
            ["--bind", "127.0.0.1"],
            ["--port", if self.is_tls() { "0" } else { &port }],
            ["--unixsocket", socket],
            ["--dir", folder],
            ["--daemonize", "no"],
            ["--save", ""],
            ["--appendonly", appends],
            ["--appendfsync", syncs],
            // `DEBUG POPULATE` fills a server in one command.
            ["--enable-debug-command", "local"],
            // A replica is synced at once; the primary does not wait for others to join.
            ["--repl-diskless-sync-delay", "0"],
        ]
        .concat()
        .into_iter()
        .map(Into::into)
        .collect();
        if let Some(password) = &self.password {
            args.extend(["--requirepass".into(), password.clone()]);
        }
        if let Some((primary, password)) = &self.replica_of {
            args.extend(["--replicaof".into(), "127.0.0.1".into(), primary.to_string()]);
            if let Some(password) = password {
                args.extend(["--masterauth".into(), password.clone()]);
            }
        }
        if self.is_tls() {
            // `start::start` has written them there.
            let files = ["tls.crt", "tls.key", "tls-authority.crt"];
            let [certificate, key, authority] = files.map(|file| format!("{folder}/{file}"));
            args.extend(["--tls-port".into(), port, "--tls-auth-clients".into(), "no".into()]);
            args.extend(["--tls-cert-file".into(), certificate, "--tls-key-file".into(), key]);
            args.extend(["--tls-ca-cert-file".into(), authority]);
        }
        for directive in &self.directives {
            args.push(format!("--{}", directive[0]));
            args.extend_from_slice(&directive[1..]);
        }
        args
    }
}

// Without the passwords.
tr_core::debug_parts! { Options, |it|
    persistence = it.persistence, has_password = it.password.is_some(),
    replica_of = it.replica_of.as_ref().map(|(port, _)| port), directives = it.directives,
}
