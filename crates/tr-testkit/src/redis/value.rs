//! Commands and replies of Redis's protocol, over a server's own socket.

use crate::resp::{Header, frame_end};
use std::{
    fmt,
    io::{self, Read as _, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

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

impl Value {
    /// The value of a complete RESP2 frame.
    fn read(frame: &[u8]) -> Option<Self> {
        Self::read_at(frame, &mut 0)
    }

    fn read_at(frame: &[u8], at: &mut usize) -> Option<Self> {
        let header = Header::at(frame, *at).ok()??;
        let line = frame.get(*at + 1..header.end - 2)?;
        *at = header.end;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some(match (header.kind, header.count) {
            (b'+', _) => Self::Text(text(line)),
            (b'-', _) => Self::Error(text(line)),
            (b':', _) => Self::Int(text(line).parse().ok()?),
            (b'$', Some(count)) => {
                let from = *at;
                *at += count + 2;
                Self::Text(text(frame.get(from..from + count)?))
            }
            (b'*', Some(count)) => {
                Self::List((0..count).map(|_| Self::read_at(frame, at)).collect::<Option<_>>()?)
            }
            (b'$' | b'*', None) => Self::Nil,
            _ => return None,
        })
    }

    /// The text, if it is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if it is one.
    #[must_use]
    pub const fn int(&self) -> Option<i64> {
        match self {
            Self::Int(int) => Some(*int),
            _ => None,
        }
    }
}

/// A command's bytes.
fn command<S: AsRef<[u8]>>(args: &[S]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        let arg = arg.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
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

/// How long a reply may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends one command and reads the reply.
pub(super) fn ask<S: AsRef<[u8]>>(
    socket: &Path,
    password: Option<&str>,
    args: &[S],
) -> io::Result<Value> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    if let Some(password) = password {
        exchange(&mut stream, &["AUTH", password])?;
    }
    exchange(&mut stream, args)
}

fn exchange<S: AsRef<[u8]>>(stream: &mut UnixStream, args: &[S]) -> io::Result<Value> {
    stream.write_all(&command(args))?;
    let (mut reply, mut chunk) = (Vec::new(), [0; 16 * 1024]);
    while frame_end(&reply) == Ok(None) {
        match stream.read(&mut chunk)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => reply.extend_from_slice(&chunk[..count]),
        }
    }
    match Value::read(&reply) {
        Some(Value::Error(error)) => Err(io::Error::other(error)),
        Some(value) => Ok(value),
        None => Err(io::Error::new(io::ErrorKind::InvalidData, "not a Redis reply")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_an_array_of_texts() {
        assert_eq!(command(&["GET", "é"]), "*2\r\n$3\r\nGET\r\n$2\r\né\r\n".as_bytes());
    }

    #[test]
    fn a_reply_is_read() {
        let read = |frame: &str| Value::read(frame.as_bytes()).unwrap();
        let list = read("*3\r\n$1\r\na\r\n:-2\r\n*1\r\n$-1\r\n");
        let expected =
            [Value::Text("a".into()), Value::Int(-2), Value::List(vec![Value::Nil])].to_vec();
        assert_eq!(list, Value::List(expected));
        assert_eq!(list.to_string(), "a -2 (nil)");
        assert_eq!(read("+OK\r\n").text(), Some("OK"));
        assert_eq!(read(":7\r\n").int(), Some(7));
    }
}
