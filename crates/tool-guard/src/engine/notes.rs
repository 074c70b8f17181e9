//! The guard's notes for the model, added below the server's own text.
use crate::wire::{
    jsonrpc::{self, Line, string},
    mark,
};
use bytes::Bytes;
use serde_json::{Value, json, value::RawValue};
use std::{borrow::Cow, collections::HashMap};

/// A block of text that the guard wrote, as JSON.
pub(super) fn block(text: &str) -> Value {
    json!({ "type": "text", "text": text, "_meta": { mark::NAME: true } })
}

/// The result with more blocks of text; the rest stays as the server wrote it.
pub(super) fn below_result(result: &str, notes: &[String]) -> String {
    if notes.is_empty() {
        return result.to_owned();
    }
    let blocks: Vec<_> = notes.iter().map(|note| block(note).to_string()).collect();
    let blocks = blocks.join(",");
    // A server may send any JSON as its result; only an object can carry notes.
    let Some(read) = members(result) else { return result.to_owned() };
    let Some(&content) = read.get("content") else {
        return with_member(result, &format!("\"content\":[{blocks}]"));
    };
    let inside = content.get().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let own = match inside.map(str::trim) {
        Some(inside) => inside.to_owned(),
        None if content.get() == "null" => String::new(),
        None => json!({ "type": "text", "text": content.get() }).to_string(),
    };
    let comma = if own.is_empty() { "" } else { "," };
    with_value(result, content, &format!("[{own}{comma}{blocks}]"))
}

/// The error with more lines in its message. Its data names the guard's lines, if it is an object or missing.
/// For an error that is no object, the message is what is `known`.
pub(super) fn below_error(error: &str, known: &str, notes: &[String]) -> String {
    let error = match members(error) {
        Some(_) => error.to_owned(),
        None => json!({ "code": -32603, "message": known }).to_string(),
    };
    if notes.is_empty() {
        return error;
    }
    let message = members(&error).and_then(|read| read.get("message").copied());
    let said = message.and_then(string).unwrap_or_default();
    let lines = Value::from([&[said.into()], notes].concat().join("\n")).to_string();
    let noted = match message {
        Some(message) => with_value(&error, message, &lines),
        None => with_member(&error, &format!("\"message\":{lines}")),
    };
    // The mark, if its data can carry it.
    let mark = format!("\"{}\":{}", mark::NAME, Value::from(notes.to_vec()));
    in_data(&noted, &mark).unwrap_or(noted)
}

/// The error with a member in the `_meta` of its data, if that can carry it.
fn in_data(error: &str, member: &str) -> Option<String> {
    let read = members(error)?;
    let Some(&data) = read.get("data") else {
        return Some(with_member(error, &format!("\"data\":{{\"_meta\":{{{member}}}}}")));
    };
    if data.get() == "null" {
        return Some(with_value(error, data, &format!("{{\"_meta\":{{{member}}}}}")));
    }
    Some(with_value(error, data, &in_meta(data.get(), member)?))
}

/// The object with a member in its `_meta`, if that can carry it.
fn in_meta(object: &str, member: &str) -> Option<String> {
    match members(object)?.get("_meta") {
        None => Some(with_member(object, &format!("\"_meta\":{{{member}}}"))),
        Some(own) if own.get().starts_with('{') => {
            Some(with_value(object, own, &with_member(own.get(), member)))
        }
        Some(_) => None,
    }
}

/// The members of an object, as the server wrote them; of several with one name the last, which readers take.
fn members(object: &str) -> Option<HashMap<Cow<'_, str>, &RawValue>> {
    jsonrpc::object(object).ok()
}

/// The line with the mark that its call's end is not recorded; unchanged if it cannot carry the mark.
pub(super) fn unrecorded(line: Bytes) -> Bytes {
    let Line::One(message) = jsonrpc::read(&line) else { return line };
    let member = format!("\"{}\":false", mark::RECORDED);
    let noted = match (message.result, message.error) {
        (Some(result), _) => in_meta(result.get(), &member).map(|noted| (result, noted)),
        (None, Some(error)) => in_data(error.get(), &member).map(|noted| (error, noted)),
        (None, None) => None,
    };
    let Some((part, noted)) = noted else { return line };
    jsonrpc::splice(&line, &[(jsonrpc::range(&line, part), &noted)])
}

/// The line of a result with the note that its server was started again; any other stays as it is.
pub(super) fn restarted(line: Bytes) -> Bytes {
    let note = "[The MCP server crashed and was started again: what it kept in memory is lost]";
    let Line::One(message) = jsonrpc::read(&line) else { return line };
    let Some(result) = message.result else { return line };
    let noted = below_result(result.get(), &[note.into()]);
    jsonrpc::splice(&line, &[(jsonrpc::range(&line, result), &noted)])
}

/// An object with one more member, before its own.
fn with_member(object: &str, member: &str) -> String {
    let rest = &object[1..];
    let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
    format!("{{{member}{comma}{rest}")
}

