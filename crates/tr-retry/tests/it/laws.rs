//! The laws of `Service`, plain and with all that a layer can share.
use crate::common::Heard;
use tower::Layer;
use tr_core::{
    Classification, CloneRequest, Effect, End, KeyRef, Ran, RequestPolicy, ResponsePolicy, Verdict,
};
use tr_retry::{Budget, RetryConfig, RetryLayer};
use tr_testkit::laws::Laws;

/// Requests are numbers, and so are responses; every error is transient.
#[derive(Clone, Copy)]
struct Numbers;

impl RequestPolicy<u64> for Numbers {
    fn key<'r>(&self, _: &'r u64) -> KeyRef<'r> {
        KeyRef::new("square")
    }

    fn effect(&self, _: &u64) -> Effect {
        Effect::ReadOnly
    }
}

impl CloneRequest<u64> for Numbers {
    fn clone_request(&self, n: &u64) -> Option<u64> {
        Some(*n)
    }
}

impl ResponsePolicy<u64> for Numbers {
    fn classify<'r>(&self, end: End<'r, u64>) -> Classification<'r> {
        match end {
            Ok(_) => Classification::SUCCESS,
            Err(_) => Classification::new(Verdict::TRANSIENT, Ran::Unknown, "down"),
        }
    }
}

#[test]
fn every_preset_keeps_the_laws() {
    for config in [RetryConfig::default(), RetryConfig::fixed_cadence(), RetryConfig::per_request()]
    {
        let layer = RetryLayer::builder().config(config).policy(Numbers).build().unwrap();
        Laws::new(|n| n, |n: &u64| n * n).check(|tool| layer.layer(tool));
    }
}

#[test]
fn with_budget_observer_and_seed_it_keeps_the_laws() {
    let budget = Budget::builder().capacity(2).build().unwrap();
    let builder = RetryLayer::builder().budget(budget).observer(Heard::new()).seed(3);
    let layer = builder.policy(Numbers).build().unwrap();
    Laws::new(|n| n, |n: &u64| n * n).check(|tool| layer.layer(tool));
}
