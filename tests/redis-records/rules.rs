//! Redis keeps every rule for stores.
use crate::world::patient;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tr_idempotency::{
    conformance::{Subject, conformance},
    store::RecordStore,
};
use tr_testkit::redis::{Persistence, Server};

struct OnServer(Mutex<Server>);

impl OnServer {
    fn start() -> Self {
        let server = Server::options().persistence(Persistence::Always).start();
        Self(Mutex::new(server.expect("cargo xtask test installs redis-server")))
    }
}

impl Subject for OnServer {
    fn store(&self) -> Arc<dyn RecordStore> {
        let url = self.0.lock().unwrap().url();
        Arc::new(patient(url).build().unwrap())
    }

    async fn restart(&self) -> bool {
        self.0.lock().unwrap().restart().unwrap();
        true
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Time passes while a busy machine answers, too.
    fn short(&self) -> Duration {
        Duration::from_secs(1)
    }
}

conformance! {
    #[tokio::test]
    async { OnServer::start() }
}
