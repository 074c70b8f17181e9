//! Serves operators over HTTP: the admin page, the scrape of metrics.
use crate::front::{body::Answered, listener::Door};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::{
    Request, Response,
    body::{Body, Incoming},
    header::{CONNECTION, HeaderValue},
};
use std::convert::Infallible;
use tower_service::Service;
use tr_core::BoxError;

/// A service whose connections carry one request each.
#[derive(Clone)]
pub(crate) struct OneRequest<S>(pub(crate) S);

impl<S, B> Door for OneRequest<S>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible, Future: Send>,
    S: Clone + Send + 'static,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    fn answer(&self, request: Request<Incoming>) -> impl Future<Output = Answered> + Send {
        let called = self.0.clone().call(request);
        async {
            let Ok(mut answer) = called.await;
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            answer.map(|body| body.map_err(Into::into).boxed_unsync())
        }
    }
}
