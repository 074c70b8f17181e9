//! Each mistake that a store may make is found by the case that is about it.
mod broken;
mod mistake;

use broken::Broken;
use mistake::{ALL, Mistake};
use std::{sync::Arc, time::Duration};
use tr_idempotency::{
    conformance::{self, Subject},
    store::{Memory, RecordStore},
};

struct Examined(Broken);

impl Subject for Examined {
    fn store(&self) -> Arc<dyn RecordStore> {
        Arc::new(self.0.clone())
    }

    async fn with_room_for(&self, records: usize) -> Option<Arc<dyn RecordStore>> {
        Some(Arc::new(Broken::new(Memory::with_capacity(records), self.0.mistake)))
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

/// What is wrong with a store that makes this mistake.
async fn findings(mistake: Mistake) -> Vec<&'static str> {
    let end = conformance::check(async || Examined(Broken::new(Memory::new(), mistake))).await;
    end.err()
        .map_or_else(Vec::new, |found| found.iter().map(conformance::Violation::case).collect())
}

#[tokio::test(start_paused = true)]
async fn a_store_without_mistakes_passes() {
    assert_eq!(findings(Mistake::Sound).await, Vec::<&str>::new());
}

#[tokio::test(start_paused = true)]
async fn every_mistake_is_found() {
    for &mistake in ALL {
        let found = findings(mistake).await;
        assert!(!found.is_empty(), "{mistake:?} is not found");
        println!("{mistake:?}: {}", found.join(", "));
    }
}
