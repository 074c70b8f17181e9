//! Headers on their way through the guard.
use crate::wire::http_names::{PARAM, remove};
use hyper::{
    HeaderMap,
    header::{
        ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderName, HeaderValue,
        ORIGIN, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
    },
};

/// The headers that belong to one connection: RFC 9110, section 7.6.1. A body's length is its
/// connection's, too.
const OF_CONNECTION: [HeaderName; 10] = [
    CONNECTION,
    CONTENT_LENGTH,
    EXPECT,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The guard's own headers.
const OWN: &str = "x-tool-guard-";

/// Removes the headers that belong to one connection, and those that `connection` names.
pub(crate) fn without_connection(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&OF_CONNECTION).chain(&[PROXY_AUTHENTICATE]) {
        headers.remove(name);
    }
}

/// A client's headers as the server at `host` gets them.
pub(super) fn forwarded(headers: &HeaderMap, host: &HeaderValue) -> HeaderMap {
    let mut taken = headers.clone();
    without_connection(&mut taken);
    remove(&mut taken, |name| name.starts_with(OWN) || name == ORIGIN);
    taken.insert(HOST, host.clone());
    taken.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    taken
}

/// The headers of a request for a stream, in the session of these.
pub(super) fn of_stream(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    remove(&mut headers, |name| {
        matches!(name, "content-type" | "mcp-method" | "mcp-name" | "idempotency-key")
            || name.starts_with(PARAM)
    });
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_connection_stay_there() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Hop"),
            ("connection", "x-other"),
            ("x-hop", "1"),
            ("x-other", "1"),
            ("keep-alive", "5"),
            ("te", "trailers"),
            ("upgrade", "h2c"),
            ("transfer-encoding", "chunked"),
            ("content-length", "7"),
            ("proxy-authorization", "x"),
            ("host", "guard:1"),
            ("origin", "http://x"),
            ("accept-encoding", "gzip"),
            ("x-tool-guard-token", "secret"),
            ("authorization", "Bearer t"),
            ("cookie", "a=1"),
            ("cookie", "b=2"),
            ("mcp-session-id", "s"),
            ("last-event-id", "9"),
            ("mcp-param-region", "eu"),
        ] {
            headers.append(name, value.parse().unwrap());
        }
        let taken = forwarded(&headers, &HeaderValue::from_static("mcp.example.com"));
        let mut left: Vec<_> = taken
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        left.sort();
        assert_eq!(
            left,
            [
                "accept-encoding: identity",
                "authorization: Bearer t",
                "cookie: a=1",
                "cookie: b=2",
                "host: mcp.example.com",
                "last-event-id: 9",
                "mcp-param-region: eu",
                "mcp-session-id: s",
            ]
        );
    }
}
