//! [`DefaultPolicy`] for `http` requests and responses.
use super::{
    default_policy::DefaultPolicy,
    request::{CloneRequest, RequestPolicy},
    response::{End, ResponsePolicy},
};
#[cfg(feature = "keys")]
use crate::keys::{Fingerprint, FingerprintKey};
use crate::{Classification, Effect, KeyRef, Ran, SystemClock, classify};
use ::http::{HeaderName, HeaderValue, Method, Request, Response, Uri, uri::Authority};

/// Which attempt a request is, from 0; the first goes without.
static ATTEMPT: HeaderName = HeaderName::from_static("x-retry-attempt");

/// Where clients say which attempt a request is, and from which number they count.
static ATTEMPTS: [(HeaderName, u32); 4] = [
    (HeaderName::from_static("x-retry-attempt"), 0),
    (HeaderName::from_static("x-stainless-retry-count"), 0),
    (HeaderName::from_static("grpc-previous-rpc-attempts"), 0),
    (HeaderName::from_static("x-envoy-attempt-count"), 1),
];

/// Tells other processes that a request has been retried already.
static SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

impl<B> RequestPolicy<Request<B>> for DefaultPolicy {
    /// The URL's origin ([`KeyRef::of_uri`]): calls of one scheme, host and port share a breaker.
    ///
    /// A request in origin form (`GET /path`) names no scheme; its key is the host and port of its
    /// `host` header, and the port stays as it is written, since no scheme says which one is left
    /// out. Events name the host and port as the request spells them.
    ///
    /// A gRPC request that names no host, as a channel gets it, has its service as its key: `bank.Bank`.
    fn key<'r>(&self, req: &'r Request<B>) -> KeyRef<'r> {
        if req.uri().authority().is_some() {
            return KeyRef::of_uri(req.uri());
        }
        let header = |name| req.headers().get(name)?.to_str().ok();
        if let Some(host) = header("host") {
            return KeyRef::origin("", host);
        }
        let is_grpc =
            header("content-type").is_some_and(|kind| kind.starts_with("application/grpc"));
        let service = req.uri().path().split('/').nth(1).filter(|_| is_grpc);
        service.map_or(KeyRef::origin("", ""), KeyRef::new)
    }

    /// By the method's definition: safe methods read, PUT and DELETE are idempotent.
    fn effect(&self, req: &Request<B>) -> Effect {
        match *req.method() {
            Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE => Effect::ReadOnly,
            Method::PUT | Method::DELETE => Effect::Idempotent,
            _ => Effect::Mutating,
        }
    }

    /// By `x-retry-attempt`, and by what other clients call it; a malformed number counts as absent.
    fn attempt(&self, req: &Request<B>) -> u32 {
        let count = |(name, first): &(HeaderName, u32)| {
            let count: u32 = req.headers().get(name)?.to_str().ok()?.trim().parse().ok()?;
            Some(count.saturating_sub(*first))
        };
        ATTEMPTS.iter().filter_map(count).max().unwrap_or(0)
    }

    fn set_attempt(&self, req: &mut Request<B>, attempt: u32) {
        req.headers_mut().insert(&ATTEMPT, HeaderValue::from(attempt));
    }

    /// Of the header `idempotency-key`.
    #[cfg(feature = "keys")]
    fn key_fingerprint(&self, req: &Request<B>, key: &FingerprintKey) -> Option<Fingerprint> {
        req.headers().get("idempotency-key").map(|value| key.fingerprint(value))
    }

    fn traceparent<'r>(&self, req: &'r Request<B>) -> Option<&'r str> {
        req.headers().get("traceparent")?.to_str().ok()
    }
}

impl<B: Clone> CloneRequest<Request<B>> for DefaultPolicy {
    fn clone_request(&self, req: &Request<B>) -> Option<Request<B>> {
        Some(req.clone())
    }
}

impl<'r> KeyRef<'r> {
    /// The [origin](KeyRef::origin) of a URI, by which breakers of HTTP requests are found. Of one
    /// without a scheme it is the host and port alone, of one without a host the empty name.
    ///
    /// ```
    /// use http::Uri;
    /// use tr_policy::KeyRef;
    ///
    /// let uri = Uri::from_static("https://ada:secret@API.example.com:443/v1/orders?page=2");
    /// assert_eq!(KeyRef::of_uri(&uri).to_string(), "https://api.example.com");
    /// assert_eq!(KeyRef::of_uri(&uri), KeyRef::new("https://api.example.com"));
    /// ```
    #[must_use]
    pub fn of_uri(uri: &'r Uri) -> Self {
        Self::origin(uri.scheme_str().unwrap_or(""), uri.authority().map_or("", Authority::as_str))
    }
}

/// What retry knows of all attempts together, noted in a response that failed.
#[derive(Clone, Copy, Debug)]
struct Attempts {
    ran: Ran,
    exhausted: bool,
}

