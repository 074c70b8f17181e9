//! Errors that the same call will meet every time, and whose model makes such calls.
use super::words::Words;

/// Whether a tool call with this error fails the same way however often it is repeated: a
/// required parameter is missing, or something has the wrong type.
///
/// The patterns are those of OpenClaw's tool guard, with the wording of today of OpenClaw
/// (`Validation failed for tool "read"`) and of MCP's SDKs for TypeScript and Python
/// (`Input validation error`, `1 validation error for readArguments`), but for one: its `/type.*error/i` also matches
/// `TypeError: fetch failed`, which is the network's failure. Here such a line must also name a
/// parameter, an argument or the type that was expected.
///
/// ```
/// use tr_core::classify;
///
/// assert!(classify::is_deterministic("Missing required parameter: path"));
/// assert!(classify::is_deterministic("Validation failed for tool \"read\":"));
/// assert!(classify::is_deterministic("MCP error -32602: Input validation error: Invalid arguments"));
/// assert!(!classify::is_deterministic("TypeError: fetch failed"));
/// ```
#[must_use]
pub fn is_deterministic(message: &str) -> bool {
    message.lines().any(|line| {
        line.contains("Missing required")
            || line.contains("Missing parameters for")
            || line.contains("Validation failed for tool")
            || line.contains("Input validation error")
            || (line.contains(" validation error") && line.ends_with("Arguments"))
            || line.split_once("Expected ").is_some_and(|(_, rest)| rest.contains(" but received"))
            || is_type_error(line)
    })
}

fn is_type_error(line: &str) -> bool {
    after(line.as_bytes(), b"type").and_then(|rest| after(rest, b"error")).is_some()
        && Words::new(line).any(|word| {
            let is = |known: &&str| word.text.eq_ignore_ascii_case(known);
            NAMES.iter().any(is)
        })
}

const NAMES: [&str; 10] = [
    "argument",
    "arguments",
    "arg",
    "args",
    "parameter",
    "parameters",
    "param",
    "params",
    "expected",
    "must",
];

/// What follows the first `part`, in whatever case.
fn after<'t>(text: &'t [u8], part: &[u8]) -> Option<&'t [u8]> {
    let at = text.windows(part.len()).position(|here| here.eq_ignore_ascii_case(part))?;
    Some(&text[at + part.len()..])
}

/// Whose model made a tool call, by the prefix of the call's id: `anthropic`,
/// `fireworks/openai-compat` or `unknown`.
#[must_use]
pub fn provider_of(tool_call_id: &str) -> &'static str {
    if tool_call_id.starts_with("toolu_") {
        "anthropic"
    } else if tool_call_id.starts_with("call_") {
        "fireworks/openai-compat"
    } else {
        "unknown"
    }
}
