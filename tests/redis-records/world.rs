//! A server, and a way to it that can be failed.
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tr_idempotency::redis::{Builder, Redis};
use tr_testkit::{
    faults::Proxy,
    redis::{Options, Persistence, Server},
};

/// A reply is overdue after this, where a fault is to be noticed.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(150);

/// A store on a server that answers, however busy the machine is: no reply is overdue.
pub(crate) fn patient(url: impl Into<String>) -> Builder {
    Redis::builder(url).response_timeout(Duration::from_secs(60))
}

pub(crate) struct World {
    server: Mutex<Server>,
    pub(crate) proxy: Proxy,
}

impl World {
    /// A server that writes everything to its disk.
    pub(crate) fn start() -> Self {
        Self::with(Server::options().persistence(Persistence::Always))
    }

    pub(crate) fn with(options: Options) -> Self {
        let server = options.start().expect("`cargo xtask test` installs redis-server");
        let proxy = Proxy::start(server.addr()).unwrap();
        Self { server: Mutex::new(server), proxy }
    }

    pub(crate) fn server(&self) -> MutexGuard<'_, Server> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn builder(&self) -> Builder {
        let url = self.server().url_at(self.proxy.addr());
        Redis::builder(url).response_timeout(TIMEOUT).forgetting_on_restart()
    }

    /// Another process.
    pub(crate) fn process(&self) -> Redis {
        self.builder().build().unwrap()
    }

    pub(crate) fn command<const N: usize>(&self, args: [&str; N]) -> String {
        self.server().command(args).unwrap().to_string()
    }
}
