//! Error numbers and names of operating systems, Node and libuv.
use super::{Finding, Kind};
use std::io;
pub(super) use tr_policy::classify::io_kind;

/// Names, sorted.
pub(super) const NAMES: &[(&str, Kind)] = &[
    ("e2big", Kind::TooLarge),
    ("eacces", Kind::PermissionDenied),
    ("eaddrinuse", Kind::AlreadyExists),
    ("eaddrnotavail", Kind::NetworkError),
    ("eagain", Kind::Busy),
    ("eai_again", Kind::DnsFailure),
    ("eai_fail", Kind::DnsFailure),
    ("eai_nodata", Kind::DnsFailure),
    ("eai_noname", Kind::DnsFailure),
    ("ebadf", Kind::InvalidInput),
    ("ebusy", Kind::Busy),
    ("ecanceled", Kind::Cancelled),
    ("econnaborted", Kind::ConnectionReset),
    ("econnrefused", Kind::ConnectionRefused),
    ("econnreset", Kind::ConnectionReset),
    ("edquot", Kind::NoSpace),
    ("eexist", Kind::AlreadyExists),
    ("efbig", Kind::TooLarge),
    ("ehostdown", Kind::NetworkError),
    ("ehostunreach", Kind::NetworkError),
    ("einval", Kind::InvalidInput),
    ("eisdir", Kind::InvalidInput),
    ("eloop", Kind::InvalidInput),
    ("emfile", Kind::Busy),
    ("enametoolong", Kind::InvalidInput),
    ("enetdown", Kind::NetworkError),
    ("enetreset", Kind::ConnectionReset),
    ("enetunreach", Kind::NetworkError),
    ("enfile", Kind::Busy),
    ("enobufs", Kind::Busy),
    ("enodata", Kind::DnsFailure),
    ("enoent", Kind::NotFound),
    ("enomem", Kind::Busy),
    ("enospc", Kind::NoSpace),
    ("enosys", Kind::Unsupported),
    ("enotconn", Kind::NetworkError),
    ("enotdir", Kind::InvalidInput),
    ("enotempty", Kind::InvalidInput),
    ("enotfound", Kind::DnsFailure),
    ("enotsup", Kind::Unsupported),
    ("eopnotsupp", Kind::Unsupported),
    ("eperm", Kind::PermissionDenied),
    ("epipe", Kind::ConnectionReset),
    ("eproto", Kind::NetworkError),
    ("erofs", Kind::PermissionDenied),
    ("eservfail", Kind::DnsFailure),
    ("etimedout", Kind::NetworkTimeout),
    ("etimeout", Kind::NetworkTimeout),
    ("etxtbsy", Kind::Busy),
    ("ewouldblock", Kind::Busy),
    ("exdev", Kind::InvalidInput),
];

/// What a number of this system, or of libuv's own, means. Node reports them negated.
pub(super) fn number(errno: i32) -> Option<Kind> {
    match errno {
        -3_014..=-3_000 => Some(Kind::DnsFailure),
        -4_095 => Some(Kind::ConnectionReset),
        -999..=-1 | 1..1_000 => io_kind(io::Error::from_raw_os_error(errno.abs()).kind()),
        _ => None,
    }
}

/// Classifies an error number of this system; negated, as Node reports it, or not.
#[must_use]
pub fn errno(number: i32) -> Finding<'static> {
    Finding::of(self::number(number).unwrap_or(Kind::Unclassified))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libuv_numbers_of_name_resolution() {
        assert_eq!(errno(-3_008).kind, Some(Kind::DnsFailure));
        assert_eq!(errno(-3_001).kind, Some(Kind::DnsFailure));
        assert_eq!(errno(i32::MIN).kind, Some(Kind::Unclassified));
        assert_eq!(errno(0).kind, Some(Kind::Unclassified));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn linux_numbers_in_either_sign() {
        for (number, kind) in [
            (111, Kind::ConnectionRefused),
            (104, Kind::ConnectionReset),
            (110, Kind::NetworkTimeout),
            (113, Kind::NetworkError),
            (32, Kind::ConnectionReset),
            (2, Kind::NotFound),
            (13, Kind::PermissionDenied),
            (28, Kind::NoSpace),
        ] {
            assert_eq!(errno(number).kind, Some(kind), "{number}");
            assert_eq!(errno(-number).kind, Some(kind), "-{number}");
        }
    }
}
