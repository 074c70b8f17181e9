//! The responses of the endpoint.
use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body_util::Full;
use serde_json::{Value, json};
use tr_core::printable_json;

/// A response in JSON.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Value,
}

impl Answer {
    pub(super) fn ok(body: Value) -> Self {
        Self { status: StatusCode::OK, body }
    }

    pub(super) fn error(status: StatusCode, why: impl Into<String>) -> Self {
        Self { status, body: json!({ "error": why.into() }) }
    }

    pub(super) fn into_response(self) -> Response<Full<Bytes>> {
        // Names of tools come from outside, and this is read in terminals.
        let body = format!("{:#}\n", self.body);
        let mut response = Response::new(Full::from(printable_json(&body).into_owned()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        let of = http::HeaderValue::from_static;
        headers.insert(header::CONTENT_TYPE, of("application/json"));
        headers.insert(header::CACHE_CONTROL, of("no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, of("nosniff"));
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(header::ALLOW, of("GET, POST"));
        }
        response
    }
}
