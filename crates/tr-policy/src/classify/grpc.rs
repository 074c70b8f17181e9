//! gRPC codes.
use super::{Kind, retry_after};
use crate::{Classification, Verdict};

/// The codes from 1 on, by their names.
#[doc(hidden)]
pub const CODES: [(&str, Kind); 16] = [
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

/// Classifies a gRPC status by its code and the trailer `grpc-retry-pushback-ms`.
///
/// A negative pushback asks not to retry at all, and the end is marked as exhausted; a
/// malformed one counts as absent.
#[must_use]
pub fn grpc(code: i32, pushback: Option<&str>) -> Classification<'static> {
    if code == 0 {
        return Classification::SUCCESS;
    }
    let mut end = kind(code).unwrap_or(Kind::Unclassified).classification();
    if let (Some(value), Verdict::Transient { retry_after }) = (pushback, &mut end.verdict) {
        end.exhausted |= value.trim_ascii().parse::<i64>().is_ok_and(i64::is_negative);
        *retry_after = retry_after::millis(value);
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ran;
    use std::time::Duration;

    #[test]
    fn unavailable_may_have_run() {
        let end = grpc(14, None);
        assert_eq!((end.verdict, end.ran), (Verdict::TRANSIENT, Ran::Unknown));
    }

    #[test]
    fn pushback_in_all_forms() {
        let hint = |value| grpc(14, Some(value)).verdict;
        let after = |ms| Verdict::Transient { retry_after: Some(Duration::from_millis(ms)) };
        assert_eq!(hint("1500"), after(1_500));
        assert_eq!(hint("soon"), Verdict::TRANSIENT);
        assert!(grpc(14, Some("-1")).exhausted);
        assert!(!grpc(14, Some("soon")).exhausted);
        assert_eq!(grpc(5, Some("10")).verdict, Verdict::Permanent);
    }
}
