//! A tool whose service does not become ready.
use crate::common::{FORMATS, json, message, push_step, user};
use std::{
    future::Ready,
    task::{Context, Poll},
};
use tower::{Layer, Service, ServiceExt};
use tr_core::{BoxError, Params, Ran, ToolCall, ToolOutcome, classify};
use tr_integrity::{IntegrityLayer, OUTCOME_UNKNOWN, Sessions, store::Memory};

fn call(id: &str) -> ToolCall {
    ToolCall::new("pay", Params::empty_object()).session("s").tool_call_id(id)
}

/// Never ready.
#[derive(Clone)]
struct Unready;

impl Service<ToolCall> for Unready {
    type Response = ToolOutcome;
    type Error = BoxError;
    type Future = Ready<Result<ToolOutcome, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Err("pool is closed".into()))
    }

    fn call(&mut self, _: ToolCall) -> Self::Future {
        panic!("it is not ready")
    }
}

#[tokio::test]
async fn a_call_whose_service_does_not_become_ready_is_answered_as_refused() {
    for format in FORMATS {
        for is_durable in [false, true] {
            let sessions = Sessions::builder(format);
            let sessions = if is_durable { sessions.store(Memory::new()) } else { sessions };
            let sessions = sessions.build().unwrap();
            sessions.with("s", |session, _| {
                session.push(message(format, user("go")));
                push_step(session, &["a"]);
            });
            let stack = IntegrityLayer::new(sessions.clone()).layer(Unready);
            let error = stack.clone().oneshot(call("a")).await.unwrap_err();
            assert_eq!(error.to_string(), "pool is closed");
            assert_eq!(classify::error(&*error).end.ran, Ran::No);
            let said = json(&sessions);
            assert!(said.contains("pool is closed") && !said.contains(OUTCOME_UNKNOWN), "{said}");
            // A call without a use in the transcript leaves nothing.
            stack.oneshot(call("b")).await.unwrap_err();
            assert_eq!(json(&sessions), said);
        }
    }
    // Without sessions nothing changes.
    let mut bare = IntegrityLayer::builder().build().layer(Unready);
    let error = ServiceExt::<ToolCall>::ready(&mut bare).await.map(drop).unwrap_err();
    assert_eq!(error.to_string(), "pool is closed");
}
