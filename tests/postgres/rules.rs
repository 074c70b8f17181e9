//! PostgreSQL keeps every rule for stores of sessions.
use std::sync::{Arc, Mutex};
use tr_integrity::{
    conformance::{Subject, check},
    postgres::Postgres,
    store::SessionStore,
};
use tr_testkit::postgres::Server;

/// One server for all cases: their sessions are their own.
struct OnServer<'s>(&'s Mutex<Server>);

impl Subject for OnServer<'_> {
    fn store(&self) -> Arc<dyn SessionStore> {
        Arc::new(Postgres::builder(self.0.lock().unwrap().url()).build().unwrap())
    }

    async fn restart(&self) -> bool {
        self.0.lock().unwrap().restart().unwrap();
        true
    }
}

#[tokio::test]
async fn every_rule_for_stores_is_kept() {
    let server = Mutex::new(Server::start().unwrap());
    check(async || OnServer(&server)).await.unwrap_or_else(|violations| panic!("{violations}"));
}
