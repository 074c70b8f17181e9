//! [`HttpIdempotency`], the service around an HTTP handler, and its response future.
use super::{
    body::{Gathered, GuardedBody, gather},
    handler::Handler,
    key,
    policy::{HttpPolicy, Keyed, KeyedRequest},
    problem::Problem,
    recorded::RecordedResponse,
};
use bytes::Bytes;
use http::{Request, Response, StatusCode, request::Parts};
use http_body::Body;
use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tower_service::Service;
use tr_core::{
    BoxError, DefaultPolicy, Effect, RequestPolicy, debug_parts, internal::ReadyOnCallFuture,
};
use tr_idempotency::Idempotency;

/// Reads from a request's head who sent it; `None` if that is not known.
pub(super) type Principal = dyn Fn(&Parts) -> Option<String> + Send + Sync;

/// What all services of a layer share.
pub(super) struct Settings {
    pub(super) principal: Arc<Principal>,
    pub(super) require_key: bool,
    pub(super) waits: bool,
    pub(super) max_request_bytes: usize,
}

/// Answers repeats of a request with an `Idempotency-Key` from the record of the first.
///
/// Always ready, since a replay needs no capacity of the handler; the response future waits for the
/// handler's readiness.
#[derive(Clone)]
pub struct HttpIdempotency<S> {
    calls: Calls<S>,
    settings: Arc<Settings>,
}

type Calls<S> = Idempotency<Handler<S>, HttpPolicy, RecordedResponse>;

impl<S> HttpIdempotency<S> {
    pub(super) const fn new(calls: Calls<S>, settings: Arc<Settings>) -> Self {
        Self { calls, settings }
    }

    /// The inner service.
    pub const fn get_ref(&self) -> &S {
        &self.calls.get_ref().inner
    }
}

debug_parts! { HttpIdempotency<S: ::std::fmt::Debug>, |it| inner = it.get_ref() }

impl Settings {
    /// The key and the principal of a request; `None` if the layer does not guard it.
    fn keyed(&self, head: &Parts, effect: Effect) -> Result<Option<Keyed>, Problem> {
        if effect == Effect::ReadOnly {
            return Ok(None);
        }
        let bad = |code, detail| Problem::refused(StatusCode::BAD_REQUEST, code, detail);
        let Some(key) =
            key::read(&head.headers).map_err(|detail| bad("idempotency_key_invalid", detail))?
        else {
            let missing = "the request needs an idempotency key: send one in `Idempotency-Key`";
            return match self.require_key && effect == Effect::Mutating {
                true => Err(bad("idempotency_key_missing", missing)),
                false => Ok(None),
            };
        };
        let Some(principal) = (self.principal)(head) else {
            let detail = "the idempotency key has no owner, because the request names no principal: authenticate the request";
            return Err(Problem::refused(StatusCode::FORBIDDEN, "no_principal", detail));
        };
        Ok(Some(Keyed { key, principal, waits: self.waits }))
    }
}

fn too_large() -> Problem {
    let detail = "the body is too large for a request with an idempotency key, or has trailers: send a smaller one without trailers";
    Problem::refused(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
}

impl<S, B, R> Service<Request<B>> for HttpIdempotency<S>
where
    S: Service<
            Request<GuardedBody<B>>,
            Response = Response<R>,
            Error: Into<BoxError>,
            Future: Send + 'static,
        > + Clone
        + Send
        + 'static,
    B: Body + Send + 'static,
    R: Body<Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<GuardedBody<R>>;
    type Error = S::Error;
    type Future = HttpIdempotencyFuture<R, S::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, req: Request<B>) -> Self::Future {
        let effect = DefaultPolicy.effect(&req);
        let (head, body) = req.into_parts();
        let keyed = match self.settings.keyed(&head, effect) {
            Ok(Some(keyed)) => Ok(keyed),
            Ok(None) => {
                let req = Request::from_parts(head, GuardedBody::unread(body));
                let passing = ReadyOnCallFuture::waiting(self.get_ref().clone(), req);
                return Box::pin(async { Ok(passing.await?.map(GuardedBody::unread)) });
            }
            Err(problem) => Err(problem),
        };
        let (mut calls, limit) = (self.calls.clone(), self.settings.max_request_bytes);
        let guarded = async move {
            let (keyed, body) = (keyed?, whole(body, limit).await?);
            let reply = calls.call(KeyedRequest::new(keyed, head, body)).await;
            reply.map_err(Problem::of_error)
        };
        Box::pin(async {
            Ok(match guarded.await {
                Ok(reply) => reply.response,
                Err(problem) => problem.into_response(),
            })
        })
    }
}

/// The body of a request with a key.
async fn whole<B: Body>(body: B, limit: usize) -> Result<Bytes, Problem> {
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    match gather(body, limit).await {
        Ok(Gathered::Whole(bytes)) => Ok(bytes),
        Ok(Gathered::Longer(_)) => Err(too_large()),
        Err(_) => Err(Problem::refused(
            StatusCode::BAD_REQUEST,
            "body_unreadable",
            "the request's body could not be read: send the request again",
        )),
    }
}

/// The response of an [`HttpIdempotency`].
///
/// If it is dropped before the handler is called, the handler does not run. If it is dropped
/// later, a request with a key continues in a task of the current tokio runtime and is recorded.
pub type HttpIdempotencyFuture<R, E> =
    Pin<Box<dyn Future<Output = Result<Response<GuardedBody<R>>, E>> + Send>>;
