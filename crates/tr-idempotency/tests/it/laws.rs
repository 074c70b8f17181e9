//! The contract laws of `Service`.
use tower_layer::Layer;
use tr_core::{DedupeMode, Params, ToolCall, ToolOutcome};
use tr_idempotency::{DerivedKeys, IdempotencyLayer, store::Memory};
use tr_testkit::laws::Laws;

fn request(n: u64) -> ToolCall {
    let params = Params::from_value(&serde_json::json!({ "n": n })).unwrap();
    ToolCall::new("pay", params).session("s")
}

/// Outcomes have no equality of their own.
#[derive(Clone, Debug)]
struct Outcome(ToolOutcome);

impl PartialEq for Outcome {
    fn eq(&self, other: &Self) -> bool {
        self.0.content() == other.0.content() && self.0.error() == other.0.error()
    }
}

mod answers {
    use super::Outcome;
    use tr_core::{
        Classification, DefaultPolicy, End, Replay, ResponsePolicy, StoreResponse, ToolOutcome,
    };

    impl ResponsePolicy<Outcome> for DefaultPolicy {
        fn classify<'r>(&self, end: End<'r, Outcome>) -> Classification<'r> {
            self.classify(end.map(|outcome| &outcome.0))
        }
    }

    impl StoreResponse<Outcome> for DefaultPolicy {
        type Stored = ToolOutcome;

        fn store(&self, res: &Outcome) -> Option<ToolOutcome> {
            self.store(&res.0)
        }

        fn load(&self, stored: ToolOutcome, replay: Replay) -> Outcome {
            Outcome(self.load(stored, replay))
        }
    }
}

fn response(call: &ToolCall) -> Outcome {
    Outcome(ToolOutcome::success(call.parts().params.clone()))
}

fn layer(from: DerivedKeys) -> IdempotencyLayer {
    IdempotencyLayer::builder().derived_keys(from).build().unwrap()
}

#[test]
fn laws_hold_for_calls_with_keys() {
    let keyed = |n: u64| request(n).idempotency_key(n.to_string());
    let layer = layer(DerivedKeys::Off);
    Laws::new(keyed, response).detaches().check(|inner| layer.layer(inner));
}

#[test]
fn laws_hold_over_a_store() {
    let keyed = |n: u64| request(n).idempotency_key(n.to_string());
    let layer = IdempotencyLayer::builder().store(Memory::new()).build().unwrap();
    Laws::new(keyed, response).detaches().check(|inner| layer.layer(inner));
}

#[test]
fn laws_hold_for_calls_with_derived_keys() {
    for from in [DerivedKeys::CutOff, DerivedKeys::Session] {
        Laws::new(request, response).detaches().check(|inner| layer(from).layer(inner));
    }
}

#[test]
fn laws_hold_for_calls_that_pass_through() {
    let disabled = |n: u64| request(n).idempotency_key("k").dedupe(DedupeMode::Disabled);
    for request in [request as fn(u64) -> ToolCall, disabled] {
        Laws::new(request, response).check(|inner| layer(DerivedKeys::Off).layer(inner));
    }
}
