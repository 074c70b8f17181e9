//! What a tool refuses is an answer, in whatever words and in each way to say it.
use tool_reliability::ToolStack;
use tower::ServiceExt;
use tr_core::{BreakerState, Effect, KeyRef, Params, ToolCall, ToolError, ToolOutcome};
use tr_testkit::{calls::ScriptedTool, tool::Step};

const TEXTS: [&str; 8] = [
    "account is closed",
    "sold out",
    "the seat was taken a moment ago",
    "order 17 was already shipped",
    "insufficient funds",
    "card declined",
    "IBAN checksum does not match",
    "user is blocked",
];

fn pay(n: usize) -> ToolCall {
    let call = ToolCall::new("pay", Params::empty_object()).effect(Effect::Mutating);
    call.session(format!("s{n}")).idempotency_key(format!("k{n}"))
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_recorded_replayed_and_opens_no_circuit() {
    let said_final = |text| {
        let mut error = ToolError::new("business_rule", text);
        error.retryable = Some(false);
        error
    };
    for text in TEXTS {
        for error in [
            ToolError::new("business_rule", text),
            ToolError::refusal("business_rule", text),
            said_final(text),
        ] {
            let stack = ToolStack::default();
            let answer = Step::Ok(ToolOutcome::failure(error));
            let tool = ScriptedTool::script([answer]).then_repeat_last();
            let (handle, tool) = (tool.handle(), stack.service(tool));
            for n in 0..8 {
                let outcome = tool.clone().oneshot(pay(n)).await.unwrap();
                assert_eq!(&*outcome.error().unwrap().code, "business_rule", "{text}");
            }
            let again = tool.oneshot(pay(0)).await.unwrap();
            assert!(again.from_cache(), "{text}");
            assert_eq!((handle.calls(), stack.records().unknown().len()), (8, 0), "{text}");
            let breaker = stack.breakers().get(KeyRef::new("pay")).unwrap();
            assert_eq!(breaker.state(), BreakerState::Closed, "{text}");
        }
    }
}
