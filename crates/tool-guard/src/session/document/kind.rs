//! Distinguishes a session in one JSON text from a session in JSON lines.
use crate::{
    files::{CliError, File},
    session::verdict::Failure,
};
use serde::{Deserialize as _, de::IgnoredAny};
use serde_json::error::Category;
use std::{
    collections::BTreeMap,
    io::{self, BufReader, Read as _},
};

/// How many bytes at the beginning of a file are examined.
const HEAD: u64 = 64 << 10;

/// The header of every SQLite database.
pub(crate) const DATABASE: &[u8; 16] = b"SQLite format 3\0";

/// The byte order mark that some programs write before UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The members that may hold messages, in a request or in an agent's file, and one of opencode's files, which have a message
/// or a part of one each.
const LISTS: [&str; 6] = ["messages", "input", "contents", "conversation", "history", "sessionID"];

/// The kind of a session file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One JSON text.
    JsonDocument,
    /// JSON lines.
    JsonLines,
}

/// Detects the kind of a session file.
pub(crate) fn kind(source: &File) -> Result<Kind, Failure> {
    let mut head = Vec::new();
    let read = source.rewound()?.take(HEAD).read_to_end(&mut head);
    read.map_err(|error| CliError::reading(&source.real, &error))?;
    if head.starts_with(DATABASE) {
        return Err(CliError::new("is a database", "give its path instead of its content").into());
    }
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        let help = "sessions are UTF-8; convert a copy: iconv -f UTF-16 -t UTF-8 FILE > COPY";
        return Err(CliError::new("is UTF-16", help).into());
    }
    let mark = if head.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let text = head[mark..].trim_ascii_start();
    let kind = match text.first() {
        None if head.len() as u64 == source.found.len() => {
            return Err(Failure::NoSession("it is empty".into()));
        }
        Some(b'[') => Kind::JsonDocument,
        Some(b'{') => object(source, mark as u64, text)?,
        // These may be lines of which a crash has torn the first.
        _ => Kind::JsonLines,
    };
    if kind == Kind::JsonDocument && mark > 0 {
        let help = "JSON has none, and agents may refuse it: take it away from a copy, \
                    tail -c +4 FILE > COPY";
        return Err(CliError::new("begins with a byte order mark", help).into());
    }
    Ok(kind)
}

/// Detects the kind of a file that begins with an object, after a byte order mark of `mark` bytes.
fn object(source: &File, mark: u64, head: &[u8]) -> Result<Kind, Failure> {
    type Object = BTreeMap<String, Option<IgnoredAny>>;
    let has_none =
        |object: &Object| !LISTS.iter().any(|name| matches!(object.get(*name), Some(Some(_))));
    // As far as it is examined.
    let is_one_line = || memchr::memchr(b'\n', head.trim_ascii_end()).is_none();
    let reading = |error| CliError::reading(&source.real, &error);
    let open = source.rewound()?;
    io::copy(&mut open.take(mark), &mut io::sink()).map_err(reading)?;
    let mut values = serde_json::Deserializer::from_reader(BufReader::new(open));
    match Object::deserialize(&mut values) {
        // A single object over several lines is not JSON lines.
        Ok(object) if has_none(&object) && values.end().is_ok() && !is_one_line() => {
            Err(Failure::NoSession("there are no messages in it".into()))
        }
        // Followed by more text, it is the first of several lines.
        Ok(object) if !has_none(&object) && values.end().is_ok() => Ok(Kind::JsonDocument),
        Err(error) if error.classify() == Category::Io => Err(reading(error.into()).into()),
        Err(error) if is_broken_request(head) => {
            let help = "if it was cut off, take an earlier copy of it; else fix the JSON by hand";
            Err(CliError::new(format!("is no whole JSON text: {error}"), help).into())
        }
        Ok(_) | Err(_) => Ok(Kind::JsonLines),
    }
}

/// Whether an incomplete text began as a request: its first line is neither a record nor a torn
/// record.
fn is_broken_request(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
    let goes_on = matches!(line.last(), Some(b'{' | b'[' | b','));
    let names = ["\"messages\"", "\"input\"", "\"contents\""];
    let names_messages = |text: &[u8]| {
        names.iter().any(|name| memchr::memmem::find(text, name.as_bytes()).is_some())
    };
    (goes_on && names_messages(head) || names_messages(line))
        && serde_json::from_slice::<IgnoredAny>(line).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of(text: &[u8]) -> Result<Kind, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s");
        std::fs::write(&file, text).unwrap();
        kind(&File::open(&file).unwrap())
    }

    #[test]
    fn texts_and_lines_are_told_apart() {
        let wholes = ["[]", " \n[{}]", "{\"messages\":[]}", "{\n \"input\": [\n{}\n]\n}\n"];
        for text in wholes {
            assert_eq!(kind_of(text.as_bytes()).unwrap(), Kind::JsonDocument, "{text}");
        }
        let lines = [
            "{\"type\":\"session\"}",
            "{\"a\":1}\n{\"b\":2}\n",
            "{\"a\":{\"b\":2}\n{\"b\":2}\n",
            "\0\0{\"a\":1}",
            "\u{feff}{\"a\":1}\n{}",
            "Dear diary",
            // A request may be a line among others.
            "{\"messages\":[]}\n{\"b\":2}\n",
            // Longer than what is looked at, which ends as a request may that goes on.
            &format!("{{\"a\":{}{}}}\n{{\"b\":2}}\n", "[".repeat(99_999), "]".repeat(99_999)),
        ];
        for text in lines {
            assert_eq!(kind_of(text.as_bytes()).unwrap(), Kind::JsonLines, "{text}");
        }
    }

    #[test]
    fn other_encodings_are_named() {
        let utf16: Vec<u8> = "\u{feff}[]".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let marked = "\u{feff}{\"messages\":[]}".as_bytes();
        for (text, what) in [
            (&utf16[..], "is UTF-16"),
            (marked, "begins with a byte order mark"),
            ("\u{feff} []".as_bytes(), "begins with a byte order mark"),
        ] {
            let Err(Failure::CliError(cli_error)) = kind_of(text) else { panic!("{text:?}") };
            assert_eq!(cli_error.what, what);
        }
    }

    #[test]
    fn a_request_that_was_cut_off_is_not_taken_for_lines() {
        let line = r#"{"role":"user","content":"hi"}"#;
        let cut = [
            format!("{{\n  \"messages\": [\n    {line},\n    {line}"),
            format!("{{\"messages\":[\n{line},\n{line}"),
            format!("{{\"messages\":[{line},{line}"),
        ];
        for text in cut {
            assert!(matches!(kind_of(text.as_bytes()), Err(Failure::CliError(_))), "{text}");
        }
    }
}
