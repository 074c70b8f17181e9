//! Batches: lines of several messages. The members are not collected, since there may be millions.
use super::{
    elements::{elements, unchecked_elements},
    jsonrpc::{self, Message, Token},
    scan,
};
use bytes::Bytes;
use serde_json::value::RawValue;
use std::ops::Range;

/// A request in a line of the client's.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) id: Token,
    /// The position of the id.
    pub(crate) place: Range<usize>,
    pub(crate) is_list: bool,
}

/// The members of a batch in JSON.
fn each(line: &[u8]) -> impl Iterator<Item = &str> {
    let all = unchecked_elements(line).into_iter().flatten();
    all.filter_map(|one| str::from_utf8(one).ok()).filter(|one| !one.is_empty())
}

/// Reads a batch in JSON, and up to `most` of its requests; beyond, only those whose id `is_taken`. `None` if it calls a
/// tool, or could.
pub(crate) fn asks(
    line: &[u8],
    most: usize,
    is_taken: impl Fn(&Token) -> bool,
) -> Option<Vec<Asked>> {
    let mut others = Vec::new();
    for one in each(line) {
        match jsonrpc::object::<Message<'_>>(one) {
            Ok(message) if message.is_tool_call() => return None,
            Ok(message) => {
                if let (Some(method), Some(raw)) = (&message.method, message.id)
                    && let Some(id) = Token::read(raw)
                    && (others.len() < most || is_taken(&id))
                {
                    let (place, is_list) = (jsonrpc::range(line, raw), method == "tools/list");
                    others.push(Asked { id, place, is_list });
                }
            }
            Err(_) if jsonrpc::may_call_tool(one.as_bytes()) => return None,
            Err(_) => {}
        }
    }
    Some(others)
}

/// The ids of the requests in a batch.
pub(crate) fn requests(line: &[u8]) -> impl Iterator<Item = &RawValue> {
    each(line).filter_map(|one| {
        let message = jsonrpc::object::<Message<'_>>(one).ok()?;
        message.method.and(message.id)
    })
}

/// The ids of the answers in a batch.
pub(crate) fn answered(line: &[u8]) -> impl Iterator<Item = Token> {
    elements(line).into_iter().flatten().filter_map(scan::answered)
}

/// The messages of a batch, which need not be JSON; none if the line is no complete batch.
pub(crate) fn parts(line: &Bytes) -> impl Iterator<Item = Bytes> {
    elements(line).into_iter().flatten().map(|part| line.slice_ref(part))
}

/// Whether a part of a batch may be a message: only members of an object are read.
pub(crate) fn may_be_message(part: &[u8]) -> bool {
    scan::bare(part).starts_with(b"{") && memchr::memchr(b'"', part).is_some()
}

/// How many members without an id are answered one by one.
const MANY: usize = 100;

/// The ids under which to answer a batch, as JSON text: those of its requests, and `null` for a member
/// without a usable id or that is no message. There may be millions of the latter, so only the first
/// hundred are answered. Notifications and answers get no reply.
pub(crate) fn asked(line: &[u8]) -> Vec<&str> {
    let ids = each(line).filter_map(|one| match jsonrpc::object::<Message<'_>>(one) {
        Ok(message) if message.is_answer() => None,
        Ok(message) => message.id.map(|id| Token::read(id).map_or("null", |_| id.get())),
        Err(_) => Some("null"),
    });
    let mut nulls = 0;
    ids.filter(|id| {
        nulls += usize::from(*id == "null");
        *id != "null" || nulls <= MANY
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_tells_whether_it_calls_a_tool_and_what_else_it_asks() {
        let calls_tool = |line: &[u8]| asks(line, 9, |_| false).is_none();
        assert!(!calls_tool(br#" [{"method":"ping","id":1}]"#));
        assert!(!calls_tool(br#"[1,"tools",[],{}]"#));
        assert!(calls_tool(br#"[{"method":"ping"},{"method":"tools/call","id":1}]"#));
        assert!(calls_tool(br#"[{"method":"tools\/call","id":1}]"#));
        assert!(calls_tool(br#"[[{"method":"tools/call","id":1}]]"#));
        let line = br#"[{"method":"a","id":1},{"method":"b"},{"id":2,"result":{}},7,{"method":"tools/list","id":"x"},{"method":"c","id":3}]"#;
        let (one, x) = (Token::Number("1".into()), Token::Text("x".into()));
        let three = Token::Number("3".into());
        let asked = |is_taken: fn(&Token) -> bool| {
            let all = asks(line, 2, is_taken).unwrap();
            all.into_iter().map(|it| (it.id, it.is_list)).collect::<Vec<_>>()
        };
        assert_eq!(asked(|_| false), [(one.clone(), false), (x.clone(), true)]);
        assert_eq!(asked(|_| true), [(one, false), (x, true), (three, false)]);
    }

    #[test]
    fn of_millions_that_ask_nothing_a_hundred_are_answered() {
        let line = br#"[{"method":"a","id":1},7,{"method":"b"},{"id":8,"result":{}},{"method":"c","id":[]}]"#;
        assert_eq!(asked(line), ["1", "null", "null"]);
        let line = format!(r#"[{},{{"method":"a","id":"x"}}]"#, vec!["7"; 1_000].join(","));
        let asked = asked(line.as_bytes());
        assert_eq!((asked.len(), asked.last()), (101, Some(&"\"x\"")));
    }
}
