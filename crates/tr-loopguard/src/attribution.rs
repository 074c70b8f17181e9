//! The log of malformed calls and their models, as JSON lines.
use crate::call::Decision;
use serde_json::{Map, Value, json};
use std::fmt::Debug;
use tr_core::{LoopRef, classify, internal::type_name, rfc3339};

/// The most args that are shown.
const MOST: usize = 32;

/// Records malformed calls. It must not block for long, and cannot fail a call.
pub trait AttributionLog: Debug + Send + Sync {
    /// A malformed call has failed.
    fn write(&self, entry: &Attribution<'_>);
}

/// A malformed call, with its model and provider. Of its args it has only names and types.
#[derive(Clone, Copy, Debug)]
pub struct Attribution<'r> {
    call: LoopRef<'r>,
    decision: Decision,
    unix_ms: u64,
}

impl<'r> Attribution<'r> {
    pub(crate) const fn of(call: &LoopRef<'r>, decision: Decision, unix_ms: u64) -> Self {
        Self { call: *call, decision, unix_ms }
    }

    /// The provider whose model made the call: the one that the call names, else by the prefix of
    /// its id (`anthropic`, `fireworks/openai-compat`, `unknown`).
    #[must_use]
    pub fn provider(&self) -> &'r str {
        let by_id = || classify::provider_of(self.call.tool_call_id.unwrap_or_default());
        self.call.provider.unwrap_or_else(by_id)
    }

    /// The entry as one line of JSON, without its newline.
    #[must_use]
    pub fn to_json(&self) -> String {
        Value::Object(self.to_map()).to_string()
    }

    /// The entry's members.
    #[must_use]
    pub fn to_map(&self) -> Map<String, Value> {
        let action = match self.decision {
            Decision::Continue | Decision::Repeated(_) | Decision::Signal(_) => "continue",
            Decision::LoopDetected(_) => "loop-detected",
            Decision::HardCap(_) | Decision::CallLimit(_) => "hard-cap",
        };
        let Value::Object(entry) = json!({
            "timestamp": rfc3339(self.unix_ms).to_string(),
            "model": self.call.model.unwrap_or_else(|| self.provider()),
            "provider": self.provider(),
            "toolName": self.call.tool,
            "toolCallId": self.call.tool_call_id,
            "args": shape(self.call.text),
            "errorType": "non-retryable",
            "action": action,
        }) else {
            unreachable!("an object is written above")
        };
        entry
    }
}

/// The names and types of the first args, and the number of further args.
fn shape(text: Option<&str>) -> Value {
    let args: Option<Map<String, Value>> = text.and_then(|text| serde_json::from_str(text).ok());
    let Some(args) = args else { return Value::Null };
    let more = args.len().saturating_sub(MOST);
    let shown =
        args.into_iter().take(MOST).map(|(name, value)| (name, Value::from(type_name(&value))));
    let more = (more > 0).then(|| ("…".to_owned(), Value::from(format!("{more} more"))));
    shown.chain(more).collect::<Map<_, _>>().into()
}
