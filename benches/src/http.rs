//! A request of an HTTP client, with an answer that has no body.
use crate::{call, kind::Kind, run::note_leaf};
use ::http::{Request, Response, header};
use bytes::Bytes;
use std::{
    convert::Infallible,
    future::{Ready, ready},
    hint::black_box,
    task::{Context, Poll},
};
use tower::Service;
use tr_core::DefaultPolicy;

/// A POST of 1 KiB of JSON with three headers.
///
/// # Panics
/// Never: the request is valid.
#[must_use]
pub fn post() -> Request<Bytes> {
    Request::post("https://tools.internal/v1/flights/search")
        .header(header::ACCEPT, "application/json")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::AUTHORIZATION, "Bearer 0123456789abcdef")
        .body(call::params().into())
        .expect("a valid request")
}

/// Succeeds at once with 200.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leaf;

impl Service<Request<Bytes>> for Leaf {
    type Response = Response<()>;
    type Error = Infallible;
    type Future = Ready<Result<Response<()>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    #[inline(never)]
    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        note_leaf();
        drop(black_box(request));
        ready(Ok(Response::new(())))
    }
}

impl Kind for Leaf {
    const NAME: &'static str = "http request";

    type Request = Request<Bytes>;
    type Answer = Response<()>;
    type Error = Infallible;
    type Leaf = Self;
    type Policy = DefaultPolicy;

    fn same() -> impl FnMut() -> Request<Bytes> + 'static {
        let request = post();
        move || request.clone()
    }
}
