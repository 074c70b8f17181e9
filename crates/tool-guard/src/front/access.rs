//! Who may send a request, decided by its head: before its body is read.
use super::log_limit::LogLimit;
use crate::{files::read_secret, secrets};
use anyhow::Context as _;
use hyper::{
    StatusCode, Version,
    header::{self, HeaderMap, HeaderName},
    http::request::Parts,
};
use std::path::Path;
use tool_reliability::{
    admin::{self, is_local_host, is_same_token, without_port},
    telemetry::TARGET,
};

/// The header with the token; `authorization` may be for a proxy.
pub(crate) const TOKEN: HeaderName = HeaderName::from_static("x-tool-guard-token");

/// Headers of which two would mean two things.
const ONCE: [HeaderName; 8] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::TRANSFER_ENCODING,
    header::AUTHORIZATION,
    header::ORIGIN,
    TOKEN,
    HeaderName::from_static("sec-fetch-site"),
];

/// How long the head of a request may be, in bytes.
pub(crate) const HEAD_BYTES: usize = 32 * 1024;

/// What a request must have.
#[derive(Debug, Default)]
pub(crate) struct Access {
    pub(crate) token: Option<Box<str>>,
    /// Besides those of this machine.
    pub(crate) hosts: Vec<String>,
    pub(crate) origins: Vec<String>,
    /// More headers that may occur once.
    pub(crate) once: &'static [HeaderName],
    /// The log of refused requests.
    pub(crate) limit: LogLimit,
}

