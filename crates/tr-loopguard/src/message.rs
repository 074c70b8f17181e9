//! The messages for the model. Those about failures are exactly as specified; those about signals
//! follow their form.
use crate::call::{Decision, ReachedLimit, Rule, Signal};
use std::time::Duration;

/// Added to the message of a failure that will repeat.
pub const NON_RETRYABLE: &str = "[NON-RETRYABLE]";

/// Added to the failure that completes a loop, and the message of the refused calls after it.
#[must_use]
pub fn loop_detected(tool: &str, failures: u32) -> String {
    identical(tool, failures, "This is a non-retryable error. Do NOT retry this call.")
}

/// The same with other advice.
fn identical(tool: &str, failures: u32, advice: &str) -> String {
    format!(
        "[LOOP DETECTED] Tool \"{tool}\" failed {failures} times with identical arguments. \n\
         {advice} \n\
         Try a different approach or report the issue."
    )
}

/// The advice about a call that may be repeated.
const MAY_CHANGE: &str = "Do not repeat this call before something has changed.";

/// Added to the failure that reaches the limit, and the message of the refused calls after it.
#[must_use]
pub fn tool_error_limit(failures: u32) -> String {
    format!(
        "[TOOL ERROR LIMIT] {failures} tool failures in this turn. \n\
         Stopping tool execution. Review your approach before continuing."
    )
}

/// Added to each failure from the limit on, where the limit only warns: `within` is the time in
/// which the calls failed, `None` for this turn.
#[must_use]
pub fn tool_errors(failures: u32, within: Option<Duration>) -> String {
    let when = match within {
        None => "in this turn".to_owned(),
        Some(time) if time.subsec_nanos() == 0 => format!("within {} s", time.as_secs()),
        Some(time) => format!("within {} ms", time.as_millis()),
    };
    format!("[TOOL ERRORS] {failures} failures {when}. Review your approach before continuing.")
}

/// The message of a call that a turn or a session may not have any more.
pub(crate) fn tool_call_limit(tool: &str, reached: ReachedLimit) -> String {
    let ReachedLimit { calls, of_tool, of_session } = reached;
    let of = if of_tool { format!(" of \"{tool}\"") } else { String::new() };
    let within = if of_session { "session" } else { "turn" };
    format!(
        "[TOOL CALL LIMIT] {calls} tool calls{of} in this {within}, which is its limit. \n\
         This call was not made. Finish with what you have, or ask the user."
    )
}

/// The message to add to the response for this decision.
pub(crate) fn of(tool: &str, decision: Decision) -> Option<String> {
    match decision {
        Decision::Continue | Decision::CallLimit(_) => None,
        Decision::LoopDetected(failures) => Some(loop_detected(tool, failures)),
        Decision::Repeated(failures) => Some(identical(tool, failures, MAY_CHANGE)),
        Decision::HardCap(failures) => Some(tool_error_limit(failures)),
        Decision::Signal(signal) => Some(warning(tool, signal)),
    }
}

/// Added to a response that is part of a loop; the call may be repeated.
fn warning(tool: &str, signal: Signal) -> String {
    let advice = match signal.rule {
        Rule::Repeat | Rule::Cycle(_) => {
            "Repeating this changes nothing. Use the answers that you have, or change something first."
        }
        Rule::SameError => {
            "Other arguments of this kind do not help. Read the error, or do without the tool."
        }
        Rule::Quiet => "Whatever is waited for may hang. Look into it, or tell the user.",
    };
    format!("[LOOP WARNING] {} \n{advice}", what(tool, signal))
}

/// The message of a refused call that continues a loop in spite of warnings.
pub(crate) fn stop(tool: &str, signal: Signal) -> String {
    format!(
        "[LOOP DETECTED] {} \n\
         This call was not executed, and will not be in this turn. \n\
         Try a different approach or report the issue.",
        what(tool, signal)
    )
}

fn what(tool: &str, Signal { rule, count }: Signal) -> String {
    match rule {
        Rule::Repeat => {
            format!("Tool \"{tool}\" gave the same answer to the same call {count} times.")
        }
        Rule::Cycle(calls) => {
            format!("The last {calls} calls came around {count} times with the same answers.")
        }
        Rule::SameError => {
            format!(
                "Tool \"{tool}\" failed {count} times with the same error and different arguments."
            )
        }
        Rule::Quiet => {
            format!("Tool \"{tool}\" has given the same answer for a long time, {count} times.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_messages_match_exactly() {
        assert_eq!(
            loop_detected("read", 2),
            "[LOOP DETECTED] Tool \"read\" failed 2 times with identical arguments. \nThis is a non-retryable error. Do NOT retry this call. \nTry a different approach or report the issue."
        );
        assert_eq!(
            tool_error_limit(5),
            "[TOOL ERROR LIMIT] 5 tool failures in this turn. \nStopping tool execution. Review your approach before continuing."
        );
    }

    #[test]
    fn a_limit_that_warns_says_of_what_time() {
        assert_eq!(
            tool_errors(5, Some(Duration::from_secs(60))),
            "[TOOL ERRORS] 5 failures within 60 s. Review your approach before continuing."
        );
        assert!(
            tool_errors(7, Some(Duration::from_millis(1500)))
                .contains("7 failures within 1500 ms.")
        );
        assert!(tool_errors(7, None).contains("7 failures in this turn."));
    }

    #[test]
    fn each_signal_says_what_was_seen_and_what_helps() {
        let said = |rule, count| warning("job", Signal { rule, count });
        assert_eq!(
            said(Rule::Cycle(2), 3),
            "[LOOP WARNING] The last 2 calls came around 3 times with the same answers. \nRepeating this changes nothing. Use the answers that you have, or change something first."
        );
        assert_eq!(
            said(Rule::SameError, 3),
            "[LOOP WARNING] Tool \"job\" failed 3 times with the same error and different arguments. \nOther arguments of this kind do not help. Read the error, or do without the tool."
        );
        assert_eq!(
            said(Rule::Quiet, 60),
            "[LOOP WARNING] Tool \"job\" has given the same answer for a long time, 60 times. \nWhatever is waited for may hang. Look into it, or tell the user."
        );
        let stop = stop("job", Signal { rule: Rule::Quiet, count: 120 });
        assert!(stop.starts_with("[LOOP DETECTED] Tool \"job\" has given"), "{stop}");
    }
}