/// The text with `old`, a part of it, replaced by another value.
fn with_value(text: &str, old: &RawValue, new: &str) -> String {
    let place = jsonrpc::range(text.as_bytes(), old);
    [&text[..place.start], new, &text[place.end..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: &str = r#"{"_meta":{"tool-reliability/guard":true},"text":"note","type":"text"}"#;

    #[test]
    fn a_note_joins_whatever_a_server_says_of_a_failure() {
        let cases = [
            (r#"[{"text":"a"}]"#, r#"[{"text":"a"},NOTE]"#),
            ("[ ]", "[NOTE]"),
            (r#""a""#, r#"[{"text":"\"a\"","type":"text"},NOTE]"#),
            ("7", r#"[{"text":"7","type":"text"},NOTE]"#),
        ];
        let result = |content: &str| {
            format!(
                r#"{{"big":12345678901234567890123, "isError":true,"content":{content},"x":1.0}}"#
            )
        };
        for (content, noted) in cases {
            let noted = noted.replace("NOTE", BLOCK);
            assert_eq!(below_result(&result(content), &["note".into()]), result(&noted));
        }
        assert_eq!(
            below_result(r#"{"isError":true}"#, &["note".into()]),
            format!(r#"{{"content":[{BLOCK}],"isError":true}}"#)
        );
    }

    /// Readers take the last of several members with one name.
    #[test]
    fn a_member_that_is_there_twice_keeps_no_note_away() {
        let error = r#"{"code":-32602,"message":"bad","code":-32602}"#;
        let noted = below_error(error, "known", &["note".into()]);
        let read: Value = serde_json::from_str(&noted).unwrap();
        assert_eq!((&read["code"], &read["message"]), (&json!(-32602), &json!("bad\nnote")));
        for result in [r#"{"content":[],"isError":true,"isError":true}"#, r#"{"content":null}"#] {
            let read: Value =
                serde_json::from_str(&below_result(result, &["note".into()])).unwrap();
            assert_eq!(read["content"][0]["text"], "note", "{result}");
        }
    }

    #[test]
    fn an_end_that_is_not_recorded_says_so_in_any_answer_that_can_carry_it() {
        const WORD: &str = r#""tool-reliability/recorded":false"#;
        let cases = [
            (r#""result":{"content":[]}"#, r#""result":{"_meta":{WORD},"content":[]}"#),
            (r#""result":{"x":1.0,"_meta":{"a":1}}"#, r#""result":{"x":1.0,"_meta":{WORD,"a":1}}"#),
            (r#""result":{"_meta":7}"#, r#""result":{"_meta":7}"#),
            (r#""result":[1]"#, r#""result":[1]"#),
            (r#""error":{"code":1}"#, r#""error":{"data":{"_meta":{WORD}},"code":1}"#),
            (
                r#""error":{"data":{"_meta":{"tool-reliability/guard":["n"]}}}"#,
                r#""error":{"data":{"_meta":{WORD,"tool-reliability/guard":["n"]}}}"#,
            ),
        ];
        for (sent, noted) in cases {
            let line = |part: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":1,{part}}}\n");
            let noted = line(&noted.replace("WORD", WORD));
            assert_eq!(unrecorded(line(sent).into()), noted);
        }
        assert_eq!(unrecorded("{\"id\":1,\"result\":NaN}\n".into()), "{\"id\":1,\"result\":NaN}\n");
    }

    #[test]
    fn a_note_leaves_a_success_of_any_form_readable() {
        for result in ["{}", "{ }", r#"{"x":1}"#, r#"{"content":[]}"#, "\"ok\"", "[]", "7", "null"]
        {
            let noted = below_result(result, &["note".into()]);
            let read: Value = serde_json::from_str(&noted)
                .unwrap_or_else(|error| panic!("{result}: {error}: {noted}"));
            let has_note = read["content"].as_array().is_some_and(|all| !all.is_empty());
            assert_eq!(has_note, result.starts_with('{'), "{result}");
        }
    }

    #[test]
    fn a_note_joins_an_error_of_any_form_and_all_else_stays() {
        const MARK: &str = r#""tool-reliability/guard":["note"]"#;
        let cases = [
            (
                r#"{"code":-1,"big":12345678901234567890123,"message":"a\u0062"}"#,
                r#"{"data":{"_meta":{MARK}},"code":-1,"big":12345678901234567890123,"message":"ab\nnote"}"#,
            ),
            (
                r#"{"message":"a","data":{"x":1.0}}"#,
                r#"{"message":"a\nnote","data":{"_meta":{MARK},"x":1.0}}"#,
            ),
            (
                r#"{"message":"a","data":{"_meta":{"x":1}}}"#,
                r#"{"message":"a\nnote","data":{"_meta":{MARK,"x":1}}}"#,
            ),
            (r#"{"data":null}"#, r#"{"message":"\nnote","data":{"_meta":{MARK}}}"#),
            (r#"{"data":"text"}"#, r#"{"message":"\nnote","data":"text"}"#),
            (r#"{"data":{"_meta":7},"message":7}"#, r#"{"data":{"_meta":7},"message":"\nnote"}"#),
            ("[5]", r#"{"data":{"_meta":{MARK}},"code":-32603,"message":"known\nnote"}"#),
        ];
        for (error, noted) in cases {
            let noted = noted.replace("MARK", MARK);
            assert_eq!(below_error(error, "known", &["note".into()]), noted);
        }
    }
}
