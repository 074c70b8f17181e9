//! Web pages of the origins that --allow-origin names: what their browsers ask before a request, and what lets a page
//! read the answer (CORS).
use super::{
    access::{Access, text},
    body::{Answered, respond},
};
use bytes::Bytes;
use hyper::{
    Method, Request, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
        ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, ORIGIN, VARY,
    },
};

/// The origin of the page that sends a request; `None` if it is no allowed one.
pub(crate) fn origin<B>(access: &Access, request: &Request<B>) -> Option<HeaderValue> {
    text(request.headers(), &ORIGIN).filter(|origin| access.names_origin(origin))?;
    request.headers().get(ORIGIN).cloned()
}

/// The answer to a preflight: a browser's question whether such a page may send its request. No door gets it: it has no
/// token.
pub(crate) fn preflight<B>(request: &Request<B>) -> Option<Answered> {
    let headers = request.headers();
    let asks =
        request.method() == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    asks.then(|| {
        let mut answer = respond(StatusCode::NO_CONTENT, Bytes::new());
        let set = answer.headers_mut();
        set.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
        if let Some(asked) = headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
            set.insert(ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
        }
        set.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        answer
    })
}

/// Lets the page of this origin read an answer.
pub(crate) fn may_read(origin: HeaderValue, answer: &mut Answered) {
    let headers = answer.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"));
    headers.append(VARY, HeaderValue::from_static("origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: Method, headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::builder().method(method).uri("/mcp");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap()
    }

    #[test]
    fn a_page_of_an_allowed_origin_may_ask_and_read() {
        let access = Access { origins: vec!["http://localhost:6274".into()], ..Access::default() };
        let asks = [
            ("origin", "http://localhost:6274"),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "content-type,mcp-session-id"),
        ];
        let asked = request(Method::OPTIONS, &asks);
        let mut answer = preflight(&asked).unwrap();
        may_read(origin(&access, &asked).unwrap(), &mut answer);
        let header = |name: &str| answer.headers()[name].to_str().unwrap();
        assert_eq!(answer.status(), StatusCode::NO_CONTENT);
        assert_eq!(header("access-control-allow-origin"), "http://localhost:6274");
        assert_eq!(header("access-control-allow-headers"), "content-type,mcp-session-id");
        assert_eq!(header("access-control-allow-methods"), "GET, POST, DELETE");
        assert_eq!(header("access-control-expose-headers"), "*");

        let posted = request(Method::POST, &asks);
        assert!(origin(&access, &posted).is_some());
        assert!(preflight(&posted).is_none(), "only OPTIONS asks");
        let plain = request(Method::OPTIONS, &asks[..1]);
        assert!(origin(&access, &plain).is_some());
        assert!(preflight(&plain).is_none(), "it asks for no method");
        for other in ["http://localhost:6275", "null", "https://localhost:6274"] {
            let foreign = [("origin", other), asks[1]];
            assert!(origin(&access, &request(Method::OPTIONS, &foreign)).is_none(), "{other}");
        }
        assert!(origin(&Access::default(), &asked).is_none());
    }
}
