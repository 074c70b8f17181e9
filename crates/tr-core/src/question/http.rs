//! What [`Standard`] answers for `http` requests and responses.
use super::{Classify, EffectOf, End, KeyOf, Progress, Repeat, Standard};
use crate::{Classification, Effect, KeyRef, Ran, SystemClock, classify};
use ::http::{HeaderName, HeaderValue, Method, Request, Response};

/// Host and port: calls of one host share a breaker. User and password never become a name.
impl<B> KeyOf<Request<B>> for Standard {
    fn key_of<'r>(&self, req: &'r Request<B>) -> KeyRef<'r> {
        let authority = req.uri().authority().map(::http::uri::Authority::as_str);
        let named = authority.or_else(|| req.headers().get("host")?.to_str().ok()).unwrap_or("");
        KeyRef::new(named.rsplit_once('@').map_or(named, |(_, host)| host))
    }
}

/// By the method's definition: safe methods read, PUT and DELETE are idempotent.
impl<B> EffectOf<Request<B>> for Standard {
    fn effect_of(&self, req: &Request<B>) -> Effect {
        match *req.method() {
            Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE => Effect::ReadOnly,
            Method::PUT | Method::DELETE => Effect::Idempotent,
            _ => Effect::Mutating,
        }
    }
}

impl<B: Clone> Repeat<Request<B>> for Standard {
    fn repeat(&self, req: &Request<B>) -> Option<Request<B>> {
        Some(req.clone())
    }
}

/// Which attempt a request is, from 0; the first goes without.
static ATTEMPT: HeaderName = HeaderName::from_static("x-retry-attempt");

impl<B> Progress<Request<B>> for Standard {
    fn set_attempt(&self, req: &mut Request<B>, attempt: u32) {
        req.headers_mut().insert(&ATTEMPT, HeaderValue::from(attempt));
    }
}

/// What retry knows of all attempts together, noted in a response that failed.
#[derive(Clone, Copy, Debug)]
struct Attempts {
    ran: Ran,
    exhausted: bool,
}

/// By status and `Retry-After`, and by what a retry further in noted.
impl<B> Classify<Response<B>> for Standard {
    fn classify<'r>(&self, end: End<'r, Response<B>>) -> Classification<'r> {
        match end {
            Ok(res) => {
                let header = |name: &str| res.headers().get(name)?.to_str().ok();
                let seen = classify::http_response(res.status().as_u16(), header, &SystemClock).end;
                match res.extensions().get() {
                    Some(&Attempts { ran, exhausted }) => Classification { ran, exhausted, ..seen },
                    None => seen,
                }
            }
            Err(error) => classify::error(error).end,
        }
    }

    fn note_attempts(&self, res: &mut Response<B>, ran: Ran, exhausted: bool) {
        res.extensions_mut().insert(Attempts { ran, exhausted });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_no_part_of_the_name() {
        let req = Request::get("http://ada:secret@example.org:8080/x").body(()).unwrap();
        assert_eq!(Standard.key_of(&req).name, "example.org:8080");
        let req = Request::get("/x").header("host", "example.org").body(()).unwrap();
        assert_eq!(Standard.key_of(&req).name, "example.org");
    }
}
