//! The guard's notes for the model, put below the server's own words.
use super::{
    mark,
    message::{self, present},
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

/// A block of text that the guard wrote, as JSON.
pub(super) fn block(text: &str) -> Value {
    json!({ "type": "text", "text": text, "_meta": { mark::NAME: true } })
}

#[derive(Deserialize)]
struct CallResult<'l> {
    #[serde(borrow, default)]
    content: Option<&'l RawValue>,
}

/// The result with further blocks of text; all else stays as the server wrote it.
pub(super) fn below_result(result: &str, notes: &[&str]) -> String {
    let blocks: Vec<_> = notes.iter().map(|note| block(note).to_string()).collect();
    let blocks = blocks.join(",");
    // A server may send any JSON as its result; only an object can carry our notes.
    let Ok(read) = message::object::<CallResult<'_>>(result) else { return result.to_owned() };
    let Some(content) = read.content else {
        return with_member(result, &format!("\"content\":[{blocks}]"));
    };
    let inside = content.get().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let own = match inside.map(str::trim) {
        Some(inside) => inside.to_owned(),
        None => json!({ "type": "text", "text": content.get() }).to_string(),
    };
    let comma = if own.is_empty() { "" } else { "," };
    with_value(result, content, &format!("[{own}{comma}{blocks}]"))
}

#[derive(Deserialize)]
struct RpcError<'l> {
    #[serde(borrow, default, deserialize_with = "present")]
    message: Option<&'l RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    data: Option<&'l RawValue>,
}

#[derive(Deserialize)]
struct ErrorData<'l> {
    #[serde(borrow, default, rename = "_meta", deserialize_with = "present")]
    meta: Option<&'l RawValue>,
}

/// The error with further lines in its message; which are ours stands in its data, where that is an
/// object, or missing. Of what is no object is told what is `known`.
pub(super) fn below_error(error: &str, known: &str, notes: &[&str]) -> String {
    let lines = |message: &str| Value::from([&[message], notes].concat().join("\n")).to_string();
    let Ok(read) = message::object::<RpcError<'_>>(error) else {
        let message = lines(known);
        return with_mark(&format!(r#"{{"code":-32603,"message":{message}}}"#), notes);
    };
    let own: Option<String> = read.message.and_then(|raw| serde_json::from_str(raw.get()).ok());
    if notes.is_empty() {
        return error.to_owned();
    }
    let lines = lines(own.as_deref().unwrap_or_default());
    let noted = match read.message {
        Some(message) => with_value(error, message, &lines),
        None => with_member(error, &format!("\"message\":{lines}")),
    };
    with_mark(&noted, notes)
}

/// The error with the mark in its data, if that can carry it.
fn with_mark(error: &str, notes: &[&str]) -> String {
    if notes.is_empty() {
        return error.to_owned();
    }
    let mark = format!("\"{}\":{}", mark::NAME, Value::from(notes.to_vec()));
    let meta = format!("\"_meta\":{{{mark}}}");
    let Ok(read) = message::object::<RpcError<'_>>(error) else { return error.to_owned() };
    let Some(data) = read.data else {
        return with_member(error, &format!("\"data\":{{{meta}}}"));
    };
    if data.get() == "null" {
        return with_value(error, data, &format!("{{{meta}}}"));
    }
    let marked = match message::object::<ErrorData<'_>>(data.get()) {
        Ok(ErrorData { meta: None }) => with_member(data.get(), &meta),
        Ok(ErrorData { meta: Some(own) }) if own.get().starts_with('{') => {
            with_value(data.get(), own, &with_member(own.get(), &mark))
        }
        _ => return error.to_owned(),
    };
    with_value(error, data, &marked)
}

/// An object with one more member, before its own.
fn with_member(object: &str, member: &str) -> String {
    let rest = &object[1..];
    let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
    format!("{{{member}{comma}{rest}")
}

/// The text with another value in the place of `old`, which is a part of it.
fn with_value(text: &str, old: &RawValue, new: &str) -> String {
    let place = message::range(text.as_bytes(), old);
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
            assert_eq!(below_result(&result(content), &["note"]), result(&noted));
        }
        assert_eq!(
            below_result(r#"{"isError":true}"#, &["note"]),
            format!(r#"{{"content":[{BLOCK}],"isError":true}}"#)
        );
    }

    #[test]
    fn a_note_leaves_a_success_of_any_form_readable() {
        for result in ["{}", "{ }", r#"{"x":1}"#, r#"{"content":[]}"#, "\"ok\"", "[]", "7", "null"]
        {
            let noted = below_result(result, &["note"]);
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
            assert_eq!(below_error(error, "known", &["note"]), noted);
        }
    }
}
