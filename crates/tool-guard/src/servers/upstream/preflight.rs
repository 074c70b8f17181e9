//! The request before a mutating call: it changes nothing, and shows whether the server still knows the session.
use crate::{
    front::access::text,
    wire::{
        http_names::{KEY, METHOD, NAME, PARAM, VERSION, remove},
        jsonrpc::{self, Line, Message},
        params::client_meta,
    },
};
use bytes::Bytes;
use hyper::{HeaderMap, header::HeaderValue};
use serde_json::json;

/// The request before the call with these headers: `ping`, or `server/discover` where there are no sessions.
pub(super) fn probe(
    headers: &HeaderMap,
    call: &[u8],
    is_modern: bool,
) -> (HeaderMap, Bytes, String) {
    let id = format!("tool-guard-{:016x}", fastrand::u64(..));
    let mut headers = headers.clone();
    remove(&mut headers, |name| name.starts_with(PARAM) || name == NAME || name == KEY);
    let (method, params) = if is_modern {
        let mut meta = client_meta(call);
        if let Some(version) = text(&headers, &VERSION) {
            meta.entry("io.modelcontextprotocol/protocolVersion").or_insert(version.into());
        }
        headers.insert(METHOD, HeaderValue::from_static("server/discover"));
        ("server/discover", json!({ "_meta": meta }))
    } else {
        headers.remove(METHOD);
        ("ping", json!({}))
    };
    let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    (headers, body.to_string().into(), id)
}

/// The refusal of the probe as that of the call: under the call's id.
pub(super) fn as_of_call(refusal: &Bytes, probe: &str, call: &[u8]) -> Bytes {
    // No other text of the refusal is like the probe's random id.
    match (jsonrpc::read(call), std::str::from_utf8(refusal)) {
        (Line::One(Message { id: Some(id), .. }), Ok(text)) => {
            text.replace(&format!("\"{probe}\""), id.get()).into()
        }
        _ => refusal.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderName;
    use serde_json::Value;

    const CALL: &[u8] = br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"pay","_meta":{"progressToken":1,"io.modelcontextprotocol/clientInfo":{"name":"c"}}}}"#;

    fn headers() -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("mcp-method", "tools/call"),
            ("mcp-name", "pay"),
            ("mcp-param-region", "eu"),
            ("idempotency-key", "k"),
            ("mcp-protocol-version", "2026-07-28"),
            ("authorization", "Bearer t"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn the_probe_changes_nothing_and_has_the_callers_credential() {
        let (sent, body, id) = probe(&headers(), CALL, true);
        let mut names: Vec<_> = sent.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["authorization", "mcp-method", "mcp-protocol-version"]);
        assert_eq!(sent[METHOD], "server/discover");
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((&body["id"], &body["method"]), (&json!(id), &json!("server/discover")));
        let meta = json!({
            "io.modelcontextprotocol/clientInfo": { "name": "c" },
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        });
        assert_eq!(body["params"]["_meta"], meta);

        let (sent, body, _) = probe(&headers(), CALL, false);
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert!(!sent.contains_key(METHOD) && body["method"] == "ping");
    }

    #[test]
    fn its_refusal_is_that_of_the_call() {
        let refusal = |id: &str| {
            Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32600}}}}"#))
        };
        assert_eq!(as_of_call(&refusal("\"p\""), "p", CALL), refusal("7"));
        assert_eq!(as_of_call(&refusal("null"), "p", CALL), refusal("null"));
        assert_eq!(as_of_call(&"lost".into(), "p", CALL), "lost");
    }
}
