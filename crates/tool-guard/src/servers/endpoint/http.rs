//! A tool of `serve` that is an HTTP endpoint: the params of a call are the body of a request, and the body of the
//! response is the answer.
use super::answer::{content, grow, send_lines};
use crate::{
    connect::{Connector, Trust, was_not_sent},
    secrets::without,
};
use anyhow::Context as _;
use bytes::Bytes;
use futures_util::StreamExt as _;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    HeaderMap, Method, Request, Response, Uri,
    body::Incoming,
    header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue},
};
use hyper_util::client::legacy::Client;
use std::sync::Arc;
use tool_reliability::telemetry::traceparent;
use tr_core::{
    BoxError, Capability, NotSent, OutcomeParts, Ran, SystemClock, ToolCall, ToolError,
    ToolOutcome, Verdict, classify,
};

/// How many bytes of an error response's body its message quotes.
const QUOTED: usize = 2_000;

/// One endpoint.
pub(super) struct HttpTool {
    client: Client<Connector, Full<Bytes>>,
    url: Uri,
    method: Method,
    headers: HeaderMap,
}

impl HttpTool {
    /// # Errors
    /// If the address or a header is malformed, or the address is not trusted.
    pub(super) fn new(
        url: &str,
        method: &str,
        extra: &[(&str, String)],
        trust: &mut Trust,
    ) -> anyhow::Result<Arc<Self>> {
        let url: Uri =
            url.parse().with_context(|| format!("`url` {url:?} is not a valid address"))?;
        let mut headers = HeaderMap::new();
        for (name, value) in extra {
            let name: HeaderName = name
                .parse()
                .with_context(|| format!("`headers`: {name:?} is not a valid header name"))?;
            let mut value: HeaderValue = value.parse().with_context(|| {
                format!("`headers`: the value of {name} has characters that HTTP does not allow: remove line breaks and control characters")
            })?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let json = HeaderValue::from_static("application/json");
        headers.entry(ACCEPT).or_insert(json.clone());
        headers.insert(CONTENT_TYPE, json);
        let client = trust.connector(&url)?.client();
        let method = method.parse().context("`method` is not a valid HTTP method")?;
        Ok(Arc::new(Self { client, url, method, headers }))
    }

    pub(super) async fn call(self: Arc<Self>, call: ToolCall) -> Result<ToolOutcome, BoxError> {
        let request = self.request(&call).map_err(NotSent::new)?;
        match self.client.request(request).await {
            Err(error) if was_not_sent(&error) => Err(NotSent::new(error).into()),
            Err(error) => Err(error.into()),
            Ok(response) => answer(response, &call).await,
        }
    }

    fn request(&self, call: &ToolCall) -> Result<Request<Full<Bytes>>, BoxError> {
        let parts = call.parts();
        let body = Bytes::copy_from_slice(parts.params.get().as_bytes());
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.url.clone();
        let headers = request.headers_mut();
        *headers = self.headers.clone();
        let takes_keys = call.manifest().is_some_and(|tool| tool.can(Capability::Idempotency));
        // Not the caller's own key, which is unique only within its session.
        if let Some(claim) = call.fencing_token().filter(|_| takes_keys) {
            let key = format!("\"{}\"", claim.provider_key());
            headers.insert("idempotency-key", HeaderValue::from_str(&key)?);
        }
        let trace = traceparent().or_else(|| Some(parts.trace.traceparent.as_deref()?.to_owned()));
        if let Some(trace) = trace.and_then(|trace| HeaderValue::from_str(&trace).ok()) {
            headers.insert("traceparent", trace);
        }
        if call.attempt() > 0 {
            headers.insert("x-retry-attempt", call.attempt().into());
        }
        Ok(request)
    }
}

async fn answer(response: Response<Incoming>, call: &ToolCall) -> Result<ToolOutcome, BoxError> {
    let (head, body) = response.into_parts();
    if head.status.is_success() {
        let media = head.headers.get(CONTENT_TYPE).and_then(|media| media.to_str().ok());
        if media.is_some_and(|media| media.starts_with("application/x-ndjson")) {
            return chunks(body, call).await;
        }
        let text = text(body).await?;
        let mut parts = OutcomeParts::default();
        parts.content = content(&text);
        return Ok(parts.into());
    }
    let text = beginning(body).await;
    let text = without(&text);
    let header = |name: &str| head.headers.get(name)?.to_str().ok();
    let mut found = classify::http_response(head.status.as_u16(), header, &SystemClock);
    if let Some(tool) = call.manifest() {
        found = found.with_manifest(tool);
    }
    let code = format!("http_{}", head.status.as_u16());
    let mut end = found.end;
    // A redirect is not followed, so it says nothing about the call.
    if end.verdict.is_success() {
        (end.verdict, end.ran) = (Verdict::Permanent, Ran::Unknown);
    }
    let mut error =
        ToolError::new(code, format!("{}: {}", head.status, text.trim())).classified(end);
    error.details = content(&text).filter(|details| details.get().starts_with('{'));
    Ok(error.into())
}

/// The first bytes of an error response's body. A body that breaks off is no error: the status says what happened.
async fn beginning(body: Incoming) -> String {
    let (mut all, mut body) = (Vec::new(), body.into_data_stream());
    while all.len() < QUOTED
        && let Some(Ok(data)) = body.next().await
    {
        all.extend(data);
    }
    all.truncate(QUOTED);
    String::from_utf8_lossy(&all).trim_end_matches(char::REPLACEMENT_CHARACTER).to_owned()
}

/// The whole body.
async fn text(body: Incoming) -> Result<String, BoxError> {
    let (mut all, mut body) = (Vec::new(), body.into_data_stream());
    while let Some(data) = body.next().await {
        grow(&mut all, &data?, Ran::Yes)?;
    }
    Ok(String::from_utf8_lossy(&all).into_owned())
}

/// Each line of the body is a chunk.
async fn chunks(body: Incoming, call: &ToolCall) -> Result<ToolOutcome, BoxError> {
    let mut sink = call.chunk_sink();
    match send_lines(body.into_data_stream(), &mut sink).await {
        Ok(()) => Ok(sink.finish(ToolOutcome::default())),
        Err(error) => Err(sink.fail(error)),
    }
}
