//! Who decides where several could.
use std::{error::Error, fmt, io};
use tr_core::{
    BoxError, Classification, FailureInfo, NotSent, Ran, SetClock, ToolError, ToolManifest,
    Verdict,
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
fn a_failure_that_a_tool_answers_is_an_answer_in_whatever_words() {
    for text in
        ["sold out", "account is closed", "card declined", "the seat was taken a moment ago", ""]
    {
        for code in ["business_rule", "E17", ""] {
            let error = ToolError::new(code, text);
            let found = classify::tool_error(&error).end;
            assert_eq!((found.verdict, found.ran), (Verdict::Permanent, Ran::Yes), "{code} {text}");
        }
    }
    let error = ToolError::new("business_rule", "connection reset by peer");
    let away = classify::tool_error(&error);
    assert_eq!((away.end.verdict, away.end.ran), (Verdict::TRANSIENT, Ran::Unknown));
}

#[test]
fn a_refusal_is_final_and_ran_unless_its_code_leaves_that_open() {
    let refusal =
        ToolError::refusal("business_rule", "too many requests for seat 7: try again later");
    let found = classify::tool_error(&refusal).end;
    assert_eq!((found.verdict, found.ran), (Verdict::Permanent, Ran::Yes));

    let said = |code: &str, message: &str| {
        let mut error = ToolError::new(code, message);
        error.retryable = Some(false);
        let found = classify::tool_error(&error).end;
        assert_eq!(found.verdict, Verdict::Permanent);
        found.ran
    };
    assert_eq!(said("business_rule", "the service timed out"), Ran::Yes);
    assert_eq!(said("timeout", "no answer after 30s"), Ran::Unknown);
    assert_eq!(said("TIMEOUT", "no answer after 30s"), Ran::Unknown);
}

#[test]
fn what_the_tool_says_of_having_run_beats_the_tables() {
    let mut error = ToolError::new("ECONNREFUSED", "connect ECONNREFUSED");
    assert_eq!(classify::tool_error(&error).end.ran, Ran::Unknown);
    for ran in [Ran::Yes, Ran::No] {
        error.ran = ran;
        assert_eq!(classify::tool_error(&error).end.ran, ran);
    }
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
    let facts = FailureInfo::new("circuit_open", Ran::No, Verdict::Permanent).because(cause);
    let outer = Wrapped("Not Found (404)", Box::new(facts));
    let found = classify::error(&outer);
    assert_eq!(found.end, Classification::new(Verdict::Permanent, Ran::No, "circuit_open"));
}

#[test]
fn facts_with_a_known_code_have_its_reason() {
    let facts = FailureInfo::new("timeout", Ran::Unknown, Verdict::TRANSIENT);
    assert_eq!(classify::error(&facts).reason(), "Timeout is temporary");
    let facts = FailureInfo::new("timeout", Ran::Unknown, Verdict::Permanent);
    assert_ne!(classify::error(&facts).reason(), "Timeout is temporary");
}

#[test]
fn an_io_error_further_in_tells_more_than_the_words_around_it() {
    let io = io::Error::from(io::ErrorKind::ConnectionRefused);
    let inner = Wrapped("tcp connect error", Box::new(io));
    let outer = Wrapped("error sending request for url (http://a.test/404)", Box::new(inner));
    let found = classify::error(&outer);
    assert_eq!((found.end.code, found.end.ran), ("connection_refused", Ran::Unknown));
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

#[cfg(feature = "tower")]
#[test]
fn a_call_that_was_shed_did_not_run() {
    use tower::load_shed::error::Overloaded;

    let not_run = Classification::new(Verdict::TRANSIENT, Ran::No, "overloaded");
    assert_eq!(classify::error(&Overloaded::new()).end, not_run);
    // Inside of another error it is a call of the tool's own that was shed.
    let wrapped = Wrapped("the call failed", Box::new(Overloaded::new()));
    let unknown = Classification::new(Verdict::TRANSIENT, Ran::Unknown, "overloaded");
    assert_eq!(classify::error(&wrapped).end, unknown);
    // Who only says the same may say it of a service that it has asked.
    let said = io::Error::other("service overloaded");
    let said = classify::error(&said).end;
    assert_eq!((said.code, said.ran), ("overloaded", Ran::Unknown));
    // What somebody further out knows stands.
    let known = FailureInfo::new("x", Ran::Unknown, Verdict::Permanent).because(wrapped);
    assert_eq!(classify::error(&known).end.ran, Ran::Unknown);
}

#[test]
fn that_nothing_ran_is_believed_of_the_outermost_error_alone() {
    let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
    let ran = |error: &(dyn std::error::Error + 'static)| classify::error(error).end.ran;
    assert_eq!(ran(&NotSent::new(refused())), Ran::No);
    assert_eq!(ran(&Wrapped("receipt mail", Box::new(NotSent::new(refused())))), Ran::Unknown);
    let open = || FailureInfo::new("circuit_open", Ran::No, Verdict::TRANSIENT);
    assert_eq!(ran(&Wrapped("circuit open", Box::new(open()))), Ran::No);
    let of_mail = Wrapped("receipt mail", Box::new(Wrapped("circuit open", Box::new(open()))));
    assert_eq!(ran(&of_mail), Ran::Unknown);
    // Errors that pass the source of another on as their own.
    assert_eq!(ran(&io::Error::other(NotSent::new(refused()))), Ran::Unknown);
    assert_eq!(ran(&std::sync::Arc::new(NotSent::new(refused()))), Ran::Unknown);
    let mut told = ToolError::new("E_FULL", "the hotel is full");
    told.ran = Ran::No;
    assert_eq!(ran(&told), Ran::No);
    assert_eq!(ran(&Wrapped("hotel", Box::new(told))), Ran::Unknown);
}

#[test]
fn an_error_that_is_only_wrapped_stays_what_it_was() {
    let noted = |error: BoxError| Wrapped("again", FailureInfo::wrapping(error).by_layer().into());
    let reset = "connection reset by peer";
    let plain: BoxError = reset.into();
    let end = classify::error(&*plain).end;
    assert_eq!(end.code, "connection_reset");
    assert_eq!(classify::error(&noted(reset.into())).end, end);
    assert_eq!(classify::error(&noted(noted(reset.into()).into())).end, end);
    let mut told = ToolError::new("E_FULL", "the hotel is full");
    told.ran = Ran::No;
    assert_eq!(classify::error(&noted(told.clone().into())).end, classify::error(&told).end);
    let of_hotel = Wrapped("hotel", noted(told.into()).into());
    assert_eq!(classify::error(&of_hotel).end.ran, Ran::Unknown);
}

#[test]
fn what_was_not_sent_keeps_what_is_known_of_its_cause() {
    let refused = NotSent::new(io::Error::from(io::ErrorKind::ConnectionRefused));
    let found = classify::error(&refused).end;
    assert_eq!((found.code, found.verdict), ("connection_refused", Verdict::TRANSIENT));
    let untrusted = NotSent::new("certificate has expired");
    assert_eq!(classify::error(&untrusted).end.verdict, Verdict::Permanent);
    assert_eq!(untrusted.to_string(), "certificate has expired");
    let no_reason = NotSent::new("the pool is asleep");
    assert_eq!(classify::error(&no_reason).end.code, "not_sent");
    assert_eq!(tr_core::root_cause(&no_reason).to_string(), "the pool is asleep");
}

#[test]
fn a_manifest_says_by_which_codes_a_tool_did_not_run() {
    let mut tool = ToolManifest::new("book");
    tool.not_run = vec!["QUEUE_FULL".into(), "503".into()];
    let ran = |error: &ToolError| classify::tool_error(error).with_manifest(&tool).end.ran;
    assert_eq!(ran(&ToolError::new("QUEUE_FULL", "later")), Ran::No);
    assert_eq!(ran(&ToolError::new("503", "later")), Ran::No);
    for (code, text) in [("", "mail: HTTP 503"), ("MAIL", "QUEUE_FULL"), ("error", "503")] {
        assert_ne!(ran(&ToolError::new(code, text)), Ran::No, "{code}: {text}");
    }
    let http = classify::http_response(503, |_| None, &SetClock::at(0)).with_manifest(&tool).end;
    assert_eq!((http.verdict, http.ran), (Verdict::TRANSIENT, Ran::No));
}

#[test]
fn a_manifest_says_nothing_of_a_code_further_in() {
    let mut tool = ToolManifest::new("pay");
    tool.not_run = vec!["busy".into()];
    let outer = Wrapped("the receipt", Box::new(ToolError::new("busy", "mail")));
    assert_eq!(classify::error(&outer).with_manifest(&tool).end.ran, Ran::Unknown);
}

#[test]
fn statuses_that_gateways_send_late_prove_nothing() {
    for status in (400..600).filter(|status| ![425, 429].contains(status)) {
        let found = classify::http_response(status, |_| None, &SetClock::at(0)).end;
        assert_ne!(found.ran, Ran::No, "{status}");
    }
    for status in [425, 429] {
        let found = classify::http_response(status, |_| None, &SetClock::at(0)).end;
        assert_eq!((found.ran, found.of_handler().ran), (Ran::No, Ran::Unknown), "{status}");
    }
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
