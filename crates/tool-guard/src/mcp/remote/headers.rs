//! Headers of requests to a server at an address: the operator's, and those that repeat parts of a message.
use crate::{
    files::read_secret,
    mcp::mirrored::{self, Mirrored},
};
use anyhow::Context as _;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use hyper::{
    HeaderMap,
    header::{HeaderName, HeaderValue},
};
use serde_json::Value;
use std::path::Path;

/// What a message of MCP 2026-07-28 repeats in its headers.
pub(super) struct Modern {
    pub(super) version: String,
    pub(super) method: String,
    pub(super) name: Option<String>,
    /// Of a call.
    pub(super) arguments: Value,
}

pub(super) fn modern(body: &[u8]) -> Option<Modern> {
    // Most messages do not name it.
    memchr::memmem::find(body, b"io.modelcontextprotocol/protocolVersion")?;
    let mut body: Value = serde_json::from_slice(body).ok()?;
    let arguments = body["params"].get_mut("arguments").map(Value::take).unwrap_or_default();
    let params = &body["params"];
    let version = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str()?;
    let name = params["name"].as_str().or_else(|| params["uri"].as_str());
    Some(Modern {
        version: version.to_owned(),
        method: body["method"].as_str()?.to_owned(),
        name: name.map(str::to_owned),
        arguments,
    })
}

/// The headers that repeat the arguments of a call.
pub(super) fn repeated(tools: &Mirrored, tool: &str, arguments: &Value) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, argument) in tools.of(tool, arguments) {
        let name = format!("mcp-param-{name}").parse::<HeaderName>();
        if let (Ok(name), Some(argument)) = (name, argument)
            && let Some(value) = encoded(&mirrored::text(argument))
        {
            headers.insert(name, value);
        }
    }
    headers
}

/// Text as a header's value: in Base64 where it has other characters.
pub(super) fn encoded(text: &str) -> Option<HeaderValue> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && text.trim() == text
        && !text.starts_with("=?");
    let value = match is_plain {
        true => text.to_owned(),
        false => format!("=?base64?{}?=", STANDARD.encode(text)),
    };
    HeaderValue::from_str(&value).ok()
}

/// Reads headers for the server, one on each line.
///
/// # Errors
/// If others can read the file, or a line is no header.
pub(super) fn headers(file: &Path) -> anyhow::Result<HeaderMap> {
    let at = || format!("--header-file {}", file.display());
    let mut headers = HeaderMap::new();
    for (number, line) in read_secret(file).with_context(at)?.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        // The value is a secret.
        let wrong = || format!("{}, line {}: write `Name: value`", at(), number + 1);
        let (name, value) = line.split_once(':').with_context(wrong)?;
        let name: HeaderName = name.trim().parse().ok().with_context(wrong)?;
        let mut value: HeaderValue = value.trim().parse().ok().with_context(wrong)?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Ok(headers)
}
