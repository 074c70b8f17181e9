//! What [`Standard`] answers for `http` requests and responses.
use super::{Classify, EffectOf, End, KeyOf, Progress, Repeat, Standard};
use crate::{Classification, Effect, KeyRef, classify};
use ::http::{Method, Request, Response};

/// The authority: calls of one host share a breaker.
impl<B> KeyOf<Request<B>> for Standard {
    fn key_of<'r>(&self, req: &'r Request<B>) -> KeyRef<'r> {
        let host = req.uri().authority().map(|authority| authority.as_str());
        KeyRef::new(host.or_else(|| req.headers().get("host")?.to_str().ok()).unwrap_or(""))
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

impl<B> Progress<Request<B>> for Standard {}

/// By status and `Retry-After`.
impl<B> Classify<Response<B>> for Standard {
    fn classify<'r>(&self, end: End<'r, Response<B>>) -> Classification<'r> {
        match end {
            Ok(res) => classify::http_response(res.status().as_u16(), |name| {
                res.headers().get(name)?.to_str().ok()
            }),
            Err(error) => classify::error(error),
        }
    }
}
