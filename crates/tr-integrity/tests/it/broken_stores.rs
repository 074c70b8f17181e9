//! Each mistake that a store may make is found by the case that is about it.
mod broken;
mod mistake;

use broken::Broken;
use mistake::{ALL, Mistake};
use std::sync::Arc;
use tr_integrity::{
    conformance::{self, Subject},
    store::SessionStore,
};

struct Examined(Broken);

impl Subject for Examined {
    fn store(&self) -> Arc<dyn SessionStore> {
        Arc::new(self.0.client())
    }

    async fn restart(&self) -> bool {
        self.0.crash();
        true
    }
}

/// What is wrong with a store that makes this mistake.
async fn findings(mistake: Mistake) -> Vec<&'static str> {
    let end = conformance::check(async || Examined(Broken::new(mistake))).await;
    end.err()
        .map_or_else(Vec::new, |found| found.iter().map(conformance::Violation::case).collect())
}

#[tokio::test]
async fn a_store_without_mistakes_passes() {
    assert_eq!(findings(Mistake::Sound).await, Vec::<&str>::new());
}

#[tokio::test]
async fn every_mistake_is_found() {
    for &mistake in ALL {
        let found = findings(mistake).await;
        assert!(!found.is_empty(), "{mistake:?} is not found");
        println!("{mistake:?}: {}", found.join(", "));
    }
}
