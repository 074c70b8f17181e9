//! What a server over HTTP says before the guard is put in front of it: one that asks for a login, or is elsewhere, would
//! be lost to its client.
use crate::{
    engine::options::{HttpOptions, endpoint},
    servers::upstream::Upstream,
    turn::hello,
    wire::http_names::SESSION,
};
use hyper::{
    HeaderMap, Method,
    header::{ACCEPT, CONTENT_TYPE, HeaderValue},
};
use serde_json::json;
use std::time::Duration;
use tokio::time::timeout;

/// How long the server may take; one that does not answer in time is guarded nevertheless.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest answer.
const LONGEST: usize = 64 * 1024;

/// Why the guard cannot stand in front of the server at this address, if the server says so.
pub(super) async fn unfit(url: &str) -> Option<String> {
    let options = HttpOptions { upstream: Some(endpoint(url).ok()?), ..HttpOptions::default() };
    let upstream = Upstream::new(&options, Default::default(), LONGEST).ok()?;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    let params = hello("tool-guard install");
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let begin = upstream.request(Method::POST, headers.clone(), body.to_string().into());
    match timeout(PATIENCE, upstream.pass(&begin, true)).await.ok()? {
        Err(failure) => (!failure.is_transient()).then(|| failure.to_string()),
        Ok(response) => {
            headers.insert(SESSION, response.headers().get(SESSION)?.clone());
            let end = upstream.request(Method::DELETE, headers, Default::default());
            let _ = timeout(PATIENCE, upstream.pass(&end, false)).await;
            None
        }
    }
}
