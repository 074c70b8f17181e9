//! HTTP/1.1 as bytes, so that both sides can break its rules.
use std::{
    io::{self, BufRead, Read, Write},
    net::{Shutdown, TcpStream},
    thread,
    time::{Duration, Instant},
};

/// How long anything may take before a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A request or a response without its body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Head {
    /// The request line or the status line.
    pub(crate) first: String,
    pub(crate) headers: Vec<(String, String)>,
}

impl Head {
    /// Reads it; `None` where the other side has ended.
    pub(crate) fn read(from: &mut impl BufRead) -> Option<Self> {
        let mut line = || {
            let mut text = String::new();
            let size = from.read_line(&mut text).ok()?;
            (size > 0).then(|| text.trim_end().to_owned())
        };
        let mut head = Self { first: line()?, headers: Vec::new() };
        loop {
            let text = line()?;
            if text.is_empty() {
                return Some(head);
            }
            let (name, value) = text.split_once(':')?;
            head.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| &**value)
    }

    /// Of a request.
    pub(crate) fn method(&self) -> &str {
        self.first.split(' ').next().unwrap_or_default()
    }

    /// Of a response.
    pub(crate) fn status(&self) -> u16 {
        let status = self.first.split(' ').nth(1).and_then(|it| it.parse().ok());
        status.unwrap_or_else(|| panic!("no status: {}", self.first))
    }

    /// The reader of its body.
    pub(crate) fn body<R: BufRead>(&self, from: R) -> Body<R> {
        let left = if self.header("transfer-encoding") == Some("chunked") {
            Left::Chunk(0)
        } else if let Some(length) = self.header("content-length") {
            Left::Bytes(length.parse().unwrap())
        } else {
            Left::UntilEnd
        };
        Body { from, left }
    }
}

/// What is left of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Bytes(u64),
    /// Of the current chunk.
    Chunk(u64),
    UntilEnd,
}

#[derive(Debug)]
pub(crate) struct Body<R> {
    from: R,
    left: Left,
}

impl<R: BufRead> Read for Body<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.left == Left::Chunk(0) {
            let mut size = String::new();
            self.from.read_line(&mut size)?;
            let digits = size.trim().split(';').next().unwrap_or_default();
            let size = u64::from_str_radix(digits, 16).map_err(|_| cut())?;
            if size == 0 {
                self.from.read_line(&mut String::new())?;
                self.left = Left::Bytes(0);
            } else {
                self.left = Left::Chunk(size);
            }
        }
        let most = match self.left {
            Left::Bytes(0) => return Ok(0),
            Left::Bytes(left) | Left::Chunk(left) => into.len().min(left as usize),
            Left::UntilEnd => into.len(),
        };
        let size = self.from.read(&mut into[..most])?;
        match &mut self.left {
            Left::UntilEnd => {}
            _ if size == 0 => return Err(cut()),
            Left::Bytes(left) => *left -= size as u64,
            Left::Chunk(left) => {
                *left -= size as u64;
                if *left == 0 {
                    self.from.read_line(&mut String::new())?;
                }
            }
        }
        Ok(size)
    }
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the body was cut")
}

/// Reads data of server-sent events one after the other: the `id`, and the data.
pub(crate) fn event(from: &mut impl BufRead) -> io::Result<Option<(Option<String>, String)>> {
    let (mut id, mut data, mut is_any) = (None, String::new(), false);
    loop {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end_matches(['\r', '\n']);
        if line.is_empty() && is_any {
            return Ok(Some((id, data)));
        }
        if let Some(value) = line.strip_prefix("data:") {
            data.push_str(value.trim_start());
            is_any = true;
        }
        if let Some(value) = line.strip_prefix("id:") {
            id = Some(value.trim().to_owned());
            is_any = true;
        }
    }
}

/// A whole message with its body's length.
pub(crate) fn message(first: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut text = format!("{first}\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += &format!("content-length: {}\r\n\r\n", body.len());
    [text.as_bytes(), body].concat()
}

/// Sends bytes; whether the other side takes them.
pub(crate) fn send(to: &mut impl Write, bytes: &[u8]) -> bool {
    to.write_all(bytes).and_then(|()| to.flush()).is_ok()
}

pub(crate) fn close(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Both);
}

/// Waits until `probe` finds something.
pub(crate) fn until<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let since = now();
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(since.elapsed() < PATIENCE, "waited {PATIENCE:?} until {what}");
        thread::park_timeout(Duration::from_millis(5));
    }
}

#[expect(clippy::disallowed_methods, reason = "real processes take real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
