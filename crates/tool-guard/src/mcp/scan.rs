//! Finds the top-level `id` of a JSON object that is too long to be kept or that no JSON reader
//! takes, and whether it asks.
use std::ops::Range;

/// The longest id that is remembered, in bytes of JSON text.
const MAX_ID: usize = 256;

/// Reads an object byte by byte and keeps nothing but its `id`.
#[derive(Debug, Default)]
pub(crate) struct IdScan {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The string or scalar that is being read at the top level.
    token: Vec<u8>,
    /// The value that is being read at the top level belongs to `id`.
    is_id: bool,
    /// A value, and not a name, comes next.
    value: bool,
    found: Option<Found>,
    asks: bool,
    answers: bool,
    /// How much was read.
    read: usize,
    /// Where the value began that is being read at the top level.
    begun: usize,
    /// The object has ended.
    ended: bool,
}

/// An id, and where it stands.
#[derive(Debug)]
struct Found {
    text: Box<str>,
    place: Range<usize>,
}

impl IdScan {
    /// Goes on with more of the text.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.step(byte);
            self.read += 1;
        }
    }

    /// The id's JSON text, if it was a string or a number. Of several it is the last, which is the
    /// one that readers of JSON keep.
    pub(crate) fn found(self) -> Option<Box<str>> {
        self.found.map(|found| found.text)
    }

    /// The same, and where it stands.
    pub(crate) fn placed(self) -> Option<(Box<str>, Range<usize>)> {
        self.found.map(|found| (found.text, found.place))
    }

    /// Whether the object was there as a whole.
    pub(crate) const fn ended(&self) -> bool {
        self.ended
    }

    /// Whether it is a request or notification, and no answer.
    pub(crate) const fn asks(&self) -> bool {
        self.asks
    }

    /// Whether it says what came of a request.
    pub(crate) const fn answers(&self) -> bool {
        self.answers
    }

    fn step(&mut self, byte: u8) {
        let keep = self.depth == 1 && self.token.len() < MAX_ID;
        if keep && self.token.is_empty() {
            self.begun = self.read;
        }
        if self.in_string {
            if keep {
                self.token.push(byte);
            }
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if keep {
                    self.token.push(byte);
                }
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.end_value();
                self.ended |= self.depth == 1 && byte == b'}';
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => {
                self.is_id = self.token == b"\"id\"";
                self.asks |= self.token == b"\"method\"";
                self.answers |= [&b"\"result\""[..], b"\"error\""].contains(&&*self.token);
                self.token.clear();
                self.value = true;
            }
            b',' if self.depth == 1 => self.end_value(),
            _ if keep && !byte.is_ascii_whitespace() => self.token.push(byte),
            _ => {}
        }
    }

    fn end_value(&mut self) {
        if self.depth != 1 {
            return;
        }
        let token = std::mem::take(&mut self.token);
        if std::mem::take(&mut self.value)
            && std::mem::take(&mut self.is_id)
            && token.len() < MAX_ID
        {
            let place = self.begun..self.begun + token.len();
            let text = String::from_utf8(token).ok();
            let usable = text.filter(|text| !text.is_empty() && text != "null");
            self.found = usable.map(|text| Found { text: text.into(), place });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> Option<Box<str>> {
        let mut scan = IdScan::default();
        text.as_bytes().chunks(3).for_each(|chunk| scan.feed(chunk));
        scan.found()
    }

    #[test]
    fn tells_what_asks_from_what_answers() {
        let asks = |text: &str| {
            let mut scan = IdScan::default();
            scan.feed(text.as_bytes());
            scan.asks()
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
    fn tells_where_the_id_stands_and_whether_the_object_ended() {
        for (text, whole) in [
            ("\u{feff}{\"x\":NaN, \"id\": \"a b\" ,\"y\":[{}]}\n", true),
            ("{\"id\": \"a b\",\"resu", false),
            ("{\"s\":\"\u{1}}\",\"id\":\"a b\",\"r\":[\"}\"", false),
        ] {
            let mut scan = IdScan::default();
            scan.feed(text.as_bytes());
            assert_eq!(scan.ended(), whole, "{text}");
            let (id, place) = scan.placed().unwrap();
            assert_eq!((&*id, &text[place]), ("\"a b\"", "\"a b\""));
        }
    }
}
