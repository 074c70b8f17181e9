//! Maps errors of the server and the connection to kinds of store errors.
use crate::store::{StoreError, StoreErrorKind};
use redis::{ErrorKind, RedisError};
use std::{error::Error, io, sync::Arc};

/// A Redis error, with what to do about it where that is known.
#[derive(Debug, thiserror::Error)]
#[error("{cause}{}", .advice.map(|advice| format!(" ({advice})")).unwrap_or_default())]
struct Fault {
    #[source]
    cause: RedisError,
    advice: Option<&'static str>,
}

/// The store error of a Redis error.
///
/// A script writes before it publishes, and the server refuses it as a whole, so an error from the
/// server means that nothing has changed. After a broken connection that is unknown.
pub(super) fn store_error(cause: RedisError) -> StoreError {
    let (kind, advice) = meaning(&cause);
    StoreError::new(kind, Fault { cause, advice })
}

/// An error before any change was sent.
#[derive(Debug, thiserror::Error)]
#[error("connecting failed: {0}")]
struct Unsent(#[source] RedisError);

/// Marks the error of a connection on which the server has not replied yet.
pub(super) fn unsent(error: RedisError) -> RedisError {
    match meaning(&error) {
        (StoreErrorKind::Uncertain, _) => io::Error::other(Unsent(error)).into(),
        _ => error,
    }
}

fn is_unsent(error: &RedisError) -> bool {
    let cause =
        error.source().and_then(|cause| cause.downcast_ref::<Arc<dyn Error + Send + Sync>>());
    let cause = cause.and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.and_then(io::Error::get_ref).is_some_and(<dyn Error + Send + Sync>::is::<Unsent>)
}

/// Whether the error is the reply to a command and says nothing of its connection. All others leave the
/// connection in an unknown state, unauthenticated, or on a server that is no primary.
pub(super) fn is_of_the_command(error: &RedisError) -> bool {
    const CODES: &str = "BUSY LOADING MASTERDOWN MISCONF NOPERM NOREPLICAS NOSCRIPT OOM WRONGTYPE";
    error.code().is_some_and(|code| CODES.split(' ').any(|it| it == code))
}

/// Whether the primary may have changed.
pub(super) fn is_of_a_failover(error: &RedisError) -> bool {
    matches!(error.code(), Some("READONLY" | "MASTERDOWN" | "LOADING" | "NOREPLICAS"))
}

/// Whether the credentials or permissions are wrong.
pub(super) fn is_denied(error: &RedisError) -> bool {
    error.kind() == ErrorKind::AuthenticationFailed
        || matches!(error.code(), Some("NOAUTH" | "WRONGPASS" | "NOPERM"))
}

/// How a server says that it takes no further client.
const NO_PLACE: &str = "max number of clients reached";

fn meaning(error: &RedisError) -> (StoreErrorKind, Option<&'static str>) {
    use StoreErrorKind::{Full, Refused, Uncertain, Unreachable, Unreadable};
    let Some(code) = error.code() else {
        #[cfg(feature = "redis-tls")]
        if tr_tls::is_refusal(error) {
            return (Unreachable, Some("check the certificate, its names and `tls_roots`"));
        }
        return match error.kind() {
            ErrorKind::Io if is_unsent(error) => (Unreachable, None),
            ErrorKind::Io if error.is_connection_refusal() => (Unreachable, None),
            ErrorKind::MasterNameNotFoundBySentinel => (
                Unreachable,
                Some("during a failover, retry; otherwise check the sentinels and the name"),
            ),
            ErrorKind::AuthenticationFailed => {
                (Refused, Some("check the user and password in the address"))
            }
            ErrorKind::InvalidClientConfig => (Refused, Some("check the address")),
            ErrorKind::RESP3NotSupported => (Refused, Some("use Redis 7.0 or later")),
            _ => (Uncertain, None),
        };
    };
    match code {
        "LOADING" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "BUSY" | "NOREPLICAS" => {
            (Unreachable, None)
        }
        "READONLY" => {
            (Unreachable, Some("it is a replica: use the address of the primary, or its sentinels"))
        }
        "ERR" if error.detail().is_some_and(|it| it.starts_with(NO_PLACE)) => {
            (Unreachable, Some("raise its `maxclients`, or close clients"))
        }
        "OOM" => (Full, Some("raise the server's `maxmemory`, or shorten the times to live")),
        "MISCONF" => (
            Refused,
            Some("the server cannot write to its disk: free space, or check its permissions"),
        ),
        "MOVED" | "ASK" | "CROSSSLOT" => {
            (Refused, Some("it is a cluster node: use a server that keeps all keys"))
        }
        "NOAUTH" | "WRONGPASS" => (Refused, Some("check the user and password in the address")),
        "NOPERM" => (
            Refused,
            Some("grant the user +@read +@write +@scripting +@pubsub +info +wait on the prefix"),
        ),
        "WRONGTYPE" => {
            (Unreadable, Some("another program uses the same prefix: choose a different one"))
        }
        _ => (Refused, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redis::{ServerErrorKind, make_extension_error};

    #[test]
    fn an_error_says_what_may_have_happened() {
        use StoreErrorKind::{Full, Refused, Uncertain, Unreachable};
        let io = |kind: io::ErrorKind| RedisError::from(io::Error::from(kind));
        let server = |code: &str| make_extension_error(code.into(), Some("because".into()));
        for (error, kind) in [
            (io(io::ErrorKind::ConnectionRefused), Unreachable),
            (io(io::ErrorKind::ConnectionReset), Uncertain),
            (io(io::ErrorKind::TimedOut), Uncertain),
            (io(io::ErrorKind::UnexpectedEof), Uncertain),
            ((ErrorKind::Parse, "half a reply").into(), Uncertain),
            ((ErrorKind::Server(ServerErrorKind::BusyLoading), "x").into(), Unreachable),
            ((ErrorKind::Server(ServerErrorKind::ReadOnly), "x").into(), Unreachable),
            ((ErrorKind::Server(ServerErrorKind::MasterDown), "x").into(), Unreachable),
            ((ErrorKind::Server(ServerErrorKind::Moved), "x").into(), Refused),
            ((ErrorKind::AuthenticationFailed, "x").into(), Refused),
            (server("NOREPLICAS"), Unreachable),
            (server("OOM"), Full),
            (make_extension_error("ERR".into(), Some(NO_PLACE.into())), Unreachable),
            (server("MISCONF"), Refused),
            (server("NOPERM"), Refused),
            (server("WRONGTYPE"), StoreErrorKind::Unreadable),
            (server("ODD"), Refused),
        ] {
            let text = error.to_string();
            assert_eq!(store_error(error).kind(), kind, "{text}");
        }
        // Before a server has replied, the same errors mean that nothing has changed.
        for kind in [io::ErrorKind::ConnectionReset, io::ErrorKind::TimedOut] {
            let told = store_error(unsent(io(kind)));
            assert_eq!(told.kind(), Unreachable, "{told}");
            assert!(told.to_string().contains(&kind.to_string()), "{told}");
        }
        let refused = (ErrorKind::AuthenticationFailed, "x").into();
        assert_eq!(store_error(unsent(refused)).kind(), Refused);
        for code in ["OOM", "LOADING", "NOSCRIPT"] {
            assert!(is_of_the_command(&server(code)), "{code}");
        }
        for code in ["NOAUTH", "READONLY", "ERR", "WRONGPASS", "ODD"] {
            assert!(!is_of_the_command(&server(code)), "{code}");
        }
        assert!(!is_of_the_command(&io(io::ErrorKind::TimedOut)));
        let read_only = (ErrorKind::Server(ServerErrorKind::ReadOnly), "x").into();
        assert!(is_of_a_failover(&read_only));
    }
}
