//! JSON-RPC lines, read without changing them: every part is a slice of the line.
use bytes::Bytes;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt, ops::Range};

// The codes of JSON-RPC's and MCP's errors.
pub(crate) const PARSE_ERROR: i64 = -32_700;
pub(crate) const INVALID_REQUEST: i64 = -32_600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32_601;
pub(crate) const INVALID_PARAMS: i64 = -32_602;
/// The error of a request that was not forwarded, or not answered.
pub(crate) const NOT_FORWARDED: i64 = -32_000;
/// The error of a request whose headers and body differ.
pub(crate) const MISMATCH: i64 = -32_020;

/// The notice that the list of tools is no longer current.
pub(crate) const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// The top level of a line.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Message<'l> {
    /// `null` is an id too, but an answer cannot be addressed to it.
    #[serde(borrow, default, deserialize_with = "present")]
    pub(crate) id: Option<&'l RawValue>,
    #[serde(borrow)]
    pub(crate) method: Option<Cow<'l, str>>,
    pub(crate) params: Option<&'l RawValue>,
    /// `null` is a result, too.
    #[serde(borrow, default, deserialize_with = "present")]
    pub(crate) result: Option<&'l RawValue>,
    pub(crate) error: Option<&'l RawValue>,
    #[serde(borrow)]
    pub(crate) jsonrpc: Option<Cow<'l, str>>,
}

/// The members of a JSON-RPC error that the guard reads.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct RpcError<'l> {
    #[serde(borrow)]
    code: Option<&'l RawValue>,
    #[serde(default, deserialize_with = "present")]
    pub(crate) message: Option<&'l RawValue>,
    #[serde(default, deserialize_with = "present")]
    pub(crate) data: Option<&'l RawValue>,
}

impl RpcError<'_> {
    pub(crate) fn code(&self) -> Option<i64> {
        serde_json::from_str(self.code?.get()).ok()
    }
}

/// The members of a result that the guard reads.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct CallResult<'l> {
    #[serde(borrow)]
    pub(crate) content: Option<&'l RawValue>,
    #[serde(rename = "isError")]
    pub(crate) is_error: Option<&'l RawValue>,
    #[serde(default, rename = "_meta", deserialize_with = "present")]
    pub(crate) meta: Option<&'l RawValue>,
    #[serde(rename = "resultType")]
    pub(crate) kind: Option<&'l RawValue>,
}

/// The kinds of lines that the guard distinguishes.
#[derive(Debug)]
pub(crate) enum Line<'l> {
    /// One message.
    One(Message<'l>),
    /// An array, possibly of messages.
    Batch,
    /// Not JSON-RPC, or ambiguous.
    Unreadable {
        /// Whether some reader might find a tool call in it.
        may_call_tool: bool,
    },
}

#[cfg(test)]
thread_local! {
    /// How many lines and bodies this thread has read.
    pub(crate) static READS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// Reads a line. Bytes that are no UTF-8 make it unreadable wherever they are: some servers replace them, and
/// a line made from them would be no valid JSON either.
pub(crate) fn read(line: &[u8]) -> Line<'_> {
    #[cfg(test)]
    READS.set(READS.get() + 1);
    let read = std::str::from_utf8(line).ok().and_then(|text| {
        if text.trim_ascii_start().starts_with('[') {
            return serde_json::from_str::<IgnoredAny>(text).ok().map(|_| Line::Batch);
        }
        serde_json::from_str(text).ok().map(Line::One)
    });
    read.unwrap_or_else(|| Line::Unreadable { may_call_tool: may_call_tool(line) })
}

/// A member's value, `null` too.
pub(crate) fn present<'l, D: serde::Deserializer<'l>>(
    from: D,
) -> Result<Option<&'l RawValue>, D::Error> {
    Deserialize::deserialize(from).map(Some)
}

/// The text of a string, borrowed if it has no escapes; `None` of any other value.
pub(crate) fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inside = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    match memchr::memchr(b'\\', inside.as_bytes()) {
        None => Some(Cow::Borrowed(inside)),
        Some(_) => serde_json::from_str(raw.get()).ok().map(Cow::Owned),
    }
}

/// Reads an object. serde would also accept an array, with its elements for the fields in order.
pub(crate) fn object<'l, T: Deserialize<'l>>(text: &'l str) -> serde_json::Result<T> {
    if text.starts_with('{') {
        return serde_json::from_str(text);
    }
    Err(serde::de::Error::custom("expected an object"))
}

/// The line with U+FFFD for its bytes that are no UTF-8, as decoders have it; `None` if it has none.
pub(crate) fn repaired(line: &[u8]) -> Option<Bytes> {
    std::str::from_utf8(line).err()?;
    Some(Bytes::from(String::from_utf8_lossy(line).into_owned()))
}

/// Escapes can spell the method in many ways, so any escape counts as a possible call.
pub(super) fn may_call_tool(text: &[u8]) -> bool {
    memchr::memmem::find(text, b"tools/call").is_some() || memchr::memchr(b'\\', text).is_some()
}

impl Message<'_> {
    /// An answer to a request. Some clients write a request's missing members as `null`.
    pub(crate) fn is_answer(&self) -> bool {
        let result = self.result.filter(|raw| self.method.is_none() || raw.get() != "null");
        result.or(self.error).is_some()
    }

    /// A server's answer, as clients take it: what a server logs has ids and results, too.
    pub(crate) fn is_response(&self) -> bool {
        let is_rpc = self.jsonrpc.as_deref() == Some("2.0");
        is_rpc && self.method.is_none() && self.result.or(self.error).is_some()
    }

    /// The ID of the request, or of the one that this answers.
    pub(crate) fn token(&self) -> Option<Token> {
        Token::read(self.id?)
    }

    /// The client's first request.
    pub(crate) fn is_initialize(&self) -> bool {
        self.method.as_deref() == Some("initialize")
    }

    /// A request to run a tool.
    pub(crate) fn is_tool_call(&self) -> bool {
        self.method.as_deref() == Some("tools/call")
    }
}

