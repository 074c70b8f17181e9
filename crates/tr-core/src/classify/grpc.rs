//! gRPC codes, by number, by name and by tonic's description.
use super::{Finding, Kind, retry_after};

/// The codes from 1 on, by their names.
const CODES: [(&str, Kind); 16] = [
    ("CANCELLED", Kind::Cancelled),
    ("UNKNOWN", Kind::Unclassified),
    ("INVALID_ARGUMENT", Kind::InvalidInput),
    ("DEADLINE_EXCEEDED", Kind::Timeout),
    ("NOT_FOUND", Kind::NotFound),
    ("ALREADY_EXISTS", Kind::AlreadyExists),
    ("PERMISSION_DENIED", Kind::PermissionDenied),
    ("RESOURCE_EXHAUSTED", Kind::ResourceExhausted),
    ("FAILED_PRECONDITION", Kind::PreconditionFailed),
    ("ABORTED", Kind::Conflict),
    ("OUT_OF_RANGE", Kind::InvalidInput),
    ("UNIMPLEMENTED", Kind::Unsupported),
    ("INTERNAL", Kind::ServerError),
    // Not `ServiceUnavailable`: gRPC says it, too, of a connection that broke after sending.
    ("UNAVAILABLE", Kind::NetworkError),
    ("DATA_LOSS", Kind::ClientError),
    ("UNAUTHENTICATED", Kind::AuthFailed),
];

fn kind(code: i32) -> Option<Kind> {
    let index = usize::try_from(code).ok()?.checked_sub(1)?;
    CODES.get(index).map(|(_, kind)| *kind)
}

/// The code with this name, in either spelling: `DEADLINE_EXCEEDED`, `DeadlineExceeded`.
pub(super) fn from_name(name: &str) -> Option<(usize, Kind)> {
    let same = |known: &str| {
        let letters = |text: &str| text.len() - text.matches('_').count();
        letters(known) == letters(name)
            && known
                .bytes()
                .filter(|byte| *byte != b'_')
                .zip(name.bytes().filter(|byte| *byte != b'_'))
                .all(|(known, byte)| known == byte.to_ascii_uppercase())
    };
    let index = CODES.iter().position(|(known, _)| same(known))?;
    Some((index + 1, CODES[index].1))
}

/// What tonic calls the codes, from 1 on, where it shows a status: `code: 'Internal error', message: …`.
const DESCRIPTIONS: [&str; 16] = [
    "The operation was cancelled",
    "Unknown error",
    "Client specified an invalid argument",
    "Deadline expired before operation could complete",
    "Some requested entity was not found",
    "Some entity that we attempted to create already exists",
    "The caller does not have permission to execute the specified operation",
    "Some resource has been exhausted",
    "The system is not in a state required for the operation's execution",
    "The operation was aborted",
    "Operation was attempted past the valid range",
    "Operation is not implemented or not supported",
    "Internal error",
    "The service is currently unavailable",
    "Unrecoverable data loss or corruption",
    "The request does not have valid authentication credentials",
];

/// The code that a text describes in tonic's words; `UNKNOWN` says nothing, so that the message may.
pub(super) fn from_description(text: &str) -> Option<Kind> {
    let (_, rest) = text.split_once("code: '")?;
    let matches = |text: &&str| rest.strip_prefix(text).is_some_and(|rest| rest.starts_with('\''));
    let index = DESCRIPTIONS.iter().position(matches)?;
    Some(CODES[index].1).filter(|kind| *kind != Kind::Unclassified)
}

/// The codes as Go and as tonic show them.
pub(super) fn texts() -> impl Iterator<Item = String> {
    let names = CODES.iter().map(|(name, _)| format!("rpc error: code = {name}"));
    names.chain(DESCRIPTIONS.iter().map(|text| format!("code: '{text}', message: \"x\"")))
}

/// Classifies a gRPC status by its code and the trailer `grpc-retry-pushback-ms`.
///
/// A negative pushback asks not to retry at all, and the finding is marked as exhausted; a
/// malformed one counts as absent.
#[must_use]
pub fn grpc(code: i32, pushback: Option<&str>) -> Finding<'static> {
    if code == 0 {
        return Finding::SUCCESS;
    }
    let mut found = Finding::of(kind(code).unwrap_or(Kind::Unclassified));
    if let Some(value) = pushback
        && found.end.verdict.is_transient()
    {
        let is_negative = value.trim_ascii().parse::<i64>().is_ok_and(i64::is_negative);
        found.end.exhausted |= is_negative;
        found = found.retry_after(retry_after::millis(value));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ran, Verdict};
    use std::time::Duration;

    #[test]
    fn names_in_both_spellings() {
        for (index, (name, kind)) in CODES.iter().enumerate() {
            assert_eq!(from_name(name), Some((index + 1, *kind)));
            assert_eq!(from_name(&name.replace('_', "")), Some((index + 1, *kind)));
        }
        assert_eq!(from_name("OK"), None);
    }

    #[test]
    fn statuses_as_tonic_shows_them() {
        for (index, (_, kind)) in CODES.iter().enumerate() {
            let text = format!("fetch: code: '{}', message: \"x\"", DESCRIPTIONS[index]);
            let expected = Some(*kind).filter(|kind| *kind != Kind::Unclassified);
            assert_eq!(from_description(&text), expected, "{text}");
        }
        assert_eq!(from_description("code: 'Internal error was not found'"), None);
    }

    #[test]
    fn unavailable_may_have_run() {
        let found = grpc(14, None);
        assert_eq!((found.end.verdict, found.end.ran), (Verdict::TRANSIENT, Ran::Unknown));
    }

    #[test]
    fn pushback_in_all_forms() {
        let hint = |value| grpc(14, Some(value)).end.verdict;
        let after = |ms| Verdict::Transient { retry_after: Some(Duration::from_millis(ms)) };
        assert_eq!(hint("1500"), after(1_500));
        assert_eq!(hint("soon"), Verdict::TRANSIENT);
        assert!(grpc(14, Some("-1")).end.exhausted);
        assert!(!grpc(14, Some("soon")).end.exhausted);
        assert_eq!(grpc(5, Some("10")).end.verdict, Verdict::Permanent);
    }
}
