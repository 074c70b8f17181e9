//! What several tests put into a stack, and hear of it.
use std::sync::{Arc, Mutex};
use tool_reliability::{BoxError, Guarded, Hook, ToolStack};
use tr_core::{Effect, Params, Ran, ToolCall, ToolOutcome, Verdict};
use tr_testkit::{
    calls::{ScriptedTool, fails},
    tool::{Handle, Step},
};

/// A tool in a stack; the last step of its script repeats.
pub(crate) fn around(
    stack: &ToolStack,
    script: impl IntoIterator<Item = Step<ToolOutcome>>,
) -> (Guarded<ScriptedTool>, Handle<ToolCall>) {
    let tool = ScriptedTool::script(script).then_repeat_last();
    let handle = tool.handle();
    (stack.service(tool), handle)
}

/// A failure that another attempt may mend.
pub(crate) fn down() -> Step<ToolOutcome> {
    fails("http_503", Verdict::TRANSIENT, Ran::No)
}

pub(crate) fn search(session: &str) -> ToolCall {
    ToolCall::new("search", Params::empty_object()).effect(Effect::Idempotent).session(session)
}

/// A hook that notes each time when it is called, and may give each call a key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    noted: Arc<Mutex<Vec<&'static str>>>,
    key: Option<&'static str>,
}

impl Notes {
    pub(crate) fn giving(key: &'static str) -> Self {
        Self { key: Some(key), ..Self::default() }
    }

    pub(crate) fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.noted.lock().unwrap())
    }
}

impl Hook for Notes {
    fn prepare(&self, call: &mut ToolCall) {
        if let Some(key) = self.key {
            call.parts_mut().idempotency.key = Some(key.into());
        }
        self.noted.lock().unwrap().push("prepare");
    }

    fn before(&self, _: &ToolCall) {
        self.noted.lock().unwrap().push("before");
    }

    fn after(&self, _: &ToolCall, _: Result<&ToolOutcome, &BoxError>) {
        self.noted.lock().unwrap().push("after");
    }
}
