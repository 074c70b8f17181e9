//! What a model is told, to the letter of the tool guard's specification.

/// Follows the message of a failure that will repeat.
pub const NON_RETRYABLE: &str = "[NON-RETRYABLE]";

/// Follows the failure that completes a loop, and answers the calls after it.
#[must_use]
pub fn loop_detected(tool: &str, failures: u32) -> String {
    format!(
        "[LOOP DETECTED] Tool \"{tool}\" failed {failures} times with identical arguments. \n\
         This is a non-retryable error. Do NOT retry this call. \n\
         Try a different approach or report the issue."
    )
}

/// Follows the failure that is one too many, and answers the calls after it.
#[must_use]
pub fn tool_error_limit(failures: u32) -> String {
    format!(
        "[TOOL ERROR LIMIT] {failures} tool failures in this turn. \n\
         Stopping tool execution. Review your approach before continuing."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_to_the_letter() {
        assert_eq!(
            loop_detected("read", 2),
            "[LOOP DETECTED] Tool \"read\" failed 2 times with identical arguments. \nThis is a non-retryable error. Do NOT retry this call. \nTry a different approach or report the issue."
        );
        assert_eq!(
            tool_error_limit(5),
            "[TOOL ERROR LIMIT] 5 tool failures in this turn. \nStopping tool execution. Review your approach before continuing."
        );
    }
}