/// An id or a progress token: two spellings of the same value are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Token {
    Text(Box<str>),
    /// The number's canonical text.
    Number(Box<str>),
}

impl Token {
    /// `None` if it is neither string nor number.
    pub(crate) fn read(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        if text.starts_with('"') {
            return serde_json::from_str(text).ok().map(Self::Text);
        }
        // Most ids are such numbers; all readers parse one this short alike.
        if text.len() <= 15 && !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit()) {
            return Some(Self::Number(text.into()));
        }
        let number = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
        let canonical = number.then(|| tr_core::canonical::to_string(text).ok())?;
        canonical.map(|text| Self::Number(text.into()))
    }

    /// The ID whose JSON text this is.
    pub(crate) fn of_json(text: &str) -> Option<Self> {
        Self::read(serde_json::from_str(text).ok()?)
    }

    /// As a number, such as the guard itself gives.
    pub(crate) fn number(&self) -> Option<u64> {
        match self {
            Self::Number(text) => text.parse().ok(),
            Self::Text(_) => None,
        }
    }

    /// As JSON text.
    pub(crate) fn to_json(&self) -> String {
        match self {
            Self::Text(text) => serde_json::Value::from(&**text).to_string(),
            Self::Number(text) => text.to_string(),
        }
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) | Self::Number(text) => f.write_str(text),
        }
    }
}

/// The range of `part` in `line`, of which it is a slice.
pub(crate) fn range(line: &[u8], part: &RawValue) -> Range<usize> {
    let start = part.get().as_ptr().addr() - line.as_ptr().addr();
    let range = start..start + part.get().len();
    debug_assert_eq!(&line[range.clone()], part.get().as_bytes());
    range
}

/// The line with some parts replaced; the parts must be ordered and disjoint.
pub(crate) fn splice(line: &[u8], parts: &[(Range<usize>, &str)]) -> Bytes {
    let extra: usize = parts.iter().map(|(_, text)| text.len()).sum();
    let mut spliced = Vec::with_capacity(line.len() + extra);
    let mut from = 0;
    for (range, text) in parts {
        spliced.extend_from_slice(&line[from..range.start]);
        spliced.extend_from_slice(text.as_bytes());
        from = range.end;
    }
    spliced.extend_from_slice(&line[from..]);
    spliced.into()
}

/// The line with its newline: in JSON others stand only between tokens.
pub(crate) fn with_newline(line: &[u8]) -> Bytes {
    let mut one = Vec::with_capacity(line.len() + 1);
    one.extend_from_slice(line.trim_ascii_end());
    for at in memchr::memchr2_iter(b'\n', b'\r', line.trim_ascii_end()) {
        one[at] = b' ';
    }
    one.push(b'\n');
    one.into()
}

/// The error in a body, if it has one.
pub(crate) fn error(body: &[u8]) -> Option<RpcError<'_>> {
    let Line::One(message) = read(body) else { return None };
    Some(object(message.error?.get()).unwrap_or_default())
}

/// The code of the error in a body, if it has one.
pub(crate) fn error_code(body: &[u8]) -> Option<i64> {
    error(body)?.code()
}

/// The JSON text of the id under which a line is answered.
pub(crate) fn id_text(line: &[u8]) -> String {
    match read(line) {
        Line::One(Message { id: Some(id), .. }) => id.get().to_owned(),
        _ => "null".to_owned(),
    }
}

/// The line that cancels a request, whose id has this JSON text.
pub(crate) fn cancellation(id: impl fmt::Display, reason: &str) -> Bytes {
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id},\"reason\":\"{reason}\"}}}}\n"
    );
    line.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::params::Params;

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn ids_are_the_same_however_they_are_written() {
        assert_eq!(Token::read(raw("1.0")), Token::read(raw("1")));
        assert_eq!(Token::read(raw(r#""\u0061""#)), Token::read(raw(r#""a""#)));
        assert_ne!(Token::read(raw(r#""1""#)), Token::read(raw("1")));
        assert_eq!(Token::read(raw("{}")), None);
    }

    #[test]
    fn a_method_in_disguise_is_a_tool_call() {
        let Line::One(message) = read(br#"{"method":"tools\/c\u0061ll","id":1}"#) else { panic!() };
        assert!(message.is_tool_call());
    }

    #[test]
    fn a_line_that_readers_could_take_two_ways_is_unreadable() {
        for line in [
            &br#"{"method":"ping","method":"tools/call","id":1}"#[..],
            br#"{"method":"tools/call","id":1} {"#,
            b"{\"method\":\"tools/call\",\"params\":\"\xff\"}",
            b"{\"method\":\"tools/call\",\"jsonrpc\":\"\xff\"}",
        ] {
            assert!(matches!(read(line), Line::Unreadable { may_call_tool: true }));
        }
        assert!(matches!(read(b"{nonsense"), Line::Unreadable { may_call_tool: false }));
    }

    #[test]
    fn splicing_replaces_parts_and_keeps_the_rest() {
        let line = br#"{ "id": 7 , "params": {"_meta":{"progressToken": 7}} }"#;
        let Line::One(message) = read(line) else { panic!() };
        let meta = Params::of(&message).meta();
        let parts = [
            (range(line, message.id.unwrap()), "\"a\""),
            (range(line, meta.progress_token.unwrap()), "\"b\""),
        ];
        assert_eq!(
            splice(line, &parts),
            br#"{ "id": "a" , "params": {"_meta":{"progressToken": "b"}} }"#[..]
        );
    }
}
