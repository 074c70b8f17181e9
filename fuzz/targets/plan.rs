//! Any text: a plan is read, or every mistake is named, whatever tools there are.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tr_turn::{Plan, Tools};

fuzz_target!(|text: &str| {
    for tools in [Tools::any(), Tools::any().offered(["flight_search", "book"])] {
        match Plan::from_json(text, &tools) {
            Ok(plan) => assert!(plan.calls().len() > 0),
            Err(error) => assert!(!error.faults().is_empty() && !error.to_string().is_empty()),
        }
    }
});
