//! Refusals and failures as problem details (RFC 9457).
use super::body::GuardedBody;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::json;
use std::{error::Error, sync::Arc, time::Duration};
use tr_core::{BoxError, FailureInfo, Ran, Verdict, code, failure_info};

/// How long a client waits before it asks again, where nothing says how long.
const SOON: Duration = Duration::from_secs(1);

/// The error behind a response of the layer's, in the response's extensions: for logs. The response
/// itself does not show it.
#[derive(Clone, Debug)]
pub struct Cause(pub Arc<dyn Error + Send + Sync>);

/// A response that the layer gives in place of the handler's.
pub(super) struct Problem {
    status: StatusCode,
    code: Box<str>,
    ran: Ran,
    detail: &'static str,
    retry_after: Option<Duration>,
    cause: Option<Cause>,
}

impl Problem {
    /// A request that was refused before anything was asked: the handler did not run.
    pub(super) fn refused(status: StatusCode, code: &str, detail: &'static str) -> Self {
        Self { status, code: code.into(), ran: Ran::No, detail, retry_after: None, cause: None }
    }

    /// What the idempotency layer, or the handler through it, returned.
    pub(super) fn of_error(error: BoxError) -> Self {
        let info = failure_info(&*error);
        let code: Box<str> = info.map_or(code::UNCLASSIFIED, |info| info.code()).into();
        let ran = info.map_or(Ran::Unknown, FailureInfo::ran);
        let hint = match info.map(FailureInfo::verdict) {
            Some(Verdict::Transient { retry_after }) => Some(retry_after.unwrap_or(SOON)),
            _ => None,
        };
        let (status, detail, retry_after) = match &*code {
            code::IDEMPOTENCY_CONFLICT => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "the idempotency key was used with another request: use a new key",
                None,
            ),
            code::IDEMPOTENCY_IN_FLIGHT => (
                StatusCode::CONFLICT,
                "a request with this idempotency key is in progress: repeat it later with the same key",
                Some(SOON),
            ),
            code::OUTCOME_UNKNOWN | code::RECORD_UNREADABLE => (
                StatusCode::CONFLICT,
                "an earlier request with this idempotency key may have run, and how it ended is unknown: find that out before you send it with a new key",
                None,
            ),
            code::ANSWER_NOT_KEPT => (
                StatusCode::CONFLICT,
                "an earlier request with this idempotency key has run, and its response was not recorded: read what it changed",
                None,
            ),
            code::STORE_UNAVAILABLE | code::STORE_FULL if ran == Ran::No => (
                StatusCode::SERVICE_UNAVAILABLE,
                "the request was not run, because it could not be recorded: repeat it later with the same key",
                Some(hint.unwrap_or(SOON)),
            ),
            code::STORE_UNAVAILABLE | code::STORE_FULL => (
                StatusCode::SERVICE_UNAVAILABLE,
                "the records cannot be reached, and an earlier request with this key may have run: repeat it later with the same key",
                Some(hint.unwrap_or(SOON)),
            ),
            code::TIMEOUT => (StatusCode::GATEWAY_TIMEOUT, "the request timed out", None),
            _ if ran == Ran::No => (
                StatusCode::SERVICE_UNAVAILABLE,
                "the request was not run: repeat it with the same key",
                hint,
            ),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "the handler failed", None),
        };
        Self { status, code, ran, detail, retry_after, cause: Some(Cause(error.into())) }
    }

    pub(super) fn into_response<B>(self) -> Response<GuardedBody<B>> {
        let body = json!({
            "status": self.status.as_u16(),
            "title": self.status.canonical_reason(),
            "detail": self.detail,
            "code": self.code,
            "ran": self.ran,
        });
        let mut response = Response::new(GuardedBody::whole(body.to_string().into()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, kind);
        if let Some(wait) = self.retry_after {
            // Whole seconds, and not too early.
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if let Some(cause) = self.cause {
            response.extensions_mut().insert(cause);
        }
        response
    }
}
