//! What holds for any text.
use proptest::prelude::*;
use tr_core::{Ran, SetClock, ToolError, Verdict, classify};

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        Just("Traceback (most recent call last):\n".to_owned()),
        Just("\n    at x (y:1:2)".to_owned()),
        Just(" (503)".to_owned()),
        Just("Expected ".to_owned()),
        Just(" received ".to_owned()),
        Just("MCP error -32602".to_owned()),
        Just("don't".to_owned()),
        "[ -~]{0,40}",
        "[äλ中🦀 ]{0,3000}",
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn nothing_panics(text in text(), other in text(), code in any::<i64>(), small in any::<i32>()) {
        let _ = classify::message(&text);
        let _ = classify::mcp_is_error(&text);
        let _ = classify::json_rpc(code, &text);
        let _ = classify::grpc(small, Some(&text));
        let _ = classify::errno(small);
        let _ = classify::is_deterministic(&text);
        let _ = classify::provider_of(&text);
        let _ = classify::retry_after(&text, &SetClock::at(code.unsigned_abs()));
        let boxed: Box<dyn std::error::Error> = text.clone().into();
        let _ = classify::error(&*boxed);
        let error = ToolError::new(text, other);
        let _ = classify::tool_error(&error);
        let _ = classify::error(&error);
    }

    #[test]
    fn no_hint_overflows(status in 400u16..600, hint in "[0-9]{1,40}") {
        let header = |name: &str| name.starts_with("retry-after").then_some(&*hint);
        let found = classify::http_response(status, header, &SetClock::at(0));
        if let Verdict::Transient { retry_after } = found.end.verdict {
            let longest = std::time::Duration::from_secs(u32::MAX.into());
            prop_assert!(retry_after.expect("digits are well formed") <= longest);
        }
    }

    #[test]
    fn a_transient_text_never_claims_that_the_tool_ran(text in text()) {
        let found = classify::message(&text);
        prop_assert!(!found.end.verdict.is_transient() || found.end.ran != Ran::Yes);
    }

    #[test]
    fn case_of_letters_changes_nothing(text in "[a-z ]{0,60}") {
        prop_assert_eq!(classify::message(&text), classify::message(&text.to_uppercase()));
    }
}

#[test]
fn the_middle_of_a_long_text_is_not_looked_at() {
    let noise = "x ".repeat(5_000);
    let hidden = format!("{noise}connection refused{noise}");
    assert_eq!(classify::message(&hidden).end.code, "unclassified");
    for seen in [format!("connection refused {noise}"), format!("{noise}connection refused")] {
        assert_eq!(classify::message(&seen).end.code, "connection_refused");
    }
}
