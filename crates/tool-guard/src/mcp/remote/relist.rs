//! The list of tools, asked for by the guard when a server refuses a call whose headers lack arguments.
use crate::mcp::{
    message::{self, Line, Token},
    upstream::client_meta,
};
use bytes::Bytes;
use hyper::{
    HeaderMap,
    header::{HeaderName, HeaderValue},
};
use serde_json::{Value, json, value::RawValue};

/// What an answer says of the list.
pub(super) enum Listed {
    /// It is no answer.
    Other,
    /// There is no list.
    None,
    /// A page of it, and where the next begins.
    Page(Box<RawValue>, Option<String>),
}

/// A request for a page, in the name of this call's client, and its id.
pub(super) fn request(call: &[u8], cursor: Option<&str>) -> (Bytes, Token) {
    let id = format!("tool-guard-list-{:016x}", fastrand::u64(..));
    let mut params = json!({ "_meta": client_meta(call) });
    if let Some(cursor) = cursor {
        params["cursor"] = cursor.into();
    }
    let body = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": params });
    (body.to_string().into(), Token::Text(id.into()))
}

/// Reads an answer to it.
pub(super) fn read(line: &Bytes) -> Listed {
    let Line::One(message) = message::read(line) else { return Listed::Other };
    if message.method.is_some() || message.id.is_none() {
        return Listed::Other;
    }
    let Some(result) = message.result else { return Listed::None };
    let page: Value = serde_json::from_str(result.get()).unwrap_or_default();
    let cursor = page["nextCursor"].as_str().map(str::to_owned);
    Listed::Page(result.to_owned(), cursor)
}

/// The headers that repeat arguments.
pub(super) fn params(headers: &HeaderMap) -> Vec<(HeaderName, HeaderValue)> {
    let params = headers.iter().filter(|(name, _)| name.as_str().starts_with("mcp-param-"));
    params.map(|(name, value)| (name.clone(), value.clone())).collect()
}
