//! Answers that ask the client for something first: no end of a call.
use serde_json::value::RawValue;
use tr_core::{Classification, Ran, ToolError, ToolOutcome, Verdict, classify};

/// The JSON-RPC error by which a server asks that its user open a page first.
const URL_ELICITATION: i64 = -32_042;

/// What a result of MCP 2026-07-28 says of itself where the server needs more to go on.
const INPUT_REQUIRED: &str = "input_required";

/// How the layers take such an answer: the call is not made yet, its record is free, nothing tries it
/// again by itself, and nothing counts it as a failure.
fn end() -> Classification<'static> {
    let mut end = classify::json_rpc(URL_ELICITATION, "").end;
    (end.code, end.verdict, end.ran) = (INPUT_REQUIRED, Verdict::Cancelled, Ran::No);
    end
}

/// Whether a result with this `resultType` is no end.
pub(super) fn is_asked(result_type: Option<&RawValue>) -> bool {
    let said = result_type.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    said.as_deref() == Some(INPUT_REQUIRED)
}

/// What a result that is no end comes to.
pub(super) fn result(raw: &RawValue) -> ToolOutcome {
    let text = "the server needs more input before the call can go on";
    let mut outcome = ToolOutcome::failure(ToolError::new(INPUT_REQUIRED, text).classified(end()));
    outcome.parts_mut().content = Some(raw.to_owned().into());
    outcome
}

/// How a JSON-RPC error with this code ends, if it is no end.
pub(super) fn error(code: i64) -> Option<Classification<'static>> {
    (code == URL_ELICITATION).then(end)
}
