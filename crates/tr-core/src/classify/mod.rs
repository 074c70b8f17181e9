//! From an error to a verdict.
use crate::{Classification, Ran, ToolError, Verdict, code, facts};
use std::error::Error;

const UNCLASSIFIED: Classification<'static> =
    Classification::new(Verdict::TRANSIENT, Ran::Unknown, code::UNCLASSIFIED);

/// Classifies an error: by the outermost facts in its chain, else by what the tables know.
#[must_use]
pub fn error<'e>(error: &'e (dyn Error + 'static)) -> Classification<'e> {
    facts(error).map_or(UNCLASSIFIED, |facts| facts.classification())
}

/// Classifies a failure that a tool reported.
#[must_use]
pub fn tool_error(error: &ToolError) -> Classification<'_> {
    let verdict = error.verdict.unwrap_or(match error.retryable {
        Some(false) => Verdict::Permanent,
        _ => Verdict::TRANSIENT,
    });
    Classification { verdict, ran: error.ran, code: &error.code, exhausted: error.exhausted }
}

/// Classifies an HTTP response by its status and its headers.
#[must_use]
pub fn http_response<'h>(
    status: u16,
    _header: impl Fn(&str) -> Option<&'h str>,
) -> Classification<'static> {
    match status {
        0..400 => Classification::SUCCESS,
        429 | 503 => Classification::new(Verdict::TRANSIENT, Ran::No, "http_unavailable"),
        408 | 500.. => Classification::new(Verdict::TRANSIENT, Ran::Unknown, "http_server_error"),
        _ => Classification::new(Verdict::Permanent, Ran::Yes, "http_client_error"),
    }
}
