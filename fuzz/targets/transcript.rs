//! Any text: a transcript that is read comes out as it was, and its repair is valid and final.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tr_transcript::{Fault, Format, Repair, Severity, Transcript, Validator};

const FORMATS: [Format; 5] = [
    Format::AnthropicMessages,
    Format::OpenAiChat,
    Format::OpenAiResponses,
    Format::Gemini,
    Format::OpenClaw,
];

fuzz_target!(|text: &str| {
    for format in FORMATS {
        let Ok(transcript) = Transcript::read_as(format, text) else { continue };
        assert_eq!(transcript.to_json(), text);
        let mut repaired = transcript.clone();
        let plan = Repair::preserve().plan(&transcript);
        plan.apply(&mut repaired).expect("it was planned for this transcript");
        for finding in Validator::of(&repaired).findings() {
            // A message with members that are not known is left, and told.
            let message = &repaired.messages()[finding.message_index];
            let is_left = finding.fault == Fault::BlankMessage && !message.is_understood();
            let is_error = finding.severity == Severity::Error;
            assert!(!is_error || is_left, "{finding:?} {}", repaired.to_json());
        }
        assert!(Repair::preserve().plan(&repaired).is_empty(), "{}", repaired.to_json());
    }
});