/// For a client: a response is a remote server's. 425 and 429, the client's own connect error and
/// `NotSent` of `tr-core` say that nothing was done. Around a handler of one's own they do not:
/// there, answer with [`of_handler`](Classification::of_handler).
///
/// By status and `Retry-After`, of gRPC by `grpc-status` where it is a header, and by what an inner
/// retry noted. A `grpc-status` in the trailers comes too late to be read.
impl<B> ResponsePolicy<Response<B>> for DefaultPolicy {
    fn classify<'r>(&self, end: End<'r, Response<B>>) -> Classification<'r> {
        match end {
            Ok(res) => {
                let header = |name: &str| res.headers().get(name)?.to_str().ok();
                let seen = classify::http_response(res.status().as_u16(), header, &SystemClock);
                match res.extensions().get() {
                    Some(&Attempts { ran, exhausted }) => Classification { ran, exhausted, ..seen },
                    None => seen,
                }
            }
            Err(error) => classify::http_error(error),
        }
    }

    fn note_attempts(&self, res: &mut Response<B>, ran: Ran, exhausted: bool) {
        res.extensions_mut().insert(Attempts { ran, exhausted });
        if exhausted {
            res.headers_mut().insert(&SHOULD_RETRY, HeaderValue::from_static("false"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    #[test]
    fn attempts_are_counted_as_their_clients_count() {
        let attempt = |headers: &[(&str, &str)]| {
            let req = headers
                .iter()
                .fold(Request::get("/x"), |req, (name, value)| req.header(*name, *value));
            DefaultPolicy.attempt(&req.body(()).unwrap())
        };
        assert_eq!(attempt(&[]), 0);
        assert_eq!(attempt(&[("x-retry-attempt", "2")]), 2);
        assert_eq!(attempt(&[("x-stainless-retry-count", "0")]), 0);
        assert_eq!(attempt(&[("grpc-previous-rpc-attempts", "1")]), 1);
        assert_eq!(attempt(&[("x-envoy-attempt-count", "1")]), 0);
        assert_eq!(attempt(&[("x-envoy-attempt-count", "0")]), 0);
        assert_eq!(attempt(&[("x-envoy-attempt-count", "3"), ("x-retry-attempt", "1")]), 2);
        for malformed in ["", "-1", "two", "1.5", "99999999999"] {
            assert_eq!(attempt(&[("x-retry-attempt", malformed)]), 0, "{malformed}");
        }
    }

    #[test]
    fn that_a_response_was_retried_is_known_in_this_process_and_in_others() {
        let mut res = Response::builder().status(503).body(()).unwrap();
        DefaultPolicy.note_attempts(&mut res, Ran::Unknown, true);
        let here = DefaultPolicy.classify(Ok(&res));
        assert_eq!((here.exhausted, here.ran), (true, Ran::Unknown));
        res.extensions_mut().clear();
        assert!(DefaultPolicy.classify(Ok(&res)).exhausted);
        res.headers_mut().clear();
        assert!(!DefaultPolicy.classify(Ok(&res)).exhausted);
    }

    #[test]
    fn a_grpc_request_without_a_host_is_known_by_its_service() {
        let request = |kind| {
            let request = Request::post("/bank.Bank/Pay").header("content-type", kind);
            request.body(()).unwrap()
        };
        assert_eq!(DefaultPolicy.key(&request("application/grpc")).to_string(), "bank.Bank");
        assert_eq!(DefaultPolicy.key(&request("application/json")).to_string(), "");
    }

    #[test]
    fn a_grpc_status_among_the_headers_counts() {
        let answer = |headers: &[(&str, &str)]| {
            let res = headers
                .iter()
                .fold(Response::builder(), |res, (name, value)| res.header(*name, *value));
            let res = res.body(()).unwrap();
            let seen = DefaultPolicy.classify(Ok(&res));
            (seen.verdict, seen.code.to_owned(), seen.exhausted)
        };
        let transient = |code: &str, exhausted| (Verdict::TRANSIENT, code.to_owned(), exhausted);
        assert_eq!(answer(&[("grpc-status", "0")]).0, Verdict::Success);
        assert_eq!(answer(&[("grpc-status", "3")]).0, Verdict::Permanent);
        assert_eq!(answer(&[("grpc-status", "14")]), transient("network_error", false));
        assert_eq!(answer(&[("grpc-status", "down")]), transient("unclassified", false));
        let no_retry = [("grpc-status", "14"), ("grpc-retry-pushback-ms", "-1")];
        assert_eq!(answer(&no_retry), transient("network_error", true));
    }

    #[test]
    fn the_key_is_scheme_host_and_port_in_one_spelling() {
        let key = |uri: &str, host: Option<&str>| {
            let mut req = Request::get(uri);
            if let Some(host) = host {
                req = req.header("host", host);
            }
            let req = req.body(()).unwrap();
            let key = DefaultPolicy.key(&req);
            assert_eq!(key, KeyRef::new(&key.to_string()));
            key.to_string()
        };
        assert_eq!(key("http://localhost/x", None), "http://localhost");
        assert_eq!(key("https://localhost/x", None), "https://localhost");
        assert_eq!(key("http://LOCALHOST:80/x", None), "http://localhost");
        assert_eq!(key("HTTP://localhost:8080", None), "http://localhost:8080");
        assert_eq!(key("https://[::1]:443/x", None), "https://[::1]");
        assert_eq!(key("https://example.org./x", Some("other")), "https://example.org");
        assert_eq!(key("/x", Some("Example.org.:443")), "example.org:443");
        assert_eq!(key("/x", None), "");
    }

    #[test]
    fn a_password_is_no_part_of_the_key() {
        let req = Request::get("http://ada:secret@example.org:8080/x").body(()).unwrap();
        let key = DefaultPolicy.key(&req);
        assert_eq!((key.name, &*key.to_string()), ("example.org:8080", "http://example.org:8080"));
        assert!(!format!("{key:?}").contains("secret"));
        let req = Request::get("/x").header("host", "ada:secret@example.org").body(()).unwrap();
        assert_eq!(DefaultPolicy.key(&req).to_string(), "example.org");
    }
}
