//! Reads Redis's protocol: values of RESP2 and RESP3, one after the other.

use std::fmt;

/// A reply of a Redis server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value {
    /// Nothing.
    Nil,
    /// A number.
    Int(i64),
    /// A text; invalid UTF-8 is replaced.
    Text(String),
    /// An error within a list.
    Error(String),
    /// Several values.
    List(Vec<Value>),
}

/// Error: the bytes are not Redis's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotResp;

/// The largest accepted count; more than any test sends.
const MOST: usize = 1 << 30;

impl Value {
    /// The first value of `bytes`, and where it ends; `None` if it is incomplete.
    pub(crate) fn first(bytes: &[u8]) -> Result<Option<(Self, usize)>, NotResp> {
        let Some(&kind) = bytes.first() else { return Ok(None) };
        if !b"+-:_,#($=!*~>%|".contains(&kind) {
            return Err(NotResp);
        }
        let Some(line) = bytes.windows(2).position(|two| two == b"\r\n") else { return Ok(None) };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (line, mut end) = (text(&bytes[1..line]), line + 2);
        let count = || line.parse().ok().filter(|count| *count <= MOST).ok_or(NotResp);
        let value = match kind {
            b'+' | b',' | b'#' | b'(' => Self::Text(line),
            b'-' => Self::Error(line),
            b':' => Self::Int(line.parse().map_err(|_| NotResp)?),
            b'_' => Self::Nil,
            _ if line == "-1" => Self::Nil,
            b'$' | b'=' | b'!' => {
                let (start, count) = (end, count()?);
                end += count + 2;
                let Some(body) = bytes.get(start..end) else { return Ok(None) };
                Self::Text(text(&body[..count]))
            }
            _ => {
                let count = match kind {
                    b'%' => 2 * count()?,
                    // Attributes come before the value that they belong to.
                    b'|' => 2 * count()? + 1,
                    _ => count()?,
                };
                let mut values = Vec::new();
                for _ in 0..count {
                    let Some((value, length)) = Self::first(&bytes[end..])? else {
                        return Ok(None);
                    };
                    values.push(value);
                    end += length;
                }
                Self::List(values)
            }
        };
        Ok(Some((value, end)))
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if it is one.
    pub const fn int(&self) -> Option<i64> {
        match self {
            Self::Int(int) => Some(*int),
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nil => f.write_str("(nil)"),
            Self::Int(int) => int.fmt(f),
            Self::Text(text) | Self::Error(text) => f.write_str(text),
            Self::List(values) => values.iter().enumerate().try_for_each(|(at, value)| match at {
                0 => value.fmt(f),
                _ => write!(f, " {value}"),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame_end(bytes: &[u8]) -> Result<Option<usize>, NotResp> {
        Value::first(bytes).map(|first| first.map(|(_, end)| end))
    }

    #[test]
    fn a_frame_ends_where_its_last_value_does() {
        for frame in [
            "+OK\r\n",
            "-ERR no\r\n",
            ":-5\r\n",
            "$-1\r\n",
            "$0\r\n\r\n",
            "$5\r\na\r\nbc\r\n",
            "*0\r\n",
            "*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
            "%1\r\n+a\r\n:1\r\n",
            "|1\r\n+ttl\r\n:9\r\n$1\r\na\r\n",
            ">2\r\n+message\r\n_\r\n",
            "#t\r\n",
        ] {
            let bytes = frame.as_bytes();
            for cut in 0..bytes.len() {
                assert_eq!(frame_end(&bytes[..cut]), Ok(None), "{frame:?} cut at {cut}");
            }
            let and_more = [bytes, b"+more\r\n"].concat();
            assert_eq!(frame_end(&and_more), Ok(Some(bytes.len())), "{frame:?}");
        }
    }

    #[test]
    fn what_is_no_frame_is_said_to_be_none() {
        for bytes in ["PING\r\n", "GET / HTTP/1.1\r\n", "$x\r\n", "*-2\r\n", "$99999999999\r\n"] {
            assert_eq!(frame_end(bytes.as_bytes()), Err(NotResp), "{bytes:?}");
        }
    }

    #[test]
    fn a_reply_is_read() {
        let read = |frame: &str| Value::first(frame.as_bytes()).unwrap().unwrap().0;
        let list = read("*3\r\n$1\r\na\r\n:-2\r\n*1\r\n$-1\r\n");
        let expected =
            [Value::Text("a".into()), Value::Int(-2), Value::List(vec![Value::Nil])].to_vec();
        assert_eq!(list, Value::List(expected));
        assert_eq!(list.to_string(), "a -2 (nil)");
        assert_eq!(read("+OK\r\n").text(), Some("OK"));
        assert_eq!(read(":7\r\n").int(), Some(7));
    }
}
