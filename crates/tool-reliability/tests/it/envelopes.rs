//! A stack behind envelopes.
mod answers;
mod cancelling;
mod refused;
mod streaming;
mod through;

use serde_json::{Value, json};
use tokio::time::Duration;
use tool_reliability::{
    Envelopes, EnvelopesLayer, Guarded, ToolStack,
    envelopes::{Answer, EnvelopeRequest},
};
use tower::{Layer as _, ServiceExt};
use tr_config::ToolCatalog;
use tr_core::{ToolCall, ToolOutcome};
use tr_testkit::{
    calls::ScriptedTool,
    tool::{Handle, Step},
};

type Tools = Envelopes<Guarded<ScriptedTool>>;

/// A stack around a tool that follows a script, behind envelopes.
struct Bench {
    stack: ToolStack,
    tools: Tools,
    handle: Handle<ToolCall>,
}

impl Bench {
    fn new(script: impl IntoIterator<Item = Step<ToolOutcome>>) -> Self {
        Self::of(ToolStack::default(), script)
    }

    fn of(stack: ToolStack, script: impl IntoIterator<Item = Step<ToolOutcome>>) -> Self {
        let tool = ScriptedTool::script(script).then_repeat_last();
        let handle = tool.handle();
        let layer = EnvelopesLayer::builder().catalog(catalog()).build().unwrap();
        let tools = layer.layer(stack.service(tool));
        Self { stack, tools, handle }
    }

    /// Around a tool that keeps no call.
    fn forgetful(script: impl IntoIterator<Item = Step<ToolOutcome>>) -> Self {
        let tool = ScriptedTool::script(script).then_repeat_last().unlogged();
        let handle = tool.handle();
        let stack = ToolStack::default();
        let layer = EnvelopesLayer::builder().catalog(catalog()).build().unwrap();
        let tools = layer.layer(stack.service(tool));
        Self { stack, tools, handle }
    }

    async fn answer(&self, request: impl Into<EnvelopeRequest>) -> Answer {
        let Ok(answer) = self.tools.clone().oneshot(request.into()).await;
        answer
    }

    async fn ask(&self, request: impl Into<EnvelopeRequest>) -> Value {
        self.answer(request).await.to_json().parse().unwrap()
    }
}

fn catalog() -> ToolCatalog {
    let tools = r#"{"tools": {"read": {"effect": "read_only"}, "pay": {"effect": "mutating"}}}"#;
    ToolCatalog::from_json(tools).unwrap()
}

/// A request of UTEE, with these members beside its own.
fn utee(tool: &str, more: Value) -> String {
    let mut request = json!({"tool": tool, "action": "", "params": {}, "requestId": "r"});
    let Value::Object(more) = more else { panic!("members") };
    request.as_object_mut().unwrap().extend(more);
    request.to_string()
}

/// A request of BS-TIM-5 with these params.
fn bs_tim_5(tool: &str, params: &Value) -> String {
    json!({
        "contractVersion": "1.1", "requestId": "r", "toolName": tool, "toolNamespace": "",
        "target": {"sessionKey": "s", "actorId": "a"},
        "payload": {"version": "1.0", "params": params},
        "transport": {"dedupeMode": "enforced",
                      "retryBudget": {"maxAttempts": 4, "maxElapsedMs": 30000}},
        "control": {}, "trace": {},
    })
    .to_string()
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
