//! Splits a byte stream into pieces: frames of Redis's protocol, or the received chunks of another
//! protocol.

use crate::resp::{Header, NotResp, frame_end};
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
            match frame_end(rest) {
                Ok(Some(end)) => {
                    let frame: Vec<u8> = rest.drain(..end).collect();
                    pieces.push(Piece { is_reply: !is_push(&frame), is_frame: true, bytes: frame });
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
    /// It is a whole frame.
    is_frame: bool,
    /// If it comes from the server, it is the reply to a command.
    pub(super) is_reply: bool,
}

impl Piece {
    const fn other(bytes: Vec<u8>) -> Self {
        Self { bytes, is_frame: false, is_reply: true }
    }

    /// The name of the command, if it is one: its first argument.
    pub(super) fn command(&self) -> Option<&str> {
        let frame = Some(&*self.bytes).filter(|_| self.is_frame)?;
        let array = Header::at(frame, 0).ok()??;
        let first = Header::at(frame, array.end).ok()??;
        let is_command = array.kind == b'*' && first.kind == b'$';
        str::from_utf8(frame.get(first.end..first.end + first.count?)?).ok().filter(|_| is_command)
    }

    /// Whether it is a frame, a command or the reply to one.
    pub(super) const fn counts(&self) -> bool {
        self.is_frame && self.is_reply
    }
}

/// Whether a frame from the server is not the reply to a command.
fn is_push(frame: &[u8]) -> bool {
    frame.first() == Some(&b'>')
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
