//! Splits an event stream into its events, as bytes: the raw bytes of all pieces, joined, are the input.
use super::{lines::Oversized, scan::IdScan};
use bytes::{Bytes, BytesMut};
use std::{mem::take, ops::Range, time::Duration};

const BOM: &[u8] = b"\xef\xbb\xbf";
/// The longest event id that is kept, in bytes.
const MAX_ID: usize = 4 * 1024;
/// The beginning of a line of data.
const DATA: &[u8] = b"data:";

/// Splits a stream of bytes into events.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    buffer: BytesMut,
    /// Where the line begins that has not ended.
    line: usize,
    /// Up to here that line has no end.
    scanned: usize,
    limit: usize,
    /// Whether the last line ended with CR: an LF after it belongs to it.
    after_cr: bool,
    /// Whether the position of a byte order mark was passed.
    begun: bool,
    event: Fields,
    /// Whether the event is over the limit: then lines are dropped once they are read.
    is_over: bool,
    /// Whether it is a line of data whose beginning was dropped, if one was.
    cut: Option<bool>,
}

/// The fields of the event that is being read.
#[derive(Debug, Default)]
struct Fields {
    data: Data,
    id: Option<Box<str>>,
    retry: Option<Duration>,
    /// Whether its type is another than `message`.
    is_other: bool,
}

/// The data of an event; a single line of it is not copied.
#[derive(Debug, Default)]
enum Data {
    #[default]
    None,
    Line(Range<usize>),
    Joined(Vec<u8>),
    /// Of an event over the limit.
    Scanned(Box<IdScan>),
}

impl Data {
    fn scanned(data: &[u8]) -> Self {
        let mut scan = Box::<IdScan>::default();
        scan.feed(data);
        Self::Scanned(scan)
    }
}

/// A part of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Its bytes; those of an event over the limit are not kept.
    pub(crate) raw: Bytes,
    pub(crate) content: Content,
    /// The id of the event, from which the stream can be resumed.
    pub(crate) id: Option<Box<str>>,
    /// How long to wait before the stream is resumed.
    pub(crate) retry: Option<Duration>,
}

/// What a part of the stream says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// An event of type `message`, with this data.
    Message(Bytes),
    /// Comments, fields without data, an event of another type.
    None,
    /// A message over the limit, which was skipped.
    Oversized(Oversized),
}

impl Splitter {
    /// Events of more than `limit` bytes are skipped.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Adds bytes of the stream.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next part, if it is complete.
    pub(crate) fn next(&mut self) -> Option<Piece> {
        let is_between = self.line == 0 && !self.is_over;
        if self.after_cr && is_between && self.buffer.starts_with(b"\n") {
            // The event before it was complete with the CR. Readers of CRLF hold it back until this LF comes, so
            // that must not wait for the next event.
            self.after_cr = false;
            return Some(self.dispatch(1));
        }
        loop {
            if !self.is_at_line() {
                return None;
            }
            let Some(at) = memchr::memchr2(b'\r', b'\n', &self.buffer[self.scanned..]) else {
                self.scanned = self.buffer.len();
                if self.is_over || self.scanned > self.limit && self.scanned > self.line {
                    self.skip_unfinished();
                }
                return None;
            };
            let line = self.line..self.scanned + at;
            self.after_cr = self.buffer[line.end] == b'\r';
            (self.line, self.scanned) = (line.end + 1, line.end + 1);
            if line.is_empty() && self.cut.is_none() {
                return Some(self.dispatch(line.end + 1));
            }
            self.field(line);
            self.cut = None;
            if self.is_over || self.line > self.limit {
                self.skip(self.line);
            }
        }
    }

    /// The bytes of an event that never ended.
    pub(crate) fn rest(&mut self) -> Bytes {
        (self.line, self.scanned) = (0, 0);
        self.event = Fields::default();
        let rest = self.buffer.split().freeze();
        if take(&mut self.is_over) { Bytes::new() } else { rest }
    }

