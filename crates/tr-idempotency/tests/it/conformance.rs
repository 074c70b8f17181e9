//! The store in memory keeps every rule.
use std::{sync::Arc, time::Duration};
use tr_idempotency::{
    conformance::{Subject, conformance},
    store::{Memory, RecordStore},
};

struct InMemory(Memory);

impl Subject for InMemory {
    fn store(&self) -> Arc<dyn RecordStore> {
        Arc::new(self.0.clone())
    }

    async fn with_room_for(&self, records: usize) -> Option<Arc<dyn RecordStore>> {
        Some(Arc::new(Memory::with_capacity(records)))
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

conformance! {
    #[tokio::test(start_paused = true)]
    async { InMemory(Memory::new()) }
}
