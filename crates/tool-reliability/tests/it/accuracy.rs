//! How often errors are classified rightly.
use serde::Deserialize;
use std::fs;
use tool_reliability::{ToolStack, retry::RetryConfig};
use tower::{ServiceExt, service_fn};
use tr_core::{BoxError, FailureInfo, Params, Ran, ToolCall, ToolOutcome, causes};

/// An error with its expected label.
#[derive(Deserialize)]
struct Labelled {
    via: String,
    text: String,
    verdict: String,
    ran: Ran,
}

/// A stack around a tool that fails with the text of a labelled error classifies it as labelled.
#[tokio::test]
async fn ut_11_every_labelled_error_is_classified_rightly() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tr-core/tests/data/errors/corpus.jsonl");
    let corpus = fs::read_to_string(path).unwrap();
    let labelled = corpus.lines().map(|line| serde_json::from_str::<Labelled>(line).expect(line));
    let mut config = RetryConfig::default();
    config.attempts = 1;
    let stack = ToolStack::builder().retry(|retry| retry.config(config)).build().unwrap();
    let mut errors = 0;
    for case in labelled.filter(|case| case.via == "message") {
        let text = case.text.clone();
        let tool = service_fn(move |_: ToolCall| {
            let text = text.clone();
            async move { Err::<ToolOutcome, _>(BoxError::from(text)) }
        });
        // A tool and a session for each, so that no breaker opens and no turn ends.
        let call = ToolCall::new(&*format!("tool-{errors}"), Params::empty_object())
            .session(format!("session-{errors}"));
        let error = stack.service(tool).oneshot(call).await.unwrap_err();
        let facts = causes(&*error).filter_map(|cause| cause.downcast_ref::<FailureInfo>()).last();
        let found = facts.map(|facts| (facts.verdict().as_str(), facts.ran()));
        assert_eq!(found, Some((&*case.verdict, case.ran)), "{}", case.text);
        errors += 1;
    }
    assert!(errors >= 120, "{errors} errors");
}