    /// Steps over an LF after a CR, and a byte order mark; `false` if more bytes are needed for that.
    fn is_at_line(&mut self) -> bool {
        let at_start = self.scanned == self.line;
        if self.after_cr && at_start && self.line < self.buffer.len() {
            self.after_cr = false;
            let lf = usize::from(self.buffer[self.line] == b'\n');
            (self.line, self.scanned) = (self.line + lf, self.scanned + lf);
        }
        if !self.begun {
            let head = &self.buffer[..self.buffer.len().min(BOM.len())];
            if head.len() < BOM.len() && BOM.starts_with(head) {
                return false;
            }
            self.begun = true;
            if head == BOM {
                (self.line, self.scanned) = (BOM.len(), BOM.len());
            }
        }
        true
    }

    fn field(&mut self, line: Range<usize>) {
        let text = &self.buffer[line.clone()];
        if let Some(is_data) = self.cut {
            if let Data::Scanned(scan) = &mut self.event.data
                && is_data
            {
                scan.feed(text);
            }
            return;
        }
        let (name, value) = match memchr::memchr(b':', text) {
            Some(colon) => {
                let space = usize::from(text.get(colon + 1) == Some(&b' '));
                (&text[..colon], line.start + colon + 1 + space..line.end)
            }
            None => (text, line.end..line.end),
        };
        let said = &self.buffer[value.clone()];
        match name {
            b"data" => {
                let joined = |first: &[u8]| Data::Joined([first, b"\n", said].concat());
                self.event.data = match take(&mut self.event.data) {
                    Data::None => Data::Line(value),
                    Data::Line(first) => joined(&self.buffer[first]),
                    Data::Joined(mut all) => {
                        all.push(b'\n');
                        all.extend_from_slice(said);
                        Data::Joined(all)
                    }
                    Data::Scanned(mut scan) => {
                        scan.feed(b"\n");
                        scan.feed(said);
                        Data::Scanned(scan)
                    }
                };
            }
            b"id" => self.event.id = id(said).or(self.event.id.take()),
            b"event" => self.event.is_other = !matches!(said, b"" | b"message"),
            b"retry" => self.event.retry = retry(said).or(self.event.retry),
            _ => {}
        }
    }

    fn dispatch(&mut self, end: usize) -> Piece {
        (self.line, self.scanned) = (0, 0);
        let raw = self.buffer.split_to(end).freeze();
        let Fields { data, id, retry, is_other } = take(&mut self.event);
        let content = match data {
            // An event whose data is empty says nothing: it only carries an id.
            Data::Line(range) if !is_other && !range.is_empty() => {
                Content::Message(raw.slice(range))
            }
            Data::Joined(all) if !is_other => Content::Message(all.into()),
            Data::Scanned(scan) if !is_other => Content::Oversized(Oversized::of(*scan)),
            _ => Content::None,
        };
        let raw = if take(&mut self.is_over) { Bytes::new() } else { raw };
        Piece { raw, content, id, retry }
    }

    /// Drops what was read of an event over the limit; its data is only scanned.
    fn skip(&mut self, end: usize) {
        self.is_over = true;
        self.event.data = match take(&mut self.event.data) {
            Data::Line(range) => Data::scanned(&self.buffer[range]),
            Data::Joined(all) => Data::scanned(&all),
            other => other,
        };
        drop(self.buffer.split_to(end));
        (self.line, self.scanned) = (0, 0);
    }

    /// The same with a line that has not ended, of which the rest will be dropped, too.
    fn skip_unfinished(&mut self) {
        self.skip(self.line);
        let is_data = self.buffer.starts_with(DATA);
        // So long it is not known whether the data begins with a space, and an id may be kept.
        let unknown = if is_data { DATA.len() } else { MAX_ID + DATA.len() };
        if self.cut.is_none() && self.buffer.len() <= unknown {
            self.scanned = self.buffer.len();
            return;
        }
        self.field(0..self.buffer.len());
        self.cut.get_or_insert(is_data);
        self.skip(self.buffer.len());
    }
}

fn id(value: &[u8]) -> Option<Box<str>> {
    let text = std::str::from_utf8(value).ok()?;
    (text.len() <= MAX_ID && !text.contains('\0')).then(|| text.into())
}

fn retry(value: &[u8]) -> Option<Duration> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let text = digits.then(|| std::str::from_utf8(value).ok()).flatten()?;
    text.parse().ok().map(Duration::from_millis)
}

#[cfg(test)]
mod tests;
