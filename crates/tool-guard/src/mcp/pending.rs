//! Answers that ask the client for something first: no end of a call.
use super::message;
use serde::{Deserialize, de::IgnoredAny};
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

/// What the user is asked to open.
#[derive(Deserialize)]
struct Asked {
    elicitations: Vec<IgnoredAny>,
}

/// How a JSON-RPC error ends that is no end: the code alone is none, as no code is.
pub(super) fn error(code: i64, data: Option<&RawValue>) -> Option<Classification<'static>> {
    let data = data.filter(|_| code == URL_ELICITATION)?;
    let asked: Asked = message::object(data.get()).ok()?;
    (!asked.elicitations.is_empty()).then(end)
}
