//! Reads from a model's answer how it ended, and whether the provider refuses the session.
mod end;
mod evidence;
mod lines;
mod scan;
mod walk;
mod words;

use self::words::Found;
pub use self::{
    end::{Complaint, Head, ModelEnd},
    scan::AnswerScanner,
};

impl ModelEnd {
    /// Reads a whole answer: a body, or the events of a stream; [`AnswerScanner`] reads an answer
    /// in pieces. The model's own text is never read as the provider's.
    #[must_use]
    pub fn of_body(body: &str) -> Self {
        let mut scanner = AnswerScanner::new();
        scanner.push(body.as_bytes());
        scanner.end()
    }

    /// Reads an error's text.
    #[must_use]
    pub fn of_error(text: &str) -> Self {
        Found::of(text.as_bytes()).into()
    }
}

/// The end of a call whose error has these findings.
impl From<Found> for ModelEnd {
    fn from(found: Found) -> Self {
        if found.is_filtered {
            return Self::Filtered;
        }
        found.complaint().map_or(Self::Failed, Self::Refused)
    }
}

#[cfg(test)]
mod tests {
    use super::{words::COMPLAINTS, *};

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
    fn complaints_are_recognized_inside_json() {
        let body = r#"{"error":{"message":"messages.125: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1."}}"#;
        assert_eq!(ModelEnd::of_body(body), ModelEnd::Refused(Complaint::IncompleteUse));
        for (words, complaint) in COMPLAINTS {
            let text = format!("HTTP 400: {words} (request id 7)");
            assert_eq!(ModelEnd::of_error(&text), ModelEnd::Refused(complaint));
        }
    }
}
