//! Who decides where several could.
use std::{error::Error, fmt, io};
use tower::load_shed::error::Overloaded;
use tr_core::{
    BoxError, Classification, Facts, Ran, ToolError, Verdict,
    classify::{self, Kind},
};

/// An error with a source, as libraries make them.
#[derive(Debug)]
struct Wrapped(&'static str, BoxError);

impl fmt::Display for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for Wrapped {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.1)
    }
}

#[test]
fn a_verdict_given_earlier_stands() {
    let mut error = ToolError::new("404", "Not Found");
    error.retryable = Some(false);
    let stamp = Classification::new(Verdict::TRANSIENT, Ran::No, "404");
    let error = error.classified(stamp);
    assert_eq!(classify::tool_error(&error).end, stamp);
}

#[test]
fn what_the_tool_says_of_retrying_beats_the_tables() {
    let mut error = ToolError::new("ETIMEDOUT", "connect ETIMEDOUT");
    error.retryable = Some(false);
    let found = classify::tool_error(&error);
    assert_eq!((found.end.verdict, found.end.ran), (Verdict::Permanent, Ran::Unknown));

    let mut error = ToolError::new("404", "Not Found");
    error.retryable = Some(true);
    let found = classify::tool_error(&error);
    assert_eq!((found.end.verdict, found.end.ran), (Verdict::TRANSIENT, Ran::Unknown));
}

#[test]
fn what_the_tool_says_of_having_run_beats_the_tables() {
    let mut error = ToolError::new("ECONNREFUSED", "connect ECONNREFUSED");
    assert_eq!(classify::tool_error(&error).end.ran, Ran::No);
    error.ran = Ran::Yes;
    assert_eq!(classify::tool_error(&error).end.ran, Ran::Yes);
}

#[test]
fn a_code_that_says_nothing_gives_way_to_what_is_found() {
    for code in ["", "error", "UNKNOWN", "unclassified"] {
        let error = ToolError::new(code, "Rate limit exceeded (429)");
        assert_eq!(classify::tool_error(&error).end.code, "rate_limited", "{code}");
    }
    let error = ToolError::new("BOOKING_FAILED", "Rate limit exceeded (429)");
    let found = classify::tool_error(&error);
    assert_eq!((found.end.code, found.kind), ("BOOKING_FAILED", Some(Kind::RateLimited)));
}

#[test]
fn an_identifier_outweighs_the_status_beside_it() {
    let error = ToolError::new("429", "You exceeded your current quota (insufficient_quota)");
    let found = classify::tool_error(&error);
    assert_eq!((found.kind, found.status), (Some(Kind::QuotaExhausted), Some(429)));
}

#[test]
fn the_outermost_facts_win_over_everything_further_in() {
    let cause = io::Error::from(io::ErrorKind::ConnectionRefused);
    let facts = Facts::new("circuit_open", Ran::No, Verdict::Permanent).because(cause);
    let outer = Wrapped("Not Found (404)", Box::new(facts));
    let found = classify::error(&outer);
    assert_eq!(found.end, Classification::new(Verdict::Permanent, Ran::No, "circuit_open"));
}

#[test]
fn facts_with_a_known_code_have_its_reason() {
    let facts = Facts::new("timeout", Ran::Unknown, Verdict::TRANSIENT);
    assert_eq!(classify::error(&facts).reason(), "Timeout is temporary");
    let facts = Facts::new("timeout", Ran::Unknown, Verdict::Permanent);
    assert_ne!(classify::error(&facts).reason(), "Timeout is temporary");
}

#[test]
fn an_io_error_further_in_tells_more_than_the_words_around_it() {
    let io = io::Error::from(io::ErrorKind::ConnectionRefused);
    let inner = Wrapped("tcp connect error", Box::new(io));
    let outer = Wrapped("error sending request for url (http://a.test/404)", Box::new(inner));
    let found = classify::error(&outer);
    assert_eq!((found.end.code, found.end.ran), ("connection_refused", Ran::No));
}

#[test]
fn an_io_error_without_a_telling_kind_is_read() {
    let error = io::Error::other("certificate has expired");
    assert_eq!(classify::error(&error).kind, Some(Kind::TlsUntrusted));
}

#[test]
fn a_tool_error_in_the_chain_is_classified_as_such() {
    let mut error = ToolError::new("E_FULL", "the hotel is full");
    error.retryable = Some(false);
    let outer = Wrapped("timed out", Box::new(error));
    let found = classify::error(&outer);
    assert_eq!((found.end.verdict, found.end.code), (Verdict::Permanent, "E_FULL"));
}

#[test]
fn a_call_that_was_shed_did_not_run() {
    let not_run = Classification::new(Verdict::TRANSIENT, Ran::No, "overloaded");
    assert_eq!(classify::error(&Overloaded::new()).end, not_run);
    let wrapped = Wrapped("the call failed", Box::new(Overloaded::new()));
    assert_eq!(classify::error(&wrapped).end, not_run);
    // Who only says the same may say it of a service that it has asked.
    let said = io::Error::other("service overloaded");
    let said = classify::error(&said).end;
    assert_eq!((said.code, said.ran), ("overloaded", Ran::Unknown));
    // What somebody further out knows stands.
    let known = Facts::new("x", Ran::Unknown, Verdict::Permanent).because(wrapped);
    assert_eq!(classify::error(&known).end.ran, Ran::Unknown);
}

#[test]
fn mcp_errors_never_claim_that_the_tool_did_not_run() {
    for text in ["connect ECONNREFUSED 127.0.0.1:80", "Rate limit exceeded (429)", "503"] {
        let found = classify::mcp_is_error(text);
        assert_eq!((found.end.verdict, found.end.ran), (Verdict::TRANSIENT, Ran::Unknown));
    }
    let found = classify::mcp_is_error("the flight is sold out");
    assert_eq!((found.end.verdict, found.end.ran), (Verdict::Permanent, Ran::Yes));
}

#[test]
fn exhausted_is_passed_on() {
    let mut error = ToolError::new("x", "timed out");
    error.exhausted = true;
    assert!(classify::tool_error(&error).end.exhausted);
    assert!(classify::tool_error(&ToolError::new("retry_exhausted", "")).end.exhausted);
    assert!(!classify::tool_error(&ToolError::new("x", "timed out")).end.exhausted);
}

#[test]
fn a_stamp_holds() {
    let mut error = ToolError::new("", "connect ETIMEDOUT");
    assert_eq!(classify::stamp(&mut error, None), "Network timeouts are temporary");
    assert_eq!(
        (error.verdict, error.ran, &*error.code),
        (Some(Verdict::TRANSIENT), Ran::Unknown, "network_timeout")
    );
    error.message = "Not Found (404)".into();
    assert_eq!(classify::tool_error(&error).end.verdict, Verdict::TRANSIENT);
    assert_eq!(classify::stamp(&mut error, None), "Network timeouts are temporary");
}