/// Why a request is refused.
pub(crate) type Refusal = (StatusCode, &'static str);

impl Access {
    /// Checks a request, and logs a refusal as this event.
    ///
    /// # Errors
    /// If the request may not be answered.
    pub(crate) fn admit(&self, head: &Parts, event: &'static str) -> Result<(), Refusal> {
        self.check(head).inspect_err(|(_, why)| {
            if let Some(left_out) = self.limit.now() {
                tracing::warn!(target: TARGET, event, why, left_out);
            }
        })
    }

    fn check(&self, head: &Parts) -> Result<(), Refusal> {
        const BAD: StatusCode = StatusCode::BAD_REQUEST;
        const FORBIDDEN: StatusCode = StatusCode::FORBIDDEN;
        let headers = &head.headers;
        if head.version != Version::HTTP_11 {
            return Err((BAD, "only HTTP/1.1 is served: repeat the request with it"));
        }
        let bytes = headers.iter().map(|(name, value)| name.as_str().len() + value.len());
        if bytes.sum::<usize>() + head.uri.path().len() > HEAD_BYTES {
            const WHY: &str = "the request's path and headers are longer than 32 KiB: send fewer or shorter headers";
            return Err((StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, WHY));
        }
        if ONCE.iter().chain(self.once).any(|name| headers.get_all(name).iter().nth(1).is_some()) {
            return Err((BAD, "a header occurs twice that is allowed once: send it once"));
        }
        if headers.contains_key(header::CONTENT_LENGTH)
            && headers.contains_key(header::TRANSFER_ENCODING)
        {
            return Err((BAD, "send either content-length or transfer-encoding"));
        }
        if head.uri.authority().is_some() {
            return Err((BAD, "send the path alone in the request line"));
        }
        let host = text(headers, &header::HOST).map(without_port);
        let is_known = |host: &str| {
            is_local_host(host) || self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
        };
        if !host.is_some_and(is_known) {
            const WHY: &str = "`host` must name this machine, or a name given by --allow-host";
            return Err((FORBIDDEN, WHY));
        }
        let origin = headers.get(header::ORIGIN);
        // A page may come from the listener itself, over the loopback: with the same host and port.
        let here = text(headers, &header::HOST).filter(|host| is_local_host(without_port(host)));
        let is_here = |of: &str| here.is_some_and(|here| of.eq_ignore_ascii_case(here));
        let is_allowed = |origin: &str| {
            origin.strip_prefix("http://").is_some_and(is_here) || self.names_origin(origin)
        };
        if origin.is_some_and(|origin| !origin.to_str().is_ok_and(is_allowed)) {
            const WHY: &str =
                "web pages may send requests only from origins given by --allow-origin";
            return Err((FORBIDDEN, WHY));
        }
        // A browser that sends no origin says at least where the page is from.
        let site = text(headers, &HeaderName::from_static("sec-fetch-site"));
        if origin.is_none() && site.is_some_and(|site| site != "none") {
            return Err((FORBIDDEN, "a web page may not send this request"));
        }
        let given = headers.get(TOKEN).map(hyper::http::HeaderValue::as_bytes);
        match &self.token {
            Some(token) if !given.is_some_and(|given| is_same_token(given, token.as_bytes())) => {
                Err((StatusCode::UNAUTHORIZED, "send the token as x-tool-guard-token"))
            }
            _ => Ok(()),
        }
    }

    /// Whether --allow-origin names this origin.
    pub(crate) fn names_origin(&self, origin: &str) -> bool {
        self.origins.iter().any(|known| known.eq_ignore_ascii_case(origin))
    }
}

/// Other content types need no preflight, so a page of any site could send them.
pub(crate) fn check_json(head: &Parts) -> Result<(), Refusal> {
    let mut parts = text(&head.headers, &header::CONTENT_TYPE).unwrap_or_default().split(';');
    let essence = parts.next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err((StatusCode::BAD_REQUEST, "send `content-type: application/json`"));
    }
    // What another reader would make of the bytes is not known here.
    let is_plain = |coding: &header::HeaderValue| {
        coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity")
    };
    if !head.headers.get_all(header::CONTENT_ENCODING).iter().all(is_plain) {
        return Err((StatusCode::BAD_REQUEST, "send the body without a content-encoding"));
    }
    let charset = parts
        .filter_map(|param| param.split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    let charset = charset.map_or("utf-8", |(_, value)| value.trim().trim_matches('"'));
    if !["utf-8", "utf8", "us-ascii"].iter().any(|it| charset.eq_ignore_ascii_case(it)) {
        return Err((StatusCode::BAD_REQUEST, "send the body as UTF-8"));
    }
    Ok(())
}

/// What is read beside the endpoint: metadata, which nothing changes.
pub(crate) fn check_metadata(head: &Parts) -> Result<(), Refusal> {
    let path = head.uri.path();
    // Another server may take such a path for that of its endpoint.
    let lower = path.to_ascii_lowercase();
    let is_plain = !["/.", "\\", "%2e", "%2f", "%5c"]
        .iter()
        .any(|part| lower.strip_prefix("/.well-known").unwrap_or(&lower).contains(part));
    match head.method {
        _ if !is_plain => Err((StatusCode::NOT_FOUND, "the path is not that of metadata")),
        hyper::Method::GET | hyper::Method::HEAD | hyper::Method::OPTIONS => Ok(()),
        _ => Err((StatusCode::METHOD_NOT_ALLOWED, "metadata is read by GET")),
    }
}

/// The token of a file: 16 or more visible characters.
///
/// # Errors
/// If the file cannot be read, or holds no token.
pub(crate) fn token(file: &Path) -> anyhow::Result<Box<str>> {
    let token = secret(file)?;
    anyhow::ensure!(
        admin::Access::token(&token).is_ok(),
        "{} holds no usable token: write 16 or more visible ASCII characters without spaces",
        file.display()
    );
    Ok(token.into())
}

/// The token in a file, which is kept out of logs.
///
/// # Errors
/// If the file cannot be used.
pub(crate) fn secret(file: &Path) -> anyhow::Result<String> {
    let text = read_secret(file).with_context(|| format!("cannot use {}", file.display()))?;
    let token = text.trim_end_matches(['\r', '\n']);
    secrets::keep(token);
    Ok(token.to_owned())
}

/// The value of a header, if it is text.
pub(crate) fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    fn check(access: &Access, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::post("/call");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        access.check(&head).map_or_else(|(status, _)| status.as_u16(), |()| 200)
    }

    #[test]
    fn only_this_machine_s_names_and_listed_ones() {
        let access = Access { hosts: vec!["guard.example".into()], ..Access::default() };
        for host in ["localhost", "LOCALHOST:9480", "127.0.0.1:1", "[::1]:9480", "guard.example:1"]
        {
            assert_eq!(check(&access, &[("host", host)]), 200, "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "guard.example.evil", "", "0.0.0.0"]
        {
            assert_eq!(check(&access, &[("host", host)]), 403, "{host}");
        }
        assert_eq!(check(&access, &[]), 403);
    }

    #[test]
    fn only_pages_of_listed_origins() {
        let access = Access { origins: vec!["https://ui.example".into()], ..Access::default() };
        let with =
            |more: &[(&str, &str)]| check(&access, &[&[("host", "localhost")], more].concat());
        assert_eq!(with(&[("origin", "https://ui.example")]), 200);
        assert_eq!(
            with(&[("origin", "https://ui.example"), ("sec-fetch-site", "cross-site")]),
            200
        );
        for origin in ["null", "http://ui.example", "https://ui.example:1", "http://localhost:1"] {
            assert_eq!(with(&[("origin", origin)]), 403, "{origin}");
        }
        // Those of the listener itself.
        for (host, origin, status) in [
            ("localhost:1", "http://localhost:1", 200),
            ("127.0.0.1:1", "http://127.0.0.1:1", 200),
            ("127.0.0.1:1", "http://127.0.0.1:2", 403),
            ("127.0.0.1:1", "https://127.0.0.1:1", 403),
            ("127.0.0.1:1", "http://localhost:1", 403),
            ("evil.example:1", "http://evil.example:1", 403),
        ] {
            let headers = [("host", host), ("origin", origin)];
            assert_eq!(check(&access, &headers), status, "{host} {origin}");
        }
        let named = Access { hosts: vec!["guard.example".into()], ..Access::default() };
        let headers = [("host", "guard.example"), ("origin", "http://guard.example")];
        assert_eq!(check(&named, &headers), 403);
        for site in ["cross-site", "same-site", "same-origin"] {
            assert_eq!(with(&[("sec-fetch-site", site)]), 403, "{site}");
        }
        assert_eq!(with(&[("sec-fetch-site", "none")]), 200);
    }

    #[test]
    fn only_with_the_token_where_there_is_one() {
        let access = Access { token: Some("0123456789abcdef".into()), ..Access::default() };
        let with =
            |more: &[(&str, &str)]| check(&access, &[&[("host", "localhost")], more].concat());
        assert_eq!(with(&[("x-tool-guard-token", "0123456789abcdef")]), 200);
        assert_eq!(with(&[("x-tool-guard-token", "0123456789abcdeX")]), 401);
        assert_eq!(with(&[("authorization", "Bearer 0123456789abcdef")]), 401);
        assert_eq!(with(&[]), 401);
    }

    #[test]
    fn bodies_are_plain_utf_8() {
        let check = |headers: &[(&str, &str)]| {
            let mut request = Request::post("/mcp");
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            check_json(&request.body(()).unwrap().into_parts().0).is_ok()
        };
        let json = ("content-type", "application/json");
        for good in [
            &[json][..],
            &[json, ("content-encoding", "identity")],
            &[("content-type", "application/json; charset=UTF-8")],
            &[("content-type", "Application/JSON ;charset=\"utf-8\"")],
        ] {
            assert!(check(good), "{good:?}");
        }
        for bad in [
            &[json, ("content-encoding", "gzip")][..],
            &[json, ("content-encoding", "identity"), ("content-encoding", "br")],
            &[("content-type", "application/json; charset=utf-16le")],
            &[("content-type", "application/json; a=b; Charset = latin1")],
            &[("content-type", "text/plain")],
            &[],
        ] {
            assert!(!check(bad), "{bad:?}");
        }
    }

    #[test]
    fn metadata_is_read_by_plain_paths() {
        let check = |method: &str, path: &str| {
            let request = Request::builder().method(method).uri(path).body(()).unwrap();
            check_metadata(&request.into_parts().0)
                .map_or_else(|(status, _)| status.as_u16(), |()| 200)
        };
        let plain = "/.well-known/oauth-protected-resource/mcp";
        assert_eq!(
            ["GET", "HEAD", "POST", "DELETE"].map(|it| check(it, plain)),
            [200, 200, 405, 405]
        );
        for path in
            ["/../mcp", "/./../mcp", "/%2E%2e/mcp", "/..%2fmcp", "/a%5c..%5cmcp", "/.hidden"]
        {
            assert_eq!(check("GET", &format!("/.well-known{path}")), 404, "{path}");
        }
    }

    #[test]
    fn what_could_mean_two_things_is_refused() {
        let access = Access::default();
        for twice in [
            [("host", "localhost"), ("host", "localhost")],
            [("content-length", "1"), ("transfer-encoding", "chunked")],
            [("content-length", "1"), ("content-length", "1")],
            [("content-type", "application/json"), ("content-type", "text/plain")],
        ] {
            let all = [&[("host", "localhost")], &twice[..]].concat();
            assert_eq!(check(&access, &all), 400, "{twice:?}");
        }
    }
}
