//! The headers of MCP 2026-07-28, which must say what the body says.
use crate::{
    front::access::text,
    wire::{
        http_names::{METHOD, MODERN, NAME, VERSION, is_modern},
        jsonrpc::{INVALID_PARAMS, MISMATCH, Message, string},
        mirrored::{self, Mirrored},
        params::Params,
    },
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use hyper::{HeaderMap, header::HeaderName};
use serde_json::Value;
use std::borrow::Cow;

/// Why a modern request is refused: the name of the header that does not say what the body says.
pub(crate) fn mismatch(headers: &HeaderMap, message: &Message<'_>) -> Option<HeaderName> {
    let method = message.method.as_deref()?;
    let params = Params::of(message);
    let version = params.meta().version.and_then(string);
    let is_said = version.as_deref().is_some_and(|version| version >= MODERN);
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
    if let Some(name) = name.and_then(string)
        && decoded(text(headers, &NAME).unwrap_or_default()).as_deref() != Some(&*name)
    {
        return Some(NAME);
    }
    (text(headers, &VERSION) != Some(&*version?)).then_some(VERSION)
}

/// Why a command cannot be sent a modern request that a server over HTTP would refuse: an error's code and text.
pub(crate) fn fault(
    headers: &HeaderMap,
    message: &Message<'_>,
    tools: &Mirrored,
) -> Option<(i64, String)> {
    message.id?;
    let method = message.method.as_deref()?;
    let params: Value =
        message.params.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let meta = &params["_meta"];
    let says = |name: &str| &meta[format!("io.modelcontextprotocol/{name}")];
    if !says("protocolVersion").is_string() {
        return Some(missing("protocolVersion"));
    }
    if !says("clientCapabilities").is_object() {
        return Some(missing("clientCapabilities"));
    }
    let tool = params["name"].as_str().filter(|_| method == "tools/call")?;
    tools.of(tool, &params["arguments"]).find_map(|(name, argument)| {
        let argument = argument?;
        let header = format!("mcp-param-{name}");
        let given = headers.get(&header).and_then(|value| value.to_str().ok()).and_then(decoded);
        let is_equal = given.is_some_and(|given| match argument.as_f64() {
            Some(number) => given.parse() == Ok(number),
            None => given == mirrored::text(argument),
        });
        let why = || format!("the header {header} does not say what the body says");
        (!is_equal).then(|| (MISMATCH, why()))
    })
}

fn missing(name: &str) -> (i64, String) {
    (INVALID_PARAMS, format!("_meta has no usable io.modelcontextprotocol/{name}"))
}

/// The text of a header, which is in Base64 if it has other characters than a header allows.
fn decoded(value: &str) -> Option<Cow<'_, str>> {
    let Some(encoded) = value.strip_prefix("=?base64?").and_then(|it| it.strip_suffix("?=")) else {
        return Some(Cow::Borrowed(value));
    };
    String::from_utf8(STANDARD.decode(encoded).ok()?).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::jsonrpc::{self, Line};
    use hyper::header::HeaderValue;

    fn checked(version: &str, method: &str, name: &str) -> Option<HeaderName> {
        let mut headers = HeaderMap::new();
        for (key, value) in [(VERSION, version), (METHOD, method), (NAME, name)] {
            headers.insert(key, HeaderValue::from_str(value).unwrap());
        }
        let body = r#"{"id":1,"method":"tools/call","params":{"name":"zahle über","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        let Line::One(message) = jsonrpc::read(body.as_bytes()) else { panic!() };
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
        let Line::One(old) = jsonrpc::read(br#"{"id":1,"method":"tools/call"}"#) else { panic!() };
        assert_eq!(mismatch(&HeaderMap::new(), &old), None);
    }

    fn faulty(arguments: &str, headers: &[(&'static str, &'static str)]) -> Option<i64> {
        let schema = r#"{"properties":{"region":{"type":"string","x-mcp-header":"Region"},"row":{"type":"integer","x-mcp-header":"Row"}}}"#;
        let mut tools = Mirrored::default();
        tools.learn("pay", serde_json::from_str(schema).unwrap());
        let body = format!(
            r#"{{"id":1,"method":"tools/call","params":{{"name":"pay","arguments":{arguments},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        );
        let Line::One(message) = jsonrpc::read(body.as_bytes()) else { panic!() };
        let mut given = HeaderMap::new();
        for (name, value) in headers {
            given.insert(*name, HeaderValue::from_static(value));
        }
        fault(&given, &message, &tools).map(|(code, _)| code)
    }

    #[test]
    fn headers_repeat_the_arguments_that_a_schema_names() {
        let both = r#"{"region":"eu","row":42}"#;
        let region = ("mcp-param-region", "eu");
        assert_eq!(faulty(both, &[region, ("mcp-param-row", "42")]), None);
        assert_eq!(faulty(both, &[region, ("mcp-param-row", "42.0")]), None);
        assert_eq!(
            faulty(both, &[("mcp-param-region", "=?base64?ZXU=?="), ("mcp-param-row", "42")]),
            None
        );
        assert_eq!(faulty(both, &[region]), Some(MISMATCH));
        assert_eq!(faulty(both, &[region, ("mcp-param-row", "43")]), Some(MISMATCH));
        assert_eq!(
            faulty(both, &[("mcp-param-region", "us"), ("mcp-param-row", "42")]),
            Some(MISMATCH)
        );
        assert_eq!(
            faulty(both, &[("mcp-param-region", "=?base64?!?="), ("mcp-param-row", "42")]),
            Some(MISMATCH)
        );
        assert_eq!(faulty(r#"{"region":null}"#, &[]), None);
    }

    #[test]
    fn a_command_gets_only_requests_that_say_their_version() {
        for (meta, code) in [
            (r#"{}"#, Some(-32602)),
            (r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#, Some(-32602)),
            (r#"{"io.modelcontextprotocol/clientCapabilities":{}}"#, Some(-32602)),
            (
                r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#,
                None,
            ),
        ] {
            let body = format!(r#"{{"id":1,"method":"tools/list","params":{{"_meta":{meta}}}}}"#);
            let Line::One(message) = jsonrpc::read(body.as_bytes()) else { panic!() };
            let fault = fault(&HeaderMap::new(), &message, &Mirrored::default());
            assert_eq!(fault.map(|(code, _)| code), code, "{meta}");
        }
    }
}
