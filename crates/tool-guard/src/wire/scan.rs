//! Reads lines that are too long to be kept or that no JSON reader accepts: the top-level `id` of an object,
//! whether it is a request, its result and error. And which request a line of any kind answers.
use super::jsonrpc::{Line, Token, read};
use std::{mem::take, ops::Range};

/// The longest id that is remembered, in bytes of JSON text.
const MAX_ID: usize = 256;

// Names of members, as JSON text.
const RESULT: &[u8] = b"\"result\"";
const ERROR: &[u8] = b"\"error\"";

/// Reads an object byte by byte, and keeps only its `id` and the positions of its answer.
#[derive(Debug, Default)]
pub(crate) struct IdScan {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The string or scalar that is being read at the top level, or directly in `result`.
    token: Vec<u8>,
    /// The name of the top-level member whose value is being read.
    member: Vec<u8>,
    /// The name of the member of `result` whose value is being read.
    flag: Vec<u8>,
    /// Whether a value comes next, and not a name.
    value: bool,
    /// The id's JSON text and its position, if it was a string or a number. Of several it is the last, as JSON
    /// readers take it.
    pub(crate) found: Option<(Box<str>, Range<usize>)>,
    /// Whether it is a request or notification, and no answer.
    pub(crate) asks: bool,
    /// Whether it has a result or an error.
    pub(crate) answers: bool,
    /// Whether it says `"jsonrpc": "2.0"`: clients take nothing else for an answer.
    pub(crate) is_rpc: bool,
    /// The positions of the last `error` and the last `result`, unless they are `null`.
    pub(super) error: Option<Range<usize>>,
    result: Option<Range<usize>>,
    /// Whether the last `result` has `isError: true`.
    is_error: bool,
    /// Whether the last `result` has `resultType: "input_required"`.
    wants_input: bool,
    /// How many bytes were read.
    pub(super) read: usize,
    /// The beginning of the value that is being read at the top level.
    begun: usize,
    /// The beginning of the top-level value that is being read, of any kind.
    value_begun: Option<usize>,
    /// Whether the object has ended.
    pub(crate) ended: bool,
}

impl IdScan {
    /// Continues with more of the text.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.step(byte);
            self.read += 1;
        }
    }

    /// The position of its `result`, if it has one, and whether it has `isError: true`.
    pub(crate) fn result(&self) -> Option<(Range<usize>, bool)> {
        Some((self.result.clone()?, self.is_error))
    }

    /// Whether it answers with anything but a call's result: a failure, or a question.
    pub(crate) fn is_no_success(&self) -> bool {
        let in_error = self.value && self.member == ERROR;
        self.error.is_some() || in_error || self.is_error || self.wants_input
    }

    fn step(&mut self, byte: u8) {
        let in_result = self.depth == 2 && self.member == RESULT;
        let keep = (self.depth == 1 || in_result) && self.token.len() < MAX_ID;
        if keep && self.token.is_empty() {
            self.begun = self.read;
        }
        if self.depth == 1 && self.value && !byte.is_ascii_whitespace() {
            self.value_begun.get_or_insert(self.read);
        }
        if keep && (self.in_string || byte == b'"') {
            self.token.push(byte);
        }
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => {
                // Only scalars have a text that is kept.
                self.depth += 1;
                self.flag.clear();
                if self.depth == 2 && self.member == RESULT {
                    (self.is_error, self.wants_input) = (false, false);
                }
            }
            b'}' | b']' => {
                self.end_value();
                self.ended |= self.depth == 1 && byte == b'}';
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => self.begin_member(),
            b':' if in_result => self.flag = take(&mut self.token),
            b',' if self.depth == 1 || in_result => self.end_value(),
            _ if keep && !byte.is_ascii_whitespace() => self.token.push(byte),
            _ => {}
        }
    }

    /// Handles the end of a name at the top level.
    fn begin_member(&mut self) {
        self.member = take(&mut self.token);
        self.asks |= self.member == b"\"method\"";
        self.answers |= matches!(&*self.member, RESULT | ERROR);
        self.value = true;
    }

    fn end_value(&mut self) {
        if self.depth == 2 && self.member == RESULT {
            let token = take(&mut self.token);
            match &*take(&mut self.flag) {
                b"\"isError\"" => self.is_error = token == b"true",
                b"\"resultType\"" => self.wants_input = token == b"\"input_required\"",
                _ => {}
            }
        }
        if self.depth != 1 {
            return;
        }
        let token = take(&mut self.token);
        let begun = self.value_begun.take().unwrap_or(self.read);
        if !take(&mut self.value) {
            return;
        }
        let whole = (token != b"null").then_some(begun..self.read);
        match &*take(&mut self.member) {
            b"\"id\"" if token.len() < MAX_ID => {
                let place = self.begun..self.begun + token.len();
                let text = String::from_utf8(token).ok();
                let usable = text.filter(|text| !text.is_empty() && text != "null");
                self.found = usable.map(|text| (text.into(), place));
            }
            ERROR => self.error = whole,
            RESULT => self.result = whole,
            b"\"jsonrpc\"" => self.is_rpc = token == b"\"2.0\"",
            _ => {}
        }
    }
}

