//! What providers say: a session that they refuse, an answer that a filter stopped.
use serde_json::Value;

/// What came of a call of the model, as far as it concerns the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModelEnd {
    /// An answer.
    Answered,
    /// A content filter stopped it, or the model's safety system refused.
    Filtered,
    /// The provider refuses the session: a repair is due.
    Refused(Complaint),
    /// Any other failure.
    Failed,
}

/// A complaint about the session itself, which every further call would meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Complaint {
    /// A use without its result.
    IncompleteUse,
    /// A result without its use.
    OrphanedResult,
    /// Two uses with one id.
    DuplicateId,
    /// Two results for one use.
    SeveralResults,
    /// A thinking block that is not as the model wrote it, or is missing.
    Thinking,
    /// A text block without text.
    EmptyText,
}

/// Complaints by their exact words, as Anthropic, OpenAI and Gemini write them.
const COMPLAINTS: [(&str, Complaint); 13] = [
    (
        "`tool_use` ids were found without `tool_result` blocks immediately after",
        Complaint::IncompleteUse,
    ),
    ("unexpected `tool_use_id` found in `tool_result` blocks", Complaint::OrphanedResult),
    ("`tool_use` ids must be unique", Complaint::DuplicateId),
    ("each tool_use must have a single result", Complaint::SeveralResults),
    ("cannot be modified", Complaint::Thinking),
    ("text content blocks must be non-empty", Complaint::EmptyText),
    ("text content blocks must contain non-whitespace text", Complaint::EmptyText),
    (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'",
        Complaint::IncompleteUse,
    ),
    (
        "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'",
        Complaint::OrphanedResult,
    ),
    ("No tool output found for function call", Complaint::IncompleteUse),
    ("was provided without its required 'reasoning' item", Complaint::Thinking),
    (
        "number of function response parts is equal to the number of function call parts",
        Complaint::IncompleteUse,
    ),
    ("missing a thought_signature", Complaint::Thinking),
];

/// What filters say: Anthropic's message, 002's type, and the code of OpenAI's hosts.
const FILTERS: [&str; 3] =
    ["Output blocked by content filtering policy", "content_filtered", "content_filter"];

impl ModelEnd {
    /// Reads the body of a plain (not streamed) answer.
    #[must_use]
    pub fn of_body(body: &str) -> Self {
        let Ok(body) = serde_json::from_str::<Value>(body) else { return Self::of_error(body) };
        if let Some(error) = body.get("error").filter(|error| !error.is_null()) {
            return Self::of_error(&error.to_string());
        }
        let choices = body["choices"].as_array().map_or(&[][..], Vec::as_slice);
        let is_filtered = body["stop_reason"] == "refusal"
            || choices.iter().any(|choice| choice["finish_reason"] == "content_filter");
        if is_filtered { Self::Filtered } else { Self::Answered }
    }

    /// Reads an error's text.
    #[must_use]
    pub fn of_error(text: &str) -> Self {
        if FILTERS.iter().any(|filter| text.contains(filter)) {
            return Self::Filtered;
        }
        let complaint = COMPLAINTS.iter().find(|(words, _)| text.contains(words));
        complaint.map_or(Self::Failed, |&(_, complaint)| Self::Refused(complaint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_and_refusals_are_detected() {
        for body in [
            r#"{"type":"error","error":{"type":"content_filtered","message":"x"}}"#,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Output blocked by content filtering policy"}}"#,
            r#"{"role":"assistant","content":[],"stop_reason":"refusal"}"#,
            r#"{"choices":[{"index":0,"finish_reason":"content_filter","message":{}}]}"#,
            r#"{"error":{"code":"content_filter","message":"x"}}"#,
        ] {
            assert_eq!(ModelEnd::of_body(body), ModelEnd::Filtered, "{body}");
        }
        for body in [
            r#"{"role":"assistant","content":[{"type":"text","text":"refusal content_filter"}],"stop_reason":"end_turn"}"#,
            r#"{"choices":[{"finish_reason":"stop"}],"error":null}"#,
        ] {
            assert_eq!(ModelEnd::of_body(body), ModelEnd::Answered, "{body}");
        }
        assert_eq!(ModelEnd::of_body("Bad gateway"), ModelEnd::Failed);
    }

    #[test]
    fn complaints_are_recognised_inside_json() {
        let body = r#"{"error":{"message":"messages.125: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1."}}"#;
        assert_eq!(ModelEnd::of_body(body), ModelEnd::Refused(Complaint::IncompleteUse));
        for (words, complaint) in COMPLAINTS {
            let text = format!("HTTP 400: {words} (request id 7)");
            assert_eq!(ModelEnd::of_error(&text), ModelEnd::Refused(complaint));
        }
    }
}
