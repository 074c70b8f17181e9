//! Payments that a model asks for twice: dispatched at once, or again with another key in the arguments.
use crate::agent::{Agent, Begin, Room};
use serde_json::{Value, json};

const KEYS: &str = "[tools.pay.keys]\nidentity = [\"/of\"]\nvolatile = [\"/idempotency_key\"]\n";

fn pay(key: &str) -> Value {
    json!({ "tool": "pay", "arguments": { "of": "order 42", "idempotency_key": key } })
}

#[test]
fn a_payment_whose_order_is_declared_is_made_once_and_else_each_time() {
    let twice = vec![json!([pay("a"), pay("a")])];
    let again = vec![pay("a"), pay("b")];
    for agent in Agent::ALL {
        for steps in [&twice, &again] {
            for (keys, payments) in [(KEYS, 1), ("", 2)] {
                let turn = agent.turn(&Room::declaring(keys), steps, Begin::New);
                assert_eq!(turn.calls.len(), payments, "{agent:?} {steps:?}: {:?}", turn.calls);
                let receipts = turn.read.matches("receipt of order 42").count();
                assert!(receipts >= 2, "{agent:?} {steps:?}: {}", turn.read);
            }
        }
    }
}