/// The line without white space around it, and without a byte order mark before it.
pub(crate) fn bare(line: &[u8]) -> &[u8] {
    const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
    line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii()
}

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
        let bare = bare(line);
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

    fn id(text: &str) -> Option<Box<str>> {
        let mut scan = IdScan::default();
        text.as_bytes().chunks(3).for_each(|chunk| scan.feed(chunk));
        Some(scan.found?.0)
    }

    #[test]
    fn tells_what_asks_from_what_answers() {
        let asks = |text: &str| {
            let mut scan = IdScan::default();
            scan.feed(text.as_bytes());
            scan.asks
        };
        assert!(asks(r#"{"id":1,"params":{},"method":"x"}"#));
        assert!(!asks(r#"{"id":1,"result":{"method":"x"},"error":"method"}"#));
    }

    #[test]
    fn finds_the_top_level_id_only() {
        assert_eq!(id(r#"{"a":{"id":1},"id" : 7,"b":[{"id":2}]}"#).as_deref(), Some("7"));
        assert_eq!(id(r#"{"id":"a\"}b","x":"\"id\":9"}"#).as_deref(), Some(r#""a\"}b""#));
        assert_eq!(id(r#"{"x":"id","y":[1,2],"id":3}"#).as_deref(), Some("3"));
        assert_eq!(id(r#"{"id":null,"x":1}"#), None);
        assert_eq!(id(r#"{"id":{"x":1}}"#), None);
        assert_eq!(id(r#"{"x":{"id":5}}"#), None);
        assert_eq!(id("[]]}{"), None);
        assert_eq!(id(r#"{"id":1,"id":2}"#).as_deref(), Some("2"));
    }

    #[test]
    fn tells_what_it_answers() {
        let scan = |text: &str| {
            let mut scan = IdScan::default();
            text.as_bytes().chunks(5).for_each(|chunk| scan.feed(chunk));
            let part = |place: Range<usize>| text[place].trim_end().to_owned();
            let result = scan.result().map(|(place, is_error)| (part(place), is_error));
            (scan.error.map(part), result)
        };
        let result = |text: &str, is_error| (None, Some((text.to_owned(), is_error)));
        for (text, is_error) in [
            (r#"{"isError":true,"x":NaN}"#, true),
            (r#"{"x":[NaN],"isError" : true }"#, true),
            (r#"{"isError":false}"#, false),
            (r#"{"isError":true,"isError":false}"#, false),
            (r#"{"isError":"true"}"#, false),
            (r#"{"isError":[true]}"#, false),
            (r#"{"x":{"isError":true}}"#, false),
            (r#"{"x":"\"isError\":true","y":"isError"}"#, false),
            (r#"["isError",true]"#, false),
            ("NaN", false),
            (r#""isError""#, false),
        ] {
            assert_eq!(scan(&format!(r#"{{"id":1,"result": {text}}}"#)), result(text, is_error));
            let behind = format!(r#"{{"result":{text} , "isError":true,"error":null,"id":"x"}}"#);
            assert_eq!(scan(&behind), result(text, is_error));
        }
        let two = r#"{"result":{"isError":true},"id":7,"result":{"x":NaN}}"#;
        assert_eq!(scan(two), result(r#"{"x":NaN}"#, false), "the last counts");
        let error = (Some(r#"{"code":-1,"data":NaN}"#.to_owned()), None);
        assert_eq!(scan(r#"{"id":1,"error":{"code":-1,"data":NaN} ,"id":1}"#), error);
        assert_eq!(scan(r#"{"id":1,"error":"boom"}"#), (Some("\"boom\"".to_owned()), None));
        assert_eq!(scan(r#"{"id":1,"method":"error","params":{"error":1}}"#), (None, None));
    }

    #[test]
    fn tells_a_result_from_a_failure_and_a_question() {
        let is_no_success = |text: &str| {
            let mut scan = IdScan::default();
            text.as_bytes().chunks(5).for_each(|chunk| scan.feed(chunk));
            scan.is_no_success()
        };
        for (text, wanted) in [
            (r#"{"result":{"content":[],"isError":true}}"#, true),
            (r#"{"result":{"resultType":"input_required","x":1}}"#, true),
            (r#"{"error":{"code":-32602}}"#, true),
            (r#"{"error":{"code":-32602,"message":"cut o"#, true),
            (r#"{"result":{"resultType":"complete","isError":false}}"#, false),
            (r#"{"result":{"x":{"resultType":"input_required"}},"error":null}"#, false),
            (r#"{"id":"error","result":{"content":["isError"]}}"#, false),
        ] {
            assert_eq!(is_no_success(text), wanted, "{text}");
        }
    }

    #[test]
    fn tells_where_the_id_stands_and_whether_the_object_ended() {
        for (text, whole) in [
            ("\u{feff}{\"x\":NaN, \"id\": \"a b\" ,\"y\":[{}]}\n", true),
            ("{\"id\": \"a b\",\"resu", false),
            ("{\"s\":\"\u{1}}\",\"id\":\"a b\",\"r\":[\"}\"", false),
        ] {
            let mut scan = IdScan::default();
            scan.feed(text.as_bytes());
            assert_eq!(scan.ended, whole, "{text}");
            let (id, place) = scan.found.unwrap();
            assert_eq!((&*id, &text[place]), ("\"a b\"", "\"a b\""));
        }
    }

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
