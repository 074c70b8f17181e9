//! What can be made out of a line that no JSON reader accepts, and which request a line of any kind answers.
use super::{
    jsonrpc::{Line, Token, read},
    scan::{self, IdScan},
};
use std::ops::Range;

/// What can be read of a line that is no JSON, or ambiguous.
#[derive(Debug)]
pub(crate) struct Guess {
    /// Its `id`; of several the last, as JSON readers take it.
    pub(crate) id: Token,
    /// The position of the id.
    pub(crate) place: Range<usize>,
    /// Whether it is a complete answer: only an object with a result or an error, and without a method.
    pub(crate) is_answer: bool,
    /// Whether it is one that says `"jsonrpc": "2.0"`.
    pub(crate) is_response: bool,
    /// The position of its error, if it has one.
    pub(crate) error: Option<Range<usize>>,
    /// The position of its result, if it has one, and whether the result has `isError: true`.
    pub(crate) result: Option<(Range<usize>, bool)>,
}

impl Guess {
    /// Searches the `id` at the top level of an object, in spite of a byte order mark, numbers that JSON does
    /// not have, raw control characters and duplicate names.
    pub(crate) fn of(line: &[u8]) -> Option<Self> {
        let mut scan = IdScan::default();
        scan.feed(line);
        let bare = scan::bare(line);
        let whole = scan.ended && bare.starts_with(b"{") && bare.ends_with(b"}");
        let is_answer = whole && scan.answers && !scan.asks;
        let is_response = is_answer && scan.is_rpc;
        let result = scan.result();
        let (text, place) = scan.found?;
        let id = Token::of_json(&text)?;
        Some(Self { id, place, is_answer, is_response, error: scan.error, result })
    }
}

/// The id of the request that a line answers.
pub(crate) fn answered(line: &[u8]) -> Option<Token> {
    read(line).answered(line)
}

impl Line<'_> {
    /// What `line`, which this was read from, answers by itself.
    pub(crate) fn answered(&self, line: &[u8]) -> Option<Token> {
        match self {
            Self::One(message) if message.method.is_none() => message.token(),
            Self::One(_) | Self::Batch => None,
            Self::Unreadable { .. } => Guess::of(line).filter(|it| it.is_answer).map(|it| it.id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_made_out_where_json_ends() {
        let guess =
            |line: &str| Guess::of(line.as_bytes()).map(|it| (it.id.to_json(), it.is_answer));
        let answer = Some(("7".to_owned(), true));
        for line in [
            r#"{"id":7,"result":{"x":NaN,"y":[-Infinity]}}"#,
            "\u{feff}{\"id\":7,\"result\":{}}\r\n",
            "{\"result\":\"\u{1}\",\"id\":7.0}",
            r#"{"id":3,"result":{},"id":7}"#,
            r#"{"id":7,"result":{"id":3},"result":{"id":4}}"#,
        ] {
            assert_eq!(guess(line), answer, "{line}");
        }
        for line in [
            r#"{"id":7,"method":"sampling/createMessage","result":NaN}"#,
            r#"{"id":7,"resu"#,
            r#"answered {"id":7,"result":{}}"#,
            r#"{"id":7,"result":{}} and more"#,
            r#"{"id":7,"level":NaN}"#,
        ] {
            assert_eq!(guess(line), Some(("7".to_owned(), false)), "{line}");
        }
        for line in [r#"{"id":null,"result":NaN}"#, r#"{"id":[7],"result":NaN}"#, "7", ""] {
            assert_eq!(guess(line), None, "{line}");
        }
    }
}
