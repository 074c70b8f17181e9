//! Any bytes: an envelope of UTEE that is read is written so that the same is read again.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tr_core::{ToolOutcome, call::CallContext, canonical};
use tr_wire::{
    Normaliser,
    utee::{ToolRequest, ToolResponse},
};

fuzz_target!(|bytes: &[u8]| {
    match ToolRequest::read(bytes) {
        Ok(request) => {
            let text = request.to_json();
            assert_eq!(ToolRequest::read(text.get()).unwrap(), request);
            canonical::to_string(text.get()).expect("what was read has a canonical form");
            let call = request.into_call(CallContext::default(), || "id".into());
            let call = call.expect("what was read can be called");
            call.digest().expect("params have a canonical form");
        }
        Err(error) => assert!(!error.faults().is_empty()),
    }
    match ToolResponse::read(bytes) {
        Ok(response) => {
            let text = response.to_json();
            assert_eq!(ToolResponse::read(text.get()).unwrap(), response);
            let _ = ToolOutcome::from(response);
            let _ = Normaliser::default().outcome(text);
        }
        Err(error) => assert!(!error.faults().is_empty()),
    }
});
