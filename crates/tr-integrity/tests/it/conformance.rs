//! The store in memory keeps the rules for stores.
use std::sync::Arc;
use tr_integrity::{
    conformance::{Subject, conformance},
    store::{Memory, SessionStore},
};

struct InMemory(Memory);

impl Subject for InMemory {
    fn store(&self) -> Arc<dyn SessionStore> {
        Arc::new(self.0.clone())
    }

    /// What is kept is what outlives the client.
    async fn restart(&self) -> bool {
        true
    }
}

conformance! {
    #[tokio::test]
    async { InMemory(Memory::new()) }
}
