//! Any bytes: an envelope of BS-TIM-5 that is read is written so that the same is read again.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tr_core::{ToolOutcome, canonical};
use tr_wire::{
    Arrival, Normaliser,
    bs_tim_5::{ToolCallEnvelope, ToolResultEnvelope},
};

fuzz_target!(|bytes: &[u8]| {
    match ToolCallEnvelope::read(bytes) {
        Ok(envelope) => {
            let text = envelope.to_json();
            assert_eq!(ToolCallEnvelope::read(text.get()).unwrap(), envelope);
            canonical::to_string(text.get()).expect("what was read has a canonical form");
            let arrival = Arrival { now: std::time::Instant::now(), unix_ms: 0 };
            let call = envelope.into_call(arrival).expect("what was read can be called");
            call.digest().expect("params have a canonical form");
        }
        Err(error) => assert!(!error.faults().is_empty()),
    }
    match ToolResultEnvelope::read(bytes) {
        Ok(envelope) => {
            let text = envelope.to_json();
            assert_eq!(ToolResultEnvelope::read(text.get()).unwrap(), envelope);
            let _ = ToolOutcome::from(envelope);
            let _ = Normaliser::default().outcome(text);
        }
        Err(error) => assert!(!error.faults().is_empty()),
    }
});
