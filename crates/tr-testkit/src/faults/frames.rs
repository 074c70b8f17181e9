//! Splits a byte stream into pieces: frames of Redis's protocol, or the received chunks of another
//! protocol.

use crate::resp::{NotResp, Value};
use std::mem;

/// One direction of a connection.
#[derive(Debug)]
pub(super) enum Frames {
    /// So far it is Redis's protocol; the last frame is incomplete.
    Resp(Vec<u8>),
    Other,
}

impl Frames {
    pub(super) const fn new() -> Self {
        Self::Resp(Vec::new())
    }

    /// Adds bytes; returns the pieces that are complete now.
    pub(super) fn add(&mut self, bytes: &[u8]) -> Vec<Piece> {
        let Self::Resp(rest) = self else { return vec![Piece::other(bytes.to_vec())] };
        rest.extend_from_slice(bytes);
        let mut pieces = Vec::new();
        loop {
            match Value::first(rest) {
                Ok(Some((value, end))) => {
                    let frame: Vec<u8> = rest.drain(..end).collect();
                    // Else the server pushed it.
                    let is_reply = frame.first() != Some(&b'>');
                    pieces.push(Piece { bytes: frame, value: Some(value), is_reply });
                }
                Ok(None) => return pieces,
                Err(NotResp) => {
                    pieces.push(Piece::other(mem::take(rest)));
                    *self = Self::Other;
                    return pieces;
                }
            }
        }
    }

    /// The rest at the end of the stream.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        match self {
            Self::Resp(rest) => mem::take(rest),
            Self::Other => Vec::new(),
        }
    }
}

/// A piece, which passes or is lost as a whole.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) bytes: Vec<u8>,
    /// Of a whole frame.
    value: Option<Value>,
    /// If it comes from the server, it is the reply to a command.
    pub(super) is_reply: bool,
}

impl Piece {
    const fn other(bytes: Vec<u8>) -> Self {
        Self { bytes, value: None, is_reply: true }
    }

    /// The name of the command, if it is one: its first argument.
    pub(super) fn command(&self) -> Option<&str> {
        match &self.value {
            Some(Value::List(parts)) => parts.first()?.text(),
            _ => None,
        }
    }

    /// Whether it is a frame, a command or the reply to one.
    pub(super) const fn counts(&self) -> bool {
        self.value.is_some() && self.is_reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(pieces: &[Piece]) -> Vec<&str> {
        pieces.iter().map(|piece| str::from_utf8(&piece.bytes).unwrap()).collect()
    }

    #[test]
    fn frames_come_whole_however_the_bytes_come() {
        let stream = b"+OK\r\n$3\r\nabc\r\n>1\r\n+news\r\n:1\r\n";
        for size in 1..stream.len() {
            let mut frames = Frames::new();
            let pieces: Vec<_> = stream.chunks(size).flat_map(|part| frames.add(part)).collect();
            assert_eq!(texts(&pieces), ["+OK\r\n", "$3\r\nabc\r\n", ">1\r\n+news\r\n", ":1\r\n"]);
            let answers: Vec<_> = pieces.iter().map(|piece| piece.is_reply).collect();
            assert_eq!(answers, [true, true, false, true]);
        }
    }

    #[test]
    fn another_protocol_passes_as_it_comes() {
        let mut frames = Frames::new();
        assert_eq!(texts(&frames.add(b"+OK\r\nHTTP")), ["+OK\r\n", "HTTP"]);
        assert_eq!(texts(&frames.add(b"+O")), ["+O"]);
    }

    #[test]
    fn what_the_end_cuts_off_is_left() {
        let mut frames = Frames::new();
        assert!(frames.add(b"$9\r\nabc").is_empty());
        assert_eq!(frames.rest(), b"$9\r\nabc");
    }

    #[test]
    fn a_command_is_called_by_its_first_argument() {
        let piece = |bytes: &str| Frames::new().add(bytes.as_bytes()).remove(0);
        assert_eq!(piece("*2\r\n$7\r\nEVALSHA\r\n$1\r\na\r\n").command(), Some("EVALSHA"));
        for other in ["*0\r\n", "+OK\r\n", "*1\r\n:1\r\n", "PING\r\n"] {
            assert_eq!(piece(other).command(), None, "{other:?}");
        }
    }
}
