//! What the idempotency layer reads of a request with a key, and keeps of its response.
use super::{body::GuardedBody, recorded::RecordedResponse};
use http::{HeaderValue, Request, Response, request::Parts};
use tr_core::{
    BoxError, CallInfo, Classification, DedupeKey, DedupeMode, DefaultPolicy, Effect, End,
    FailureInfo, FencingToken, InvalidKey, KeyRef, Ran, RecordRef, Replay, RequestPolicy,
    ResponsePolicy, StoreResponse, Verdict,
    canonical::{Digest, Key, KeyParts, KeyScope, KeySource},
    classify, code, failure_info,
};

/// The most characters of method and path that name a request for operators.
const LABEL: usize = 200;

/// Says that the handler changed nothing, in the extensions of its response or as its error.
///
/// It is not recorded for repeats: a repeat with the same key runs. For what refuses before anything
/// happened, such as a limit on calls that is inside of the layer. In axum,
/// `(StatusCode::TOO_MANY_REQUESTS, Extension(DidNotRun))`. Other errors are no evidence: a handler may
/// have got them from a service that it called after the payment.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the handler did not run")]
pub struct DidNotRun;

/// The codes of what a handler ends with, instead of those of its errors: the layer's own codes are for
/// what the layer says.
pub(super) const DID_NOT_RUN: &str = "did_not_run";
pub(super) const HANDLER_FAILED: &str = "handler_failed";

/// The error of a handler, as the records see it.
pub(super) fn failed(error: BoxError) -> BoxError {
    let found = classify::error(&*error).end;
    let (code, ran, verdict) = if error.is::<DidNotRun>() {
        (DID_NOT_RUN, Ran::No, Verdict::TRANSIENT)
    } else if failure_info(&*error).is_some_and(|info| info.code() == code::TIMEOUT) {
        (code::TIMEOUT, Ran::Unknown, found.verdict)
    } else {
        (HANDLER_FAILED, Ran::Unknown, found.verdict)
    };
    FailureInfo::new(code, ran, verdict).because(error).into()
}

/// The error of a handler that was not ready, and so was not called.
pub(super) fn not_ready(error: BoxError) -> BoxError {
    FailureInfo::new(DID_NOT_RUN, Ran::No, Verdict::TRANSIENT).because(error).into()
}

/// A request with a key, whose body was read.
pub(super) struct KeyedRequest<B> {
    pub(super) request: Request<GuardedBody<B>>,
    keyed: Keyed,
    key: DedupeKey,
    label: String,
    effect: Effect,
}

/// The response of a handler, or of the record in its place.
pub(super) struct Reply<B> {
    pub(super) response: Response<GuardedBody<B>>,
    pub(super) recorded: Option<RecordedResponse>,
}

/// The policy for both.
#[derive(Clone, Copy, Debug)]
pub(super) struct HttpPolicy;

/// Whose key it is, and whether a duplicate waits.
pub(super) struct Keyed {
    pub(super) key: String,
    pub(super) principal: String,
    pub(super) waits: bool,
}

impl<B> KeyedRequest<B> {
    /// A request whose whole body is `body`.
    pub(super) fn new(keyed: Keyed, head: Parts, body: bytes::Bytes) -> Self {
        let parts = KeyParts {
            scope: KeyScope::Session {
                tenant: None,
                workspace: None,
                session: None,
                actor: Some(&keyed.principal),
            },
            namespace: None,
            tool: "http",
            action: None,
            source: KeySource::Caller(&keyed.key),
            step: None,
        };
        let (method, path) = (head.method.as_str(), head.uri.path());
        let query = head.uri.query().map_or("", |query| query);
        let digest = Digest::of_bytes(
            // No part but the last has a zero byte.
            [
                method.as_bytes(),
                path.as_bytes(),
                query.as_bytes(),
                Digest::of_bytes(&body).as_bytes(),
            ]
            .join(&0),
        );
        let key = DedupeKey { key: Key::derive(&parts), digest };
        let label = method.chars().chain([' ']).chain(path.chars()).take(LABEL).collect();
        let request = Request::from_parts(head, GuardedBody::whole(body));
        let effect = DefaultPolicy.effect(&request);
        Self { request, keyed, key, label, effect }
    }
}

impl<B> RequestPolicy<KeyedRequest<B>> for HttpPolicy {
    fn key<'r>(&self, req: &'r KeyedRequest<B>) -> KeyRef<'r> {
        KeyRef::new(&req.label)
    }

    fn info<'r>(&self, req: &'r KeyedRequest<B>) -> CallInfo<'r> {
        let mut info = CallInfo::of(&req.label);
        (info.effect, info.session) = (req.effect, Some(&*req.keyed.principal));
        info
    }

    fn effect(&self, req: &KeyedRequest<B>) -> Effect {
        req.effect
    }

    fn idempotency_key(&self, req: &KeyedRequest<B>) -> Result<Option<DedupeKey>, InvalidKey> {
        Ok(Some(req.key))
    }

    fn dedupe_mode(&self, req: &KeyedRequest<B>) -> DedupeMode {
        if req.keyed.waits { DedupeMode::Enforced } else { DedupeMode::BestEffort }
    }

    /// The key holds for a caller of this service: the layer adds the service's name.
    fn has_scope(&self, _: &KeyedRequest<B>) -> bool {
        false
    }

    fn note_claim(&self, req: &mut KeyedRequest<B>, claim: FencingToken) {
        req.request.extensions_mut().insert(claim);
    }

    fn record<'r>(&self, req: &'r KeyedRequest<B>) -> RecordRef<'r> {
        let Keyed { key, principal, .. } = &req.keyed;
        RecordRef { key: Some(key), actor: Some(principal), ..RecordRef::default() }
    }
}

impl<B> ResponsePolicy<Reply<B>> for HttpPolicy {
    /// Every response is an end of the run, whatever its status. Errors were classified by [`failed`].
    fn classify<'r>(&self, end: End<'r, Reply<B>>) -> Classification<'r> {
        match end {
            Ok(reply) if reply.response.extensions().get::<DidNotRun>().is_some() => {
                Classification::new(Verdict::TRANSIENT, Ran::No, DID_NOT_RUN)
            }
            Ok(_) => Classification::SUCCESS,
            Err(error) => classify::error(error).end,
        }
    }

    fn note_unrecorded(&self, reply: &mut Reply<B>) {
        let no = HeaderValue::from_static("false");
        reply.response.headers_mut().insert("idempotency-recorded", no);
    }
}

impl<B> StoreResponse<Reply<B>> for HttpPolicy {
    type Stored = RecordedResponse;

    fn store(&self, reply: &Reply<B>) -> Option<RecordedResponse> {
        reply.recorded.clone()
    }

    fn size_of(&self, stored: &RecordedResponse) -> usize {
        stored.size()
    }

    fn load(&self, stored: RecordedResponse, _: Replay) -> Reply<B> {
        let mut response = stored.into_response();
        response.headers_mut().insert("idempotency-replayed", HeaderValue::from_static("true"));
        Reply { response, recorded: None }
    }
}
