//! What the server's and the connection's errors mean for a record.
use crate::store::{StoreError, StoreErrorKind};
use redis::{ErrorKind, RedisError};
use std::{error::Error, fmt, io, sync::Arc};

/// An error of Redis, with what to do about it where that is known.
#[derive(Debug)]
struct Fault {
    cause: RedisError,
    advice: Option<&'static str>,
}

/// What may have happened, given this error.
///
/// A script writes first and tells then, and the server refuses it as a whole, so an error that
/// the server sent means that nothing has changed. Of a connection that broke nobody knows.
pub(super) fn store_error(cause: RedisError) -> StoreError {
    let (kind, advice) = meaning(&cause);
    StoreError::new(kind, Fault { cause, advice })
}

/// An error before anything was sent that changes something.
#[derive(Debug)]
struct Unsent(RedisError);

/// Says of the error of a connection that no server has answered on it yet.
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

/// Whether the server has no room for another record.
pub(super) fn is_full(error: &RedisError) -> bool {
    error.code() == Some("OOM")
}

/// Whether another connection may lead to a server that does better.
pub(super) fn is_stale(error: &RedisError) -> bool {
    error.is_timeout() || error.code() == Some("READONLY")
}

/// Whether another server may be the primary by now.
pub(super) fn is_of_a_failover(error: &RedisError) -> bool {
    matches!(error.code(), Some("READONLY" | "MASTERDOWN" | "LOADING" | "NOREPLICAS"))
}

/// Whether it is for a person to mend.
pub(super) fn is_denied(error: &RedisError) -> bool {
    error.kind() == ErrorKind::AuthenticationFailed
        || matches!(error.code(), Some("NOAUTH" | "WRONGPASS" | "NOPERM"))
}

fn meaning(error: &RedisError) -> (StoreErrorKind, Option<&'static str>) {
    use StoreErrorKind::{Refused, Uncertain, Unreachable, Unreadable};
    let Some(code) = error.code() else {
        #[cfg(feature = "redis-tls")]
        if tr_tls::is_refusal(error) {
            return (Unreachable, Some("check the certificate, its names and `tls_roots`"));
        }
        return match error.kind() {
            ErrorKind::Io if is_unsent(error) => (Unreachable, None),
            ErrorKind::Io if error.is_connection_refusal() => (Unreachable, None),
            ErrorKind::MasterNameNotFoundBySentinel => {
                (Unreachable, Some("in a failover, wait; else check the sentinels and the name"))
            }
            ErrorKind::AuthenticationFailed => {
                (Refused, Some("check the user and password in the address"))
            }
            ErrorKind::InvalidClientConfig => (Refused, Some("check the address")),
            ErrorKind::RESP3NotSupported => (Refused, Some("Redis 7.0 or later is needed")),
            _ => (Uncertain, None),
        };
    };
    match code {
        "LOADING" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "BUSY" | "NOREPLICAS" => {
            (Unreachable, None)
        }
        "READONLY" => (
            Unreachable,
            Some("it is a replica: give the address of the primary, or its sentinels"),
        ),
        "OOM" => (Refused, Some("raise `maxmemory`, or shorten the times to live")),
        "MISCONF" => (Refused, Some("the server cannot write to its disk")),
        "MOVED" | "ASK" | "CROSSSLOT" => {
            (Refused, Some("it is a node of a cluster that keeps other keys"))
        }
        "NOAUTH" | "WRONGPASS" => (Refused, Some("check the user and password in the address")),
        "NOPERM" => (
            Refused,
            Some("the user needs +@read +@write +@scripting +@pubsub +info +wait on its prefix"),
        ),
        "WRONGTYPE" => {
            (Unreadable, Some("something else writes under the same prefix: choose another"))
        }
        _ => (Refused, None),
    }
}

impl fmt::Display for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no connection came about: {}", self.0)
    }
}

impl Error for Unsent {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cause)?;
        self.advice.map_or(Ok(()), |advice| write!(f, " ({advice})"))
    }
}

impl Error for Fault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redis::{ServerErrorKind, make_extension_error};
    use std::io;

    #[test]
    fn an_error_says_what_may_have_happened() {
        use StoreErrorKind::{Refused, Uncertain, Unreachable};
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
            (server("OOM"), Refused),
            (server("MISCONF"), Refused),
            (server("NOPERM"), Refused),
            (server("WRONGTYPE"), StoreErrorKind::Unreadable),
            (server("ODD"), Refused),
        ] {
            let text = error.to_string();
            assert_eq!(store_error(error).kind(), kind, "{text}");
        }
        // Before a server has answered, the same have changed nothing.
        for kind in [io::ErrorKind::ConnectionReset, io::ErrorKind::TimedOut] {
            let told = store_error(unsent(io(kind)));
            assert_eq!(told.kind(), Unreachable, "{told}");
            assert!(told.to_string().contains(&kind.to_string()), "{told}");
        }
        let refused = (ErrorKind::AuthenticationFailed, "x").into();
        assert_eq!(store_error(unsent(refused)).kind(), Refused);
        assert!(is_full(&server("OOM")) && !is_full(&server("ODD")));
        assert!(is_stale(&io(io::ErrorKind::TimedOut)) && !is_stale(&server("OOM")));
        let read_only = (ErrorKind::Server(ServerErrorKind::ReadOnly), "x").into();
        assert!(is_stale(&read_only) && is_of_a_failover(&read_only));
    }
}
