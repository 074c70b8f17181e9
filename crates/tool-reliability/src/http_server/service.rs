//! [`HttpIdempotency`], the service around an HTTP handler, and its response future.
use super::{
    body::{Gather, Gathered, GuardedBody},
    handler::{Handler, HandlerFuture},
    key,
    policy::{HttpPolicy, Keyed, KeyedRequest, Reply},
    problem::Problem,
    recorded::RecordedResponse,
};
use http::{Request, Response, StatusCode, request::Parts};
use http_body::Body;
use pin_project_lite::pin_project;
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tower_service::Service;
use tr_core::{
    BoxError, DefaultPolicy, Effect, RequestPolicy, debug_parts, internal::ReadyOnCallFuture,
};
use tr_idempotency::{Idempotency, IdempotencyFuture};

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
    type Future = HttpIdempotencyFuture<S, S::Future, B, R>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, req: Request<B>) -> Self::Future {
        let effect = DefaultPolicy.effect(&req);
        let (head, body) = req.into_parts();
        let limit = self.settings.max_request_bytes;
        let state = match self.settings.keyed(&head, effect) {
            Ok(None) => {
                let req = Request::from_parts(head, GuardedBody::unread(body));
                let passing = ReadyOnCallFuture::waiting(self.get_ref().clone(), req);
                State::Passing { passing }
            }
            Ok(Some(_)) if body.size_hint().lower() > limit as u64 => {
                State::Refused { problem: Some(too_large()) }
            }
            Ok(Some(keyed)) => State::Reading {
                request: Some((keyed, head)),
                body: Gather::new(body, limit),
                calls: self.calls.clone(),
            },
            Err(problem) => State::Refused { problem: Some(problem) },
        };
        HttpIdempotencyFuture { state }
    }
}

pin_project! {
    /// The response of an [`HttpIdempotency`].
    ///
    /// If it is dropped before the handler is called, the handler does not run. If it is dropped
    /// later, a request with a key continues in a task of the current tokio runtime and is recorded.
    #[must_use = "futures do nothing unless polled"]
    pub struct HttpIdempotencyFuture<S, F, B, R> {
        #[pin]
        state: State<S, F, B, R>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S, F, B, R> {
        Passing { #[pin] passing: ReadyOnCallFuture<S, F, Request<GuardedBody<B>>> },
        Refused { problem: Option<Problem> },
        Reading { request: Option<(Keyed, Parts)>, body: Gather<B>, calls: Calls<S> },
        Calling { #[pin] call: Call<S, F, B, R> },
    }
}

type Call<S, F, B, R> = IdempotencyFuture<
    Handler<S>,
    HandlerFuture<F, R>,
    KeyedRequest<B>,
    Reply<R>,
    HttpPolicy,
    RecordedResponse,
>;

impl<S, B, R> Future for HttpIdempotencyFuture<S, S::Future, B, R>
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
    type Output = Result<Response<GuardedBody<R>>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            match state.as_mut().project() {
                StateProj::Passing { passing } => {
                    let end = ready!(passing.poll(cx));
                    return Poll::Ready(end.map(|response| response.map(GuardedBody::unread)));
                }
                StateProj::Refused { problem } => {
                    let problem = problem.take().expect("polled after completion");
                    return Poll::Ready(Ok(problem.into_response()));
                }
                StateProj::Reading { request, body, calls } => {
                    let problem = match ready!(Pin::new(body).poll(cx)) {
                        Ok(Gathered::Whole(bytes)) => {
                            let (keyed, head) = request.take().expect("taken once");
                            let call = calls.call(KeyedRequest::new(keyed, head, bytes));
                            state.set(State::Calling { call });
                            continue;
                        }
                        Ok(Gathered::Longer(_)) => too_large(),
                        Err(_) => Problem::refused(
                            StatusCode::BAD_REQUEST,
                            "body_unreadable",
                            "the request's body could not be read: send the request again",
                        ),
                    };
                    state.set(State::Refused { problem: Some(problem) });
                }
                StateProj::Calling { call } => {
                    return Poll::Ready(Ok(match ready!(call.poll(cx)) {
                        Ok(reply) => reply.response,
                        Err(error) => Problem::of_error(error).into_response(),
                    }));
                }
            }
        }
    }
}

debug_parts! { HttpIdempotencyFuture<S, F, B, R>, |it|
    state = match &it.state {
        State::Passing { .. } => "passing",
        State::Refused { .. } => "refused",
        State::Reading { .. } => "reading the request",
        State::Calling { .. } => "calling",
    }
}
