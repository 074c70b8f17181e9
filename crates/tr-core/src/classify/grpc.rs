//! gRPC codes, by number, by name and by tonic's description.
use super::{Finding, Kind};
use tr_policy::classify::GRPC as CODES;

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
    Finding::by_code(tr_policy::classify::grpc(code, pushback))
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
