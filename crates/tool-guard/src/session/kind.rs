//! Tells sessions that are one JSON text from those of JSON lines.
use super::{Failure, Trouble, file::File};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::error::Category;
use std::io::{BufReader, Read as _};

/// How much of a file's beginning is looked at.
const HEAD: u64 = 64 << 10;

/// How a session is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One JSON text.
    Whole,
    /// JSON lines.
    Lines,
}

/// How the session in a file is written.
pub(crate) fn kind(source: &File) -> Result<Kind, Failure> {
    let mut head = Vec::new();
    let read = source.rewound()?.take(HEAD).read_to_end(&mut head);
    read.map_err(|error| Trouble::reading(source.real(), &error))?;
    let text = head.trim_ascii_start();
    match text.first() {
        None if head.len() as u64 == source.found().len() => {
            Err(Failure::NoSession("it is empty".into()))
        }
        Some(b'[') => Ok(Kind::Whole),
        Some(b'{') => object(source, text),
        // Lines of which a crash has torn the first, perhaps.
        _ => Ok(Kind::Lines),
    }
}

/// Of a file that begins with an object.
fn object(source: &File, head: &[u8]) -> Result<Kind, Failure> {
    #[derive(Deserialize)]
    struct Request {
        messages: Option<IgnoredAny>,
        input: Option<IgnoredAny>,
        contents: Option<IgnoredAny>,
    }
    let mut values = serde_json::Deserializer::from_reader(BufReader::new(source.rewound()?));
    let first = Request::deserialize(&mut values);
    match first.and_then(|first| values.end().map(|()| first)) {
        Ok(Request { messages: None, input: None, contents: None }) => Ok(Kind::Lines),
        Ok(_) => Ok(Kind::Whole),
        Err(error) if error.classify() == Category::Io => {
            Err(Trouble::reading(source.real(), &error.into()).into())
        }
        Err(error) if is_broken_request(head) => {
            let help = "if it was cut off, take an earlier copy of it; else mend the JSON by hand";
            Err(Trouble::new(format!("is no whole JSON text: {error}"), help).into())
        }
        Err(_) => Ok(Kind::Lines),
    }
}

/// Whether a text that is not whole began as a request: its first line is no record, and not a
/// torn one either.
fn is_broken_request(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
    let goes_on = matches!(line.last(), Some(b'{' | b'[' | b','));
    let names_messages = memchr::memmem::find(line, b"\"messages\"").is_some();
    (goes_on || names_messages) && serde_json::from_slice::<IgnoredAny>(line).is_err()
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
            assert_eq!(kind_of(text.as_bytes()).unwrap(), Kind::Whole, "{text}");
        }
        let lines = [
            "{\"type\":\"session\"}",
            "{\"a\":1}\n{\"b\":2}\n",
            "{\"a\":{\"b\":2}\n{\"b\":2}\n",
            "\0\0{\"a\":1}",
            "\u{feff}{\"a\":1}\n{}",
            "Dear diary",
        ];
        for text in lines {
            assert_eq!(kind_of(text.as_bytes()).unwrap(), Kind::Lines, "{text}");
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
            assert!(matches!(kind_of(text.as_bytes()), Err(Failure::Trouble(_))), "{text}");
        }
    }
}
