//! The headers of MCP 2026-07-28, which must say what the body says.
use crate::mcp::message::{self, Message};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use hyper::{HeaderMap, header::HeaderName};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

pub(crate) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(crate) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub(crate) const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The first version without sessions.
const MODERN: &str = "2026-07-28";

/// The error of a request whose headers and body differ.
pub(crate) const MISMATCH: i64 = -32020;

/// Whether the request is of MCP 2026-07-28 or later. Versions are dates, so they sort as text.
pub(crate) fn is_modern(headers: &HeaderMap) -> bool {
    text(headers, &VERSION).is_some_and(|version| version.len() == 10 && version >= MODERN)
}

#[derive(Default, Deserialize)]
struct Params<'l> {
    #[serde(borrow)]
    name: Option<Cow<'l, str>>,
    #[serde(borrow)]
    uri: Option<Cow<'l, str>>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'l RawValue>,
}

#[derive(Default, Deserialize)]
struct Meta<'l> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<Cow<'l, str>>,
}

/// Why a modern request is refused: the name of the header that does not say what the body says.
pub(crate) fn mismatch(headers: &HeaderMap, message: &Message<'_>) -> Option<HeaderName> {
    let method = message.method.as_deref()?;
    let params: Params<'_> =
        message.params.and_then(|raw| message::object(raw.get()).ok()).unwrap_or_default();
    let meta: Meta<'_> =
        params.meta.and_then(|raw| message::object(raw.get()).ok()).unwrap_or_default();
    let is_said = meta.version.as_deref().is_some_and(|version| version >= MODERN);
    if !is_modern(headers) && !is_said {
        return None;
    }
    if text(headers, &METHOD) != Some(method) {
        return Some(METHOD);
    }
    let name = match method {
        "tools/call" | "prompts/get" => params.name,
        "resources/read" => params.uri,
        _ => None,
    };
    if let Some(name) = name
        && decoded(text(headers, &NAME).unwrap_or_default()).as_deref() != Some(&*name)
    {
        return Some(NAME);
    }
    let version = meta.version?;
    (text(headers, &VERSION) != Some(&*version)).then_some(VERSION)
}

/// The text of a header, which is in Base64 if it has other characters than a header allows.
fn decoded(value: &str) -> Option<Cow<'_, str>> {
    let Some(encoded) = value.strip_prefix("=?base64?").and_then(|it| it.strip_suffix("?=")) else {
        return Some(Cow::Borrowed(value));
    };
    String::from_utf8(STANDARD.decode(encoded).ok()?).ok().map(Cow::Owned)
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::message::Line;
    use hyper::header::HeaderValue;

    fn checked(version: &str, method: &str, name: &str) -> Option<HeaderName> {
        let mut headers = HeaderMap::new();
        for (key, value) in [(VERSION, version), (METHOD, method), (NAME, name)] {
            headers.insert(key, HeaderValue::from_str(value).unwrap());
        }
        let body = r#"{"id":1,"method":"tools/call","params":{"name":"zahle über","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        let Line::One(message) = message::read(body.as_bytes()) else { panic!() };
        mismatch(&headers, &message)
    }

    #[test]
    fn headers_say_what_the_body_says() {
        let name = format!("=?base64?{}?=", STANDARD.encode("zahle über"));
        assert_eq!(checked("2026-07-28", "tools/call", &name), None);
        assert_eq!(checked("2026-07-28", "tools/list", &name), Some(METHOD));
        assert_eq!(checked("2026-07-28", "tools/call", "balance"), Some(NAME));
        assert_eq!(checked("2026-07-28", "tools/call", "=?base64?%?="), Some(NAME));
        assert_eq!(checked("2026-09-01", "tools/call", &name), Some(VERSION));
        // The body is of the newer version, whatever the header says.
        assert_eq!(checked("2025-11-25", "tools/call", "balance"), Some(NAME));
        assert_eq!(checked("2025-11-25", "tools/call", &name), Some(VERSION));
        // Older versions have no such headers.
        let Line::One(old) = message::read(br#"{"id":1,"method":"tools/call"}"#) else { panic!() };
        assert_eq!(mismatch(&HeaderMap::new(), &old), None);
    }
}
