//! Answers that ask the client for something first, and do not end a call.
use super::message;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;
use tr_core::{Classification, Ran, ToolError, ToolOutcome, Verdict, classify};

/// The JSON-RPC error by which a server asks its user to open a page first.
const URL_ELICITATION: i64 = -32_042;

/// The `resultType` of MCP 2026-07-28 for a result of a server that needs more input.
const INPUT_REQUIRED: &str = "input_required";

/// The outcome that the layers see for such an answer: the call was not made yet, its record is released, it
/// is not retried, and it counts as no failure.
fn end() -> Classification<'static> {
    let mut end = classify::json_rpc(URL_ELICITATION, "").end;
    (end.code, end.verdict, end.ran) = (INPUT_REQUIRED, Verdict::Cancelled, Ran::No);
    end
}

/// Whether a result with this `resultType` does not end its call.
pub(super) fn is_asked(result_type: Option<&RawValue>) -> bool {
    let said = result_type.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    said.as_deref() == Some(INPUT_REQUIRED)
}

/// The outcome of a result that does not end its call.
pub(super) fn result(raw: &RawValue) -> ToolOutcome {
    let text = "the server needs more input before the call can continue";
    let mut outcome = ToolOutcome::failure(ToolError::new(INPUT_REQUIRED, text).classified(end()));
    outcome.parts_mut().content = Some(raw.to_owned().into());
    outcome
}

/// The pages that the user is asked to open.
#[derive(Deserialize)]
struct Asked {
    elicitations: Vec<IgnoredAny>,
}

/// The outcome of a JSON-RPC error that does not end its call: the code alone is not enough.
pub(super) fn error(code: i64, data: Option<&RawValue>) -> Option<Classification<'static>> {
    let data = data.filter(|_| code == URL_ELICITATION)?;
    let asked: Asked = message::object(data.get()).ok()?;
    (!asked.elicitations.is_empty()).then(end)
}
